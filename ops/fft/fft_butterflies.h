// ops/fft/fft_butterflies.h - transforms of a few numbers. Only *_simd.cpp files include it.
#pragma once
#include "ops/elementwise/simd.h"

namespace kassette::ops {
inline namespace KASSETTE_LEVEL {

/// Complex numbers, one in each lane.
template <class V>
struct Complex {
  V re, im;
};
template <class V>
KASSETTE_FN Complex<V> operator+(const Complex<V>& a, const Complex<V>& b) {
  return {a.re + b.re, a.im + b.im};
}
template <class V>
KASSETTE_FN Complex<V> operator-(const Complex<V>& a, const Complex<V>& b) {
  return {a.re - b.re, a.im - b.im};
}
template <class V>
KASSETTE_FN Complex<V> operator*(const Complex<V>& a, const Complex<V>& b) {
  return {devices::multiply_subtract(a.re, b.re, a.im * b.im), m::fma(a.re, b.im, a.im * b.re)};
}
/// -i a
template <class V>
KASSETTE_FN Complex<V> turned(const Complex<V>& a) {
  return {a.im, V(0) - a.re};
}

/// cos(2 pi k / p) and sin(2 pi k / p) for k from 1 to p / 2.
template <int p>
inline constexpr double kCosines[] = {};
template <int p>
inline constexpr double kSines[] = {};
template <>
inline constexpr double kCosines<3>[] = {-0.5};
template <>
inline constexpr double kSines<3>[] = {0.8660254037844386467637};
template <>
inline constexpr double kCosines<5>[] = {0.3090169943749474241023, -0.8090169943749474241023};
template <>
inline constexpr double kSines<5>[] = {0.9510565162951535721164, 0.5877852522924731291687};
template <>
inline constexpr double kCosines<7>[] = {0.6234898018587335305250, -0.2225209339563144042890,
                                         -0.9009688679024191262361};
template <>
inline constexpr double kSines<7>[] = {0.7818314824680298087084, 0.9749279121818236070181, 0.4338837391175581204758};

/// The transform of p numbers, p odd, in place: numbers k and p - k share what is even and what is odd in them.
template <int p, class V>
KASSETTE_FN void transform(Complex<V> (&a)[p]) {
  using T = typename V::value_type;
  constexpr int h = p / 2;
  Complex<V> sum[h], difference[h], first = a[0];
  for (int j = 0; j < h; ++j) {
    sum[j] = a[j + 1] + a[p - 1 - j];
    difference[j] = a[j + 1] - a[p - 1 - j];
    a[0] = a[0] + sum[j];
  }
  for (int k = 1; k <= h; ++k) {
    Complex<V> even = first, odd{V(0), V(0)};
    for (int j = 1; j <= h; ++j) {
      const int at = j * k % p, place = (at <= h ? at : p - at) - 1;
      const V c(static_cast<T>(kCosines<p>[place])), s(static_cast<T>(at <= h ? kSines<p>[place] : -kSines<p>[place]));
      even = {m::fma(sum[j - 1].re, c, even.re), m::fma(sum[j - 1].im, c, even.im)};
      odd = j == 1 ? Complex<V>{difference[0].re * s, difference[0].im * s}
                   : Complex<V>{m::fma(difference[j - 1].re, s, odd.re), m::fma(difference[j - 1].im, s, odd.im)};
    }
    a[k] = even + turned(odd);
    a[p - k] = even - turned(odd);
  }
}
template <class V>
KASSETTE_FN void transform(Complex<V> (&a)[2]) {
  const Complex<V> b = a[0];
  a[0] = b + a[1];
  a[1] = b - a[1];
}
template <class V>
KASSETTE_FN void transform(Complex<V> (&a)[4]) {
  const Complex<V> even[] = {a[0] + a[2], a[0] - a[2]}, odd[] = {a[1] + a[3], turned(a[1] - a[3])};
  a[0] = even[0] + odd[0];
  a[1] = even[1] + odd[1];
  a[2] = even[0] - odd[0];
  a[3] = even[1] - odd[1];
}
template <class V>
KASSETTE_FN void transform(Complex<V> (&a)[8]) {
  using T = typename V::value_type;
  const V r(static_cast<T>(0.7071067811865475244008));
  Complex<V> even[4] = {a[0], a[2], a[4], a[6]}, odd[4] = {a[1], a[3], a[5], a[7]};
  transform(even);
  transform(odd);
  odd[1] = {(odd[1].re + odd[1].im) * r, (odd[1].im - odd[1].re) * r};
  odd[2] = turned(odd[2]);
  odd[3] = {(odd[3].im - odd[3].re) * r, (V(0) - odd[3].re - odd[3].im) * r};
  for (int k = 0; k < 4; ++k) {
    a[k] = even[k] + odd[k];
    a[k + 4] = even[k] - odd[k];
  }
}

}  // namespace KASSETTE_LEVEL
}  // namespace kassette::ops
