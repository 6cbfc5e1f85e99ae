// ops/math/simd_power.h - powers and remainders on xsimd batches; part of simd.h, compiled once per CPU level.
#pragma once
#include <limits>

#include "ops/math/simd_math.h"

namespace kassette::ops {
namespace m {
inline namespace KASSETTE_LEVEL {  // the linker must not use an inline function of one level for another

/// Applies a scalar function lane by lane, if there is no vector form.
template <class T, class A, class F>
KASSETTE_FN xsimd::batch<T, A> lanes(const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b, F f) {
  using V = xsimd::batch<T, A>;
  alignas(64) T x[V::size], y[V::size];
  a.store_aligned(x);
  b.store_aligned(y);
  for (std::size_t i = 0; i < V::size; ++i) x[i] = f(x[i], y[i]);
  return V::load_aligned(x);
}

// --- powers ----------------------------------------------------------------------------------------------------------
/// A batch of floats as two batches of doubles.
template <class A>
struct Doubles {
  using V = xsimd::batch<float, A>;
  using D = xsimd::batch<double, A>;
  D low, high;

  KASSETTE_FN static Doubles of(const V& x) {
#if defined(__AVX512F__)
    return {D(_mm512_cvtps_pd(_mm512_castps512_ps256(x))), D(_mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)))};
#elif defined(__AVX__)
    return {D(_mm256_cvtps_pd(_mm256_castps256_ps128(x))), D(_mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)))};
#elif defined(__SSE2__)
    return {D(_mm_cvtps_pd(x)), D(_mm_cvtps_pd(_mm_movehl_ps(x, x)))};
#elif defined(__aarch64__)
    return {D(vcvt_f64_f32(vget_low_f32(x))), D(vcvt_high_f64_f32(x))};
#else
    alignas(64) float f[V::size];
    alignas(64) double d[V::size];
    x.store_aligned(f);
    for (std::size_t i = 0; i < V::size; ++i) d[i] = f[i];
    return {D::load_aligned(d), D::load_aligned(d + D::size)};
#endif
  }
  /// Rounds the lanes to floats.
  KASSETTE_FN V floats() const {
#if defined(__AVX512F__)
    return V(_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high), 1));
#elif defined(__AVX__)
    return V(_mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(low)), _mm256_cvtpd_ps(high), 1));
#elif defined(__SSE2__)
    return V(_mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high)));
#elif defined(__aarch64__)
    return V(vcvt_high_f32_f64(vcvt_f32_f64(low), high));
#else
    alignas(64) float f[V::size];
    alignas(64) double d[V::size];
    low.store_aligned(d);
    high.store_aligned(d + D::size);
    for (std::size_t i = 0; i < V::size; ++i) f[i] = static_cast<float>(d[i]);
    return V::load_aligned(f);
#endif
  }
};

/// For powers of floats: log(1 + f) and exp(r) as in simd_math.h, to 2^-38 and 2^-34. Powers up to 2^150 then have a
/// relative error of 2^-31 and are rounded correctly, except for about one in a hundred, close to a tie.
struct PowerConstants {
  static constexpr double kLog[] = {0x1.55555560a59adp-2,  -0x1.000000c16654dp-2, 0x1.99998b2f56e05p-3,
                                    -0x1.5554a1336c444p-3, 0x1.2494b911e4c30p-3,  -0x1.001df4b40deecp-3,
                                    0x1.c6e14cf1b2a7dp-4,  -0x1.9511b370d00a7p-4, 0x1.72495f1527b7cp-4,
                                    -0x1.7c64cb2b55054p-4, 0x1.7561a95da5db5p-4,  -0x1.8b1156b35fc9bp-5};
  static constexpr double kExp[] = {0x1.0000003a23942p-1, 0x1.555554433c0d1p-3,  0x1.55548dc463e7dp-5,
                                    0x1.111270b29a7b5p-7, 0x1.6d8d06fcc0d4cp-10, 0x1.9f089719ffb03p-13};
  static constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  static constexpr double kFar = 200;  // exp(kFar) is larger than every float, and a normal double
};

