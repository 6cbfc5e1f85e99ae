// ops/math/simd_math.h - exp, log, tanh, sine and others on xsimd batches; part of simd.h, compiled once per CPU
// level.
//
// Each function is the same branch-free code for float and double, with constants from Constants<T>. Polynomials are
// minimax in relative error (Remez exchange at 60 digits), rounded to T. Results have the same bits at avx2, avx512
// and neon64; sse2 has no fused multiply-add and may differ in the last place. Errors found by
// tests/ops/elementwise/math_test.cpp are below 1 ULP for exp, log and log1p, 1.5 for sin and cos, 1.7 for expm1, 2.3
// for sigmoid, 2.5 for tanh (in float32 2.1 for sigmoid; tanh 1.3, at sse2 2.1); powers (simd_power.h) 1.1, in float32
// 0.51.
//
// Rare arguments (overflow, subnormal, NaN, large angles) take a branch: the functions named *_far. The bits of a lane
// do not depend on whether other lanes of the vector need that branch.
#pragma once
#include <cstdint>
#include <limits>

#include "devices/cpu/simd_fma.h"
#include "devices/cpu/xsimd.h"
#include "ops/math/math.h"
#include "ops/math/tanh_table.h"

namespace kassette::ops {
namespace m {
inline namespace KASSETTE_LEVEL {  // for constants too: the linker must not use one level's for another

/// The constants of the functions below for one dtype.
template <class T>
struct Constants;
template <>
struct Constants<float> {
  using Bits = std::uint32_t;
  static constexpr int kMantissa = 23;
  static constexpr Bits kOne = 0x3f800000, kSqrtHalf = 0x3f3504f3, kSign = 0x80000000, kMantissaMask = 0x007fffff;
  static constexpr Bits kExponentBase = 0x4b000000;  // 2^23: adding a small integer to its bits adds it to the value
  static constexpr float kExponentBias = 8388608.f + 127, kSmallest = 1.17549435e-38f, kLargest = 3.40282347e38f;
  static constexpr float kRounder = 12582912.f;  // 1.5 * 2^23: adding it rounds to an integer, which is in the low bits
  static constexpr float kLog2E = 0x1.715476p+0f, kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;
  static constexpr float kExpPlain = 87, kExpLow = -104.5f, kExpHigh = 89;
  static constexpr float kScale = 33554432.f, kScaleLog = 25;  // subnormals times 2^25 are normal
  // (exp(r) - 1 - r) / r^2 on |r| <= ln(2) / 2, to 2^-27.8 of exp(r).
  static constexpr float kExp[] = {0x1.fffffcp-2f, 0x1.55549p-3f, 0x1.5558f8p-5f, 0x1.123b02p-7f, 0x1.6a2256p-10f};
  // (log(1 + f) - f + f^2 / 2) / f^3 on [sqrt(1/2) - 1, sqrt(2) - 1], to 2^-28.2 of log(1 + f).
  static constexpr float kLog[] = {0x1.555548p-2f,  -0x1.000006p-2f, 0x1.99a4b6p-3f,  -0x1.555c4ep-3f, 0x1.233768p-3f,
                                   -0x1.fc2206p-4f, 0x1.e6f06ap-4f,  -0x1.de3c16p-4f, 0x1.1457acp-4f};
  // (sin(r) - r) / r^3 and (cos(r) - 1 + r^2 / 2) / r^4 in r^2, on |r| <= pi / 4, to 2^-28.
  static constexpr float kSin[] = {-0x1.555556p-3f, 0x1.111108p-7f, -0x1.a00f74p-13f, 0x1.6ccf5ep-19f};
  static constexpr float kCos[] = {0x1.55554ap-5f, -0x1.6c0c28p-10f, 0x1.99e86ap-16f};
  // pi / 2 as a sum of parts, short enough that products with the number of the quadrant are exact up to kAngle.
  static constexpr float kHalfPi[] = {0x1.92p+0f, 0x1.fb4p-12f, 0x1.444p-24f, 0x1.68cp-39f, 0x1.1a6264p-54f};
  static constexpr int kHalfPiParts = 5, kHalfPiExact = 2;
  static constexpr float kTwoOverPi = 0x1.45f306p-1f, kAngle = 8192;
  static constexpr float kTanhFlat = 10;
};
template <>
struct Constants<double> {
  using Bits = std::uint64_t;
  static constexpr int kMantissa = 52;
  static constexpr Bits kOne = 0x3ff0000000000000, kSqrtHalf = 0x3fe6a09e667f3bcd, kSign = 0x8000000000000000,
                        kMantissaMask = 0x000fffffffffffff;
  static constexpr Bits kExponentBase = 0x4330000000000000;
  static constexpr double kExponentBias = 4503599627370496. + 1023, kSmallest = 2.2250738585072014e-308,
                          kLargest = 1.7976931348623157e308;
  static constexpr double kRounder = 6755399441055744.;
  static constexpr double kLog2E = 0x1.71547652b82fep+0, kLn2High = 0x1.62e42fefa3p-1, kLn2Low = 0x1.3de6af278ece6p-42;
  static constexpr double kExpPlain = 708, kExpLow = -746, kExpHigh = 710;
  static constexpr double kScale = 18014398509481984., kScaleLog = 54;
  // As above, to 2^-56.8.
  static constexpr double kExp[] = {0x1.000000000000ap-1,  0x1.55555555554f8p-3,  0x1.5555555550754p-5,
                                    0x1.1111111128173p-7,  0x1.6c16c1846fc7dp-10, 0x1.a01a0128fd3e4p-13,
                                    0x1.a01999445ba85p-16, 0x1.71df27211a775p-19, 0x1.28ae3465cf862p-22,
                                    0x1.ad7e87178c237p-26};
  // (2 atanh(s) / s - 2) / s^2 in s^2 = (f / (2 + f))^2, to 2^-58.1.
  static constexpr double kLog[] = {0x1.5555555555593p-1, 0x1.999999997fb31p-2, 0x1.2492494217a30p-2,
                                    0x1.c71c51e7f6514p-3, 0x1.7466462cbde22p-3, 0x1.39a0f4fdc04d6p-3,
                                    0x1.2f0d8ec40ad85p-3};
  static constexpr double kSin[] = {-0x1.5555555555548p-3, 0x1.111111110f78fp-7,   -0x1.a01a019bf5777p-13,
                                    0x1.71de356039e3fp-19, -0x1.ae5e546e349afp-26, 0x1.5d8dfcff3b264p-33};
  static constexpr double kCos[] = {0x1.555555555554bp-5,   -0x1.6c16c16c14f47p-10, 0x1.a01a019c7cd98p-16,
                                    -0x1.27e4f7e53e023p-22, 0x1.1ee9d3dc52836p-29,  -0x1.8fa290c88e051p-37};
  static constexpr double kHalfPi[] = {0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2ep-69, 0x1.b839a252049c1p-104};
  static constexpr int kHalfPiParts = 4, kHalfPiExact = 1;
  static constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1, kAngle = 1048576;
  static constexpr double kTanhFlat = 20;
};

template <class V>
using Of = Constants<typename V::value_type>;
template <class V>
using BitsOf = xsimd::batch<typename Of<V>::Bits, typename V::arch_type>;

template <class To, class From>
KASSETTE_FN To same_bits(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}
template <class V>
KASSETTE_FN BitsOf<V> bits(const V& x) {
  return same_bits<BitsOf<V>>(x);
}
/// a * b + c, rounded once if the level has FMA.
template <class V>
KASSETTE_FN V fma(const V& a, const V& b, const V& c) {
  return devices::multiply_add(a, b, c);
}
/// c[0] + c[1] x + c[2] x^2 + ..., by Horner's rule.
template <int N, class V>
KASSETTE_FN V polynomial(const V& x, const typename V::value_type (&c)[N]) {
  V p(c[N - 1]);
  for (int i = N - 2; i >= 0; --i) p = m::fma(p, x, V(c[i]));
  return p;
}
/// x, negated in the lanes where `of` has its sign bit set.
template <class V>
KASSETTE_FN V flip_sign(const V& x, const V& of) {
  return same_bits<V>(bits(x) ^ (bits(of) & BitsOf<V>(Of<V>::kSign)));
}

// --- exp -------------------------------------------------------------------------------------------------------------
/// The parts of exp(x) = 2^n (1 + r + bent). n is an integer, which the low bits of `shifted` hold as well.
template <class V>
struct ExpParts {
  V shifted, n, r, bent;
};
template <class V>
KASSETTE_FN ExpParts<V> exp_parts(const V& x) {
  using C = Of<V>;
  const V shifted = m::fma(x, V(C::kLog2E), V(C::kRounder)), n = shifted - V(C::kRounder);
  const V r = m::fma(n, V(-C::kLn2Low), m::fma(n, V(-C::kLn2High), x));
  return {shifted, n, r, r * r * m::polynomial(r, C::kExp)};
}
/// 2^n for the n in the low bits of `shifted`; 2^n must be normal.
template <class V>
KASSETTE_FN V power_of_two(const V& shifted) {
  return same_bits<V>((bits(shifted) << Of<V>::kMantissa) + BitsOf<V>(Of<V>::kOne));
}
/// exp of any argument, including overflow, subnormal results and NaN.
template <class V>
__attribute__((noinline)) V exp_far(const V& x) {
  using C = Of<V>;
  const ExpParts<V> e = m::exp_parts(xsimd::max(V(C::kExpLow), xsimd::min(V(C::kExpHigh), x)));
  // 2^n as a product of two normal factors; only the multiplication by the second one rounds.
  const V half = m::fma(e.n, V(0.5f), V(C::kRounder)), rest = (e.n - (half - V(C::kRounder))) + V(C::kRounder);
  return m::select(m::is_nan(x), x, (e.r + e.bent + V(1)) * m::power_of_two(half) * m::power_of_two(rest));
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> exp(const xsimd::batch<T, A>& x) {
  using V = xsimd::batch<T, A>;
  if (__builtin_expect(!xsimd::all(xsimd::abs(x) <= V(Constants<T>::kExpPlain)), 0)) return m::exp_far(x);
  const ExpParts<V> e = m::exp_parts(x);
  return same_bits<V>(bits(e.r + e.bent + V(1)) + (bits(e.shifted) << Constants<T>::kMantissa));
}

/// exp(x) - 1 for |x| <= kExpPlain.
template <class V>
KASSETTE_FN V expm1_near(const V& x) {
  const ExpParts<V> e = m::exp_parts(x);
  const V scale = m::power_of_two(e.shifted), y = e.r + e.bent, lost = (e.r - y) + e.bent;
  return m::fma(scale, lost, m::fma(scale, y, scale - V(1)));
}
template <class V>
__attribute__((noinline)) V expm1_far(const V& x) {
  const V y = m::select(x < V(0), V(-1), m::exp_far(x));
  const V near = m::select(x == V(0), x, m::expm1_near(x));
  return m::select(xsimd::abs(x) <= V(Of<V>::kExpPlain), near, m::select(m::is_nan(x), x, y));
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> expm1(const xsimd::batch<T, A>& x) {
  using V = xsimd::batch<T, A>;
  if (__builtin_expect(!xsimd::all(xsimd::abs(x) <= V(Constants<T>::kExpPlain)), 0)) return m::expm1_far(x);
  return m::select(x == V(0), x, m::expm1_near(x));  // keeps -0
}

// --- log -------------------------------------------------------------------------------------------------------------
/// log(x) + low for positive, finite and normal x; `low` is a correction below the last place. With kScaled, minus
/// scale * log(2).
template <bool kScaled = false, class V>
KASSETTE_FN V log_near(const V& x, const V& low, [[maybe_unused]] const V& scale = V(0)) {
  using C = Of<V>;
  using B = BitsOf<V>;
  // x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2).
  const B moved = bits(x) + B(C::kOne - C::kSqrtHalf);
  V k = same_bits<V>((moved >> C::kMantissa) | B(C::kExponentBase)) - V(C::kExponentBias);
  if constexpr (kScaled) k = k - scale;
  const V f = same_bits<V>((moved & B(C::kMantissaMask)) + B(C::kSqrtHalf)) - V(1);
  const V tail = m::fma(k, V(C::kLn2Low), low);
  if constexpr (sizeof(typename V::value_type) == 4) {
    const V bent = f * f * m::fma(f, m::polynomial(f, C::kLog), V(-0.5f));
    return m::fma(k, V(C::kLn2High), f + (bent + tail));
  } else {
    const V s = f / (V(2) + f), z = s * s, half_square = f * f * V(0.5);
    const V bent = m::fma(s, m::fma(z, m::polynomial(z, C::kLog), half_square), tail) - half_square;
    return m::fma(k, V(C::kLn2High), bent + f);
  }
}
/// log of any argument, including zero, subnormals, negative numbers, infinity and NaN.
template <class V>
__attribute__((noinline)) V log_far(const V& x) {
  using C = Of<V>;
  const V inf(std::numeric_limits<typename V::value_type>::infinity()),
      nan(std::numeric_limits<typename V::value_type>::quiet_NaN());
  const auto small = x < V(C::kSmallest);
  const V y = m::log_near<true>(m::select(small, x * V(C::kScale), x), V(0), m::select(small, V(C::kScaleLog), V(0)));
  return m::select(x == V(0), -inf, m::select(x < V(0), nan, m::select(x == inf, inf, m::select(m::is_nan(x), x, y))));
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> log(const xsimd::batch<T, A>& x) {
  using V = xsimd::batch<T, A>;
  using C = Constants<T>;
  if (__builtin_expect(!xsimd::all((x >= V(C::kSmallest)) & (x <= V(C::kLargest))), 0)) return m::log_far(x);
  return m::log_near(x, V(0));
}

template <class V>
KASSETTE_FN V log1p_near(const V& x) {
  const V u = x + V(1), one = u - x;  // 1, up to the rounding of u
  const V lost = (V(1) - one) + (x - (u - one));
  return m::select(x == V(0), x, m::log_near(u, lost / u));
}
template <class V>
__attribute__((noinline)) V log1p_far(const V& x) {
  const V inf(std::numeric_limits<typename V::value_type>::infinity()),
      nan(std::numeric_limits<typename V::value_type>::quiet_NaN());
  return m::select(x == V(-1), -inf,
                   m::select(x < V(-1), nan, m::select(x == inf, inf, m::select(m::is_nan(x), x, m::log1p_near(x)))));
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> log1p(const xsimd::batch<T, A>& x) {
  using V = xsimd::batch<T, A>;
  if (__builtin_expect(!xsimd::all((x > V(-1)) & (x <= V(Constants<T>::kLargest))), 0)) return m::log1p_far(x);
  return m::log1p_near(x);
}

// --- tanh, sigmoid ---------------------------------------------------------------------------------------------------
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> tanh(const xsimd::batch<T, A>& x) {
  using V = xsimd::batch<T, A>;
  using B = BitsOf<V>;
#ifdef KASSETTE_HAS_FMA
  if constexpr (sizeof(T) == 4) return V(m::tanh_pieces(x));
#endif
  const V size = xsimd::abs(x), flat(Constants<T>::kTanhFlat);
  const V t = m::expm1_near(V(-2) * m::select(size > flat, flat, size));  // from -1 to 0; keeps NaN
  // tanh |x| = -t / (t + 2). Above about a half it is 1 - 2 (t + 1) / (t + 2), in which t + 1 is exact.
  const auto steep = t > V(-0.68f);
  const V q = m::select(steep, -t, V(2) * (t + V(1))) / (t + V(2)), y = m::select(steep, q, V(1) - q);
  return same_bits<V>((bits(y) & ~B(Constants<T>::kSign)) | (bits(x) & B(Constants<T>::kSign)));
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> sigmoid(const xsimd::batch<T, A>& x) {
  using V = xsimd::batch<T, A>;
  const V e = m::exp(-xsimd::abs(x));
  return m::select(x < V(0), e, V(1)) / (V(1) + e);
}

// --- sin, cos --------------------------------------------------------------------------------------------------------
/// An angle as a number of quarter turns, which the low bits of `turns` hold, and the rest, r + low.
template <class V>
struct Angle {
  V turns, r, low;
};
/// For |x| <= kAngle.
template <class V>
KASSETTE_FN Angle<V> angle(const V& x) {
  using C = Of<V>;
  const V shifted = m::fma(x, V(C::kTwoOverPi), V(C::kRounder)), n = shifted - V(C::kRounder);
  // x - n pi / 2 as r + low. The first differences are exact; the rounding errors of the others are summed in `lost`.
  V near = x, lost(0);
  for (int i = 0; i < C::kHalfPiParts; ++i) {
    const V part = n * V(C::kHalfPi[i]), next = near - part;
    if (i >= C::kHalfPiExact) lost = lost + ((near - next) - part);
    near = next;
  }
  const V r = near + lost;
  return {shifted, r, (near - r) + lost};
}
/// The sine and cosine of r + low.
template <class V>
KASSETTE_FN V sine_of(const Angle<V>& a) {
  const V z = a.r * a.r;
  return m::fma(a.r * z, m::polynomial(z, Of<V>::kSin), a.low) + a.r;
}
template <class V>
KASSETTE_FN V cosine_of(const Angle<V>& a) {
  const V z = a.r * a.r;
  return m::fma(z, m::fma(z, m::polynomial(z, Of<V>::kCos), V(-0.5f)), -(a.r * a.low)) + V(1);
}
/// The lanes with bit 0 of `n` set.
template <class V>
KASSETTE_FN auto odd_lanes(const BitsOf<V>& n) {
  // moved to the exponent, which makes the smallest normal number
  return same_bits<V>((n & BitsOf<V>(1)) << Of<V>::kMantissa) > V(0);
}
/// sin(x) if kTurn is 0; cos(x), the sine a quarter turn later, if it is 1. For |x| <= kAngle.
template <int kTurn, class V>
KASSETTE_FN V sine_near(const V& x) {
  using C = Of<V>;
  using B = BitsOf<V>;
  const Angle<V> a = m::angle(x);
  const B quadrant = bits(a.turns) + B(kTurn);
  const V y = m::flip_sign(m::select(m::odd_lanes<V>(quadrant), m::cosine_of(a), m::sine_of(a)),
                           same_bits<V>((quadrant & B(2)) << (sizeof(C::kOne) * 8 - 2)));
  return kTurn ? y : m::select(x == V(0), x, y);  // keeps -0
}
/// Sine or cosine of any argument: lanes with large angles, infinities or NaN call the C library.
template <int kTurn, class V>
__attribute__((noinline)) V sine_far(const V& x) {
  using T = typename V::value_type;
  alignas(64) T in[V::size], out[V::size];
  x.store_aligned(in);
  const V near = sine_near<kTurn>(m::select(xsimd::abs(x) <= V(Of<V>::kAngle), x, V(0)));
  near.store_aligned(out);
  for (std::size_t i = 0; i < V::size; ++i)
    if (!(in[i] <= Of<V>::kAngle && in[i] >= -Of<V>::kAngle)) out[i] = kTurn ? m::cos(in[i]) : m::sin(in[i]);
  return V::load_aligned(out);
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> sin(const xsimd::batch<T, A>& x) {
  using V = xsimd::batch<T, A>;
  if (__builtin_expect(!xsimd::all(xsimd::abs(x) <= V(Constants<T>::kAngle)), 0)) return sine_far<0>(x);
  return sine_near<0>(x);
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> cos(const xsimd::batch<T, A>& x) {
  using V = xsimd::batch<T, A>;
  if (__builtin_expect(!xsimd::all(xsimd::abs(x) <= V(Constants<T>::kAngle)), 0)) return sine_far<1>(x);
  return sine_near<1>(x);
}

}  // namespace KASSETTE_LEVEL
}  // namespace m
}  // namespace kassette::ops