/// log(a), for positive finite floats held in doubles.
template <class D>
KASSETTE_FN D log_of_float(const D& a) {
  using C = Of<D>;
  using B = BitsOf<D>;
  using P = PowerConstants;
  const B moved = bits(a) + B(C::kOne - C::kSqrtHalf);
  const D k = same_bits<D>((moved >> C::kMantissa) | B(C::kExponentBase)) - D(C::kExponentBias);
  const D f = same_bits<D>((moved & B(C::kMantissaMask)) + B(C::kSqrtHalf)) - D(1);
  return m::fma(k, D(P::kLn2), m::fma(f * f, m::fma(f, m::polynomial(f, P::kLog), D(-0.5)), f));
}
/// a to the power b, for finite floats held in doubles and a >= 0. 0 to the power 0 is 1.
template <class D>
KASSETTE_FN D power_of_float(const D& a, const D& b) {
  using C = Of<D>;
  using P = PowerConstants;
  const D log = m::log_of_float(a);
  const D y = m::select(a == D(0), m::select(b > D(0), D(-P::kFar), m::select(b < D(0), D(P::kFar), D(0))), b * log);
  const D x = xsimd::max(D(-P::kFar), xsimd::min(D(P::kFar), y));
  const D shifted = m::fma(x, D(C::kLog2E), D(C::kRounder));
  const D r = m::fma(shifted - D(C::kRounder), D(-P::kLn2), x);
  return same_bits<D>(bits(m::fma(r * r, m::polynomial(r, P::kExp), r) + D(1)) + (bits(shifted) << C::kMantissa));
}
/// a to the power b, for finite floats and a >= 0.
template <class V>
KASSETTE_FN V power_near(const V& a, const V& b) {
  const auto x = Doubles<typename V::arch_type>::of(a), y = Doubles<typename V::arch_type>::of(b);
  return Doubles<typename V::arch_type>{power_of_float(x.low, y.low), power_of_float(x.high, y.high)}.floats();
}
/// a to the power b for any floats, including negative bases. Lanes that are not finite call the C library.
template <class V>
__attribute__((noinline)) V power_far(const V& a, const V& b) {
  using T = typename V::value_type;
  const V most(Constants<T>::kLargest), one(1), size = xsimd::abs(a);
  const auto plain = (size <= most) & (xsimd::abs(b) <= most);
  V y = m::power_near(m::select(plain, size, one), m::select(plain, b, one));
  const auto whole = m::round_even(b) == b, odd = whole & (m::round_even(b * V(0.5f)) != b * V(0.5f));
  y = m::flip_sign(y, m::select(odd, a, V(0)));
  y = m::select(whole, y, m::select(a < V(0), V(std::numeric_limits<T>::quiet_NaN()), y));
  alignas(64) T from[V::size], to[V::size], out[V::size];
  a.store_aligned(from);
  b.store_aligned(to);
  y.store_aligned(out);
  for (std::size_t i = 0; i < V::size; ++i)
    if (!(from[i] - from[i] == 0 && to[i] - to[i] == 0)) out[i] = m::pow(from[i], to[i]);
  return V::load_aligned(out);
}
#ifdef KASSETTE_HAS_FMA
/// A number in twice the precision: high, rounded, plus the remainder low.
template <class V>
struct Pair {
  V high, low;
};
/// a + b without loss, for |a| >= |b| or a = 0.
template <class V>
KASSETTE_FN Pair<V> sum(const V& a, const V& b) {
  const V high = a + b;
  return {high, (a - high) + b};
}
/// a * b, rounded to a pair.
template <class V>
KASSETTE_FN Pair<V> product(const Pair<V>& a, const Pair<V>& b) {
  const V high = a.high * b.high;
  return {high, m::fma(a.high, b.low, m::fma(a.low, b.high, m::fma(a.high, b.high, -high)))};
}
/// log(a) for positive normal a, to 2^-64: k log(2) + 2 atanh(s) with s = (x - 1) / (x + 1), where x = a / 2^k is
/// around 1.
template <class V>
KASSETTE_FN Pair<V> long_log(const V& a) {
  using C = Of<V>;
  using B = BitsOf<V>;
  const B moved = bits(a) + B(C::kOne - C::kSqrtHalf);
  const V k = same_bits<V>((moved >> C::kMantissa) | B(C::kExponentBase)) - V(C::kExponentBias);
  const V f = same_bits<V>((moved & B(C::kMantissaMask)) + B(C::kSqrtHalf)) - V(1);
  const Pair<V> u = m::sum(V(2), f);
  const V inverse = V(1) / u.high, quotient = f * inverse;
  const Pair<V> s{quotient, m::fma(-quotient, u.low, m::fma(-quotient, u.high, f)) * inverse}, z = m::product(s, s);
  // atanh(s) / s = 1 + z / 3 + z^2 / 5 + ...: the first two terms in twice the precision.
  constexpr double kRest[] = {1. / 5,  1. / 7,  1. / 9,  1. / 11, 1. / 13, 1. / 15,
                              1. / 17, 1. / 19, 1. / 21, 1. / 23, 1. / 25};
  Pair<V> bent = m::sum(V(1. / 3), z.high * m::polynomial(z.high, kRest));
  bent.low = bent.low + V(0x1.5555555555555p-56);  // the remainder of 1/3
  bent = m::product(z, bent);
  Pair<V> whole = m::sum(V(1), bent.high);
  whole.low = whole.low + bent.low;
  const Pair<V> log = m::product(Pair<V>{s.high + s.high, s.low + s.low}, whole),
                y = m::sum(k * V(C::kLn2High), log.high);
  return {y.high, y.low + m::fma(k, V(C::kLn2Low), log.low)};
}
/// a to the power b. *plain is false in lanes where the result is not valid: a is not positive and normal, b not
/// finite, or the power not normal.
template <class V>
KASSETTE_FN V long_power(const V& a, const V& b, xsimd::batch_bool<double, typename V::arch_type>* plain) {
  using C = Of<V>;
  const auto fits = (a >= V(C::kSmallest)) & (a <= V(C::kLargest)) & (xsimd::abs(b) <= V(C::kLargest));
  const Pair<V> log = m::long_log(a);
  const V y = b * log.high, low = m::fma(b, log.low, m::fma(b, log.high, -y));
  *plain = fits & (xsimd::abs(y) <= V(C::kExpPlain));
  const V shifted = m::fma(y, V(C::kLog2E), V(C::kRounder)), n = shifted - V(C::kRounder);
  const V near = m::fma(n, V(-C::kLn2High), y), first = m::fma(n, V(-C::kLn2Low), near);  // `near` is exact
  const Pair<V> r = m::sum(first, m::fma(n, V(-C::kLn2Low), near - first) + low);
  const V e = r.high + m::fma(r.high * r.high, m::polynomial(r.high, C::kExp), r.low) + V(1);
  return same_bits<V>(bits(e) + (bits(shifted) << C::kMantissa));
}
/// y with the lanes that are not plain replaced by the C library's power.
template <class V, class Plain>
__attribute__((noinline)) V long_power_far(const V& a, const V& b, const V& y, const Plain& plain) {
  alignas(64) double from[V::size], to[V::size], out[V::size], is_plain[V::size];
  a.store_aligned(from);
  b.store_aligned(to);
  y.store_aligned(out);
  m::select(plain, V(1), V(0)).store_aligned(is_plain);
  for (std::size_t i = 0; i < V::size; ++i)
    if (is_plain[i] == 0) out[i] = m::pow(from[i], to[i]);
  return V::load_aligned(out);
}
#endif

template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> pow(const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b) {
  using V = xsimd::batch<T, A>;
  if constexpr (sizeof(T) == 8) {
#ifdef KASSETTE_HAS_FMA
    xsimd::batch_bool<T, A> plain;
    const V y = m::long_power(a, b, &plain);
    return __builtin_expect(xsimd::all(plain), 1) ? y : m::long_power_far(a, b, y, plain);
#else
    return m::lanes(
        a, b, [](T x, T y) __attribute__((always_inline)) { return m::pow(x, y); });
#endif
  } else {
    const V most(Constants<T>::kLargest);
    if (__builtin_expect(!xsimd::all((a >= V(Constants<T>::kSmallest)) & (a <= most) & (xsimd::abs(b) <= most)), 0))
      return m::power_far(a, b);
    return m::power_near(a, b);
  }
}

// --- remainders ------------------------------------------------------------------------------------------------------
#ifdef KASSETTE_HAS_FMA
/// x rounded towards zero.
template <class V>
KASSETTE_FN V truncated(const V& x) {
  [[maybe_unused]] constexpr bool single = sizeof(typename V::value_type) == 4;
#if defined(__AVX512F__)
  if constexpr (single) return V(_mm512_roundscale_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
  else return V(_mm512_roundscale_pd(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
#elif defined(__aarch64__)
  if constexpr (single) return V(vrndq_f32(x));
  else return V(vrndq_f64(x));
#else
  if constexpr (single) return V(_mm256_round_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
  else return V(_mm256_round_pd(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
#endif
}
/// True if all quotients are so small that the integer part of a rounded a / b is at most one too large.
template <class V>
KASSETTE_FN bool divides_plainly(const V& a, const V& b) {
  using C = Of<V>;
  return xsimd::all((xsimd::abs(a / b) < V(C::kRounder / 6)) & (xsimd::abs(b) <= V(C::kLargest)));
}
/// fmod(a, b), which is exact, for batches that divides_plainly(); a zero may have either sign.
template <class V>
KASSETTE_FN V fmod_near(const V& a, const V& b) {
  const V r = m::fma(-m::truncated(a / b), b, a);
  return m::select(m::flip_sign(r, a) < V(0), r + m::flip_sign(xsimd::abs(b), a), r);  // the quotient was one too large
}
/// a - b * floor(a / b), for batches that divides_plainly().
template <class V>
KASSETTE_FN V remainder_near(const V& a, const V& b) {
  const V r = m::fmod_near(a, b);
  const V in_range = m::select(m::flip_sign(r, b) < V(0), r + b, r);
  return m::select(r == V(0), m::flip_sign(V(0), b), in_range);
}
#endif
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> remainder(const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b) {
#ifdef KASSETTE_HAS_FMA
  if (__builtin_expect(m::divides_plainly(a, b), 1)) return m::remainder_near(a, b);
#endif
  return m::lanes(
      a, b, [](T x, T y) __attribute__((always_inline)) { return m::remainder(x, y); });
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> fmod(const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b) {
#ifdef KASSETTE_HAS_FMA
  using V = xsimd::batch<T, A>;
  if (__builtin_expect(m::divides_plainly(a, b), 1)) {
    const V r = m::fmod_near(a, b);
    return m::select(r == V(0), m::flip_sign(V(0), a), r);
  }
#endif
  return m::lanes(
      a, b, [](T x, T y) __attribute__((always_inline)) { return m::fmod(x, y); });
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> floor_divide(const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b) {
#ifdef KASSETTE_HAS_FMA
  using V = xsimd::batch<T, A>;
  if (__builtin_expect(m::divides_plainly(a, b), 1)) {
    const V q = (a - m::remainder_near(a, b)) / b;  // an integer, up to rounding
    return m::select(q == V(0), m::flip_sign(V(0), a / b), m::round_even(q));
  }
#endif
  return m::lanes(
      a, b, [](T x, T y) __attribute__((always_inline)) { return m::floor_divide(x, y); });
}

}  // namespace KASSETTE_LEVEL
}  // namespace m
}  // namespace kassette::ops
