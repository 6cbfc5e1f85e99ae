// ops/math/simd_elementary.h - rounding, tangent, inverse and hyperbolic functions, logarithms of base 2 and 10,
// roots and angles on xsimd batches; part of simd.h, compiled once per CPU level.
//
// Written as simd_math.h is: the same branch-free code for float and double where that is possible, with constants from
// Elementary<T>. tests/data/make_polynomials.py makes the polynomials. Errors found by
// tests/ops/elementwise/math_test.cpp are below 2 ULP, those of log2 and log10 below 0.6; of double arguments sse2,
// which has no fused multiply-add, takes log2 and log10 from the C library.
#pragma once
#include <limits>

#include "ops/math/simd_math.h"
#include "ops/math/simd_power.h"

namespace kassette::ops {
namespace m {
inline namespace KASSETTE_LEVEL {  // the linker must not use an inline function of one level for another

/// The constants of the functions below for one dtype. Polynomials are in z = s^2.
template <class T>
struct Elementary;
template <>
struct Elementary<float> {
  // (asin(s) - s) / s^3 for s up to 1/2, to 2^-27.2 of asin(s); (atan(s) - s) / s^3 for s up to 0.56, to 2^-28.4;
  // (sinh(s) - s) / s^3 for s up to 1, to 2^-27.2.
  static constexpr float kAsin[] = {0x1.5555cap-3f, 0x1.33013cp-4f, 0x1.748e72p-5f, 0x1.8b8aeap-6f, 0x1.59f128p-5f};
  static constexpr float kAtan[] = {-0x1.555548p-2f, 0x1.9992b4p-3f,  -0x1.23fd32p-3f,
                                    0x1.bb5468p-4f,  -0x1.35cf54p-4f, 0x1.0fa1a8p-5f};
  static constexpr float kSinh[] = {0x1.555556p-3f, 0x1.111136p-7f, 0x1.9ffe04p-13f, 0x1.7a2896p-19f};
  // The cube root of x from sqrt(1/2) to sqrt(2), to 2^-16.7.
  static constexpr float kCbrt[] = {0x1.ce82c2p-2f, 0x1.cf424ep-1f, -0x1.123af2p-1f, 0x1.bc40fep-3f, -0x1.3586ccp-5f};
  // pi / 4 as a sum, whose first part times 0 to 4 is exact; pi / 2 and pi as sums.
  static constexpr float kQuarterHigh = 0x1.921fcp-1f, kQuarterLow = -0x1.5777a6p-22f;
  static constexpr float kHalfHigh = 0x1.921fb6p+0f, kHalfLow = -0x1.777a5cp-25f, kPiHigh = 0x1.921fb6p+1f,
                         kPiLow = -0x1.777a5cp-24f;
  static constexpr float kLn2 = 0x1.62e43p-1f;
  static constexpr float kPowerPlain = 125, kPowerLow = -152, kPowerHigh = 129;  // where 2^x is normal, 0, infinite
  static constexpr float kWide = 4096;                                           // log(2 x) is asinh(x) from here on
  static constexpr float kCubeScale = 16777216.f, kCubeBack = 0x1p-8f;           // 2^24 and the cube root of 2^-24
  // Squares of numbers between these neither overflow nor lose bits; others are scaled.
  static constexpr float kSquareHigh = 0x1p62f, kDown = 0x1p-70f, kUp = 0x1p70f, kSquareLow = 0x1p-60f,
                         kRaise = 0x1p100f, kLower = 0x1p-100f;
};
template <>
struct Elementary<double> {
  // As above, to 2^-59.6, 2^-58.3, 2^-56.5 and 2^-19.6.
  static constexpr double kAsin[] = {
      0x1.5555555555578p-3, 0x1.333333332df06p-4,  0x1.6db6db722bfb6p-5, 0x1.f1c71a8b6e1c6p-6, 0x1.6e8bdfeafc4acp-6,
      0x1.1c49ddbc3c3a7p-6, 0x1.ca214a17b3ba6p-7,  0x1.757762404d9dfp-7, 0x1.618b95c6ee877p-7, 0x1.e14f60fd7d738p-9,
      0x1.650557af087ap-6,  -0x1.59fae5bbdf02bp-6, 0x1.0be5ad82b0503p-5};
  static constexpr double kAtan[] = {
      -0x1.5555555555552p-2, 0x1.9999999999169p-3,  -0x1.249249245d615p-3, 0x1.c71c71b17d62dp-4, -0x1.745d14a5b4fb9p-4,
      0x1.3b137c3c3ca5fp-4,  -0x1.110e33ebe2c4dp-4, 0x1.e1a9b6c3759f7p-5,  -0x1.ad9a0064b342p-5, 0x1.7e07804daf0f5p-5,
      -0x1.4593bac975p-5,    0x1.e64eca98ba726p-6,  -0x1.0d8168439c7f8p-6, 0x1.3b22860fcb0afp-8};
  static constexpr double kSinh[] = {0x1.5555555555555p-3,  0x1.1111111111111p-7,  0x1.a01a01a019fbdp-13,
                                     0x1.71de3a55743bdp-19, 0x1.ae645673cfc69p-26, 0x1.61246b28645cfp-33,
                                     0x1.ae75516723939p-41, 0x1.9a80b87b3bec4p-49};
  static constexpr double kCbrt[] = {0x1.afd040fc7ce56p-2, 0x1.0e55ee7c4929fp+0,  -0x1.ac0cdb1e22577p-1,
                                     0x1.0598b51c7e6aep-1, -0x1.6fb228b8f2f03p-3, 0x1.b992334148bccp-6};
  static constexpr double kQuarterHigh = 0x1.921fb54442d2p-1, kQuarterLow = -0x1.ee59d9cceba4p-51;
  static constexpr double kHalfHigh = 0x1.921fb54442d18p+0, kHalfLow = 0x1.1a62633145c07p-54,
                          kPiHigh = 0x1.921fb54442d18p+1, kPiLow = 0x1.1a62633145c07p-53;
  static constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  static constexpr double kPowerPlain = 1021, kPowerLow = -1080, kPowerHigh = 1025;
  static constexpr double kWide = 268435456;
  static constexpr double kCubeScale = 18014398509481984., kCubeBack = 0x1p-18;
  static constexpr double kSquareHigh = 0x1p510, kDown = 0x1p-600, kUp = 0x1p600, kSquareLow = 0x1p-460,
                          kRaise = 0x1p600, kLower = 0x1p-600;
};
template <class V>
using ElementaryOf = Elementary<typename V::value_type>;

template <class T, class A>
KASSETTE_FN bool any(const xsimd::batch_bool<T, A>& c) {
  return xsimd::any(c);
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> multiply_add(const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b,
                                            const xsimd::batch<T, A>& c) {
  return m::fma(a, b, c);
}
template <class V>
KASSETTE_FN V infinity() {
  return V(std::numeric_limits<typename V::value_type>::infinity());
}
template <class V>
KASSETTE_FN V not_a_number() {
  return V(std::numeric_limits<typename V::value_type>::quiet_NaN());
}
/// y, with f(x) of a scalar in the lanes that are not plain.
template <class V, class Plain, class F>
KASSETTE_FN V patched(const V& x, const V& y, const Plain& plain, F f) {
  using T = typename V::value_type;
  alignas(64) T in[V::size], out[V::size], is_plain[V::size];
  x.store_aligned(in);
  y.store_aligned(out);
  m::select(plain, V(1), V(0)).store_aligned(is_plain);
  for (std::size_t i = 0; i < V::size; ++i)
    if (is_plain[i] == 0) out[i] = f(in[i]);
  return V::load_aligned(out);
}

// --- signs and rounding ----------------------------------------------------------------------------------------------
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> copysign(const xsimd::batch<T, A>& size, const xsimd::batch<T, A>& sign) {
  using V = xsimd::batch<T, A>;
  using B = BitsOf<V>;
  return same_bits<V>((bits(size) & ~B(Constants<T>::kSign)) | (bits(sign) & B(Constants<T>::kSign)));
}
// A result has the sign of x, also where it is zero.
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> floor(const xsimd::batch<T, A>& x) {
  using V = xsimd::batch<T, A>;
  const V y = m::round_even(x);
  return m::copysign(m::select(y > x, y - V(1), y), x);
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> ceil(const xsimd::batch<T, A>& x) {
  using V = xsimd::batch<T, A>;
  const V y = m::round_even(x);
  return m::copysign(m::select(y < x, y + V(1), y), x);
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> trunc(const xsimd::batch<T, A>& x) {
  using V = xsimd::batch<T, A>;
  const V size = xsimd::abs(x), y = m::round_even(size);
  return m::copysign(m::select(y > size, y - V(1), y), x);
}

// --- tan -------------------------------------------------------------------------------------------------------------
template <class V>
KASSETTE_FN V tan_near(const V& x) {
  using C = Of<V>;
  const Angle<V> a = m::angle(x);
  const V z = a.r * a.r, r = a.r;
  // tan(r) = r + (sin(r) - r + r (1 - cos(r))) / cos(r), of which the second part is at most a quarter.
  const V sine = r * z * m::polynomial(z, C::kSin), cosine = z * m::fma(z, m::polynomial(z, C::kCos), V(-0.5f));
  const V bent = m::fma(-r, cosine, sine) / (V(1) + cosine) + m::fma(a.low, z, a.low);  // the slope is about 1 + r^2
  const V y = r + bent, low = (r - y) + bent, inverse = V(-1) / y;
  const V odd = m::fma(inverse, m::fma(inverse, low, m::fma(inverse, y, V(1))), inverse);
  return m::select(m::odd_lanes<V>(bits(a.turns)), odd, m::select(x == V(0), x, y));  // keeps -0
}
/// Lanes with large angles, infinities or NaN call the C library.
template <class V>
__attribute__((noinline)) V tan_far(const V& x) {
  using T = typename V::value_type;
  const auto plain = xsimd::abs(x) <= V(Of<V>::kAngle);
  return m::patched(
      x, m::tan_near(m::select(plain, x, V(0))), plain, [](T p) __attribute__((always_inline)) { return m::tan(p); });
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> tan(const xsimd::batch<T, A>& x) {
  using V = xsimd::batch<T, A>;
  if (__builtin_expect(!xsimd::all(xsimd::abs(x) <= V(Constants<T>::kAngle)), 0)) return m::tan_far(x);
  return m::tan_near(x);
}

// --- asin, acos ------------------------------------------------------------------------------------------------------
/// asin(s) = s + bent.
template <class V>
struct HalfAsin {
  V s, bent;
};
/// With s = |x| up to 1/2. Beyond it, where `steep`, s = sqrt((1 - |x|) / 2), so that asin(s) is a half of acos |x|.
template <class V, class Mask>
KASSETTE_FN HalfAsin<V> half_asin(const V& size, const Mask& steep) {
  const V z = m::select(steep, (V(1) - size) * V(0.5f), size * size), s = m::select(steep, m::sqrt(z), size);
  return {s, s * (z * m::polynomial(z, ElementaryOf<V>::kAsin))};
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> asin(const xsimd::batch<T, A>& x) {
  using V = xsimd::batch<T, A>;
  using P = Elementary<T>;
  const V size = xsimd::abs(x);
  const auto steep = size > V(0.5f);
  const HalfAsin<V> h = m::half_asin(size, steep);
  const V far = (V(P::kHalfHigh) - (h.s + h.s)) - (h.bent + h.bent - V(P::kHalfLow));
  return m::flip_sign(m::select(steep, far, h.s + h.bent), x);
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> acos(const xsimd::batch<T, A>& x) {
  using V = xsimd::batch<T, A>;
  using P = Elementary<T>;
  const V size = xsimd::abs(x);
  const auto steep = size > V(0.5f);
  const HalfAsin<V> h = m::half_asin(size, steep);
  const V y = h.s + h.bent, twice = y + y;
  const V far = m::select(x < V(0), V(P::kPiHigh) - (twice - V(P::kPiLow)), twice);
  return m::select(steep, far, V(P::kHalfHigh) - (m::flip_sign(y, x) - V(P::kHalfLow)));
}

// --- atan, atan2 -----------------------------------------------------------------------------------------------------
/// atan(q) + n pi / 4, for |q| <= 0.56 and n from 0 to 4.
template <class V>
KASSETTE_FN V arc(const V& q, const V& n) {
  using P = ElementaryOf<V>;
  const V z = q * q, y = m::fma(q, z * m::polynomial(z, P::kAtan), q);
  return n * V(P::kQuarterHigh) + (y + n * V(P::kQuarterLow));
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> atan(const xsimd::batch<T, A>& x) {
  using V = xsimd::batch<T, A>;
  const V size = xsimd::abs(x);
  const auto middle = size > V(0.56f), large = size > V(1.78f);
  const V above = m::select(large, V(-1), m::select(middle, size - V(1), size)),
          below = m::select(large, size, m::select(middle, size + V(1), V(1)));
  return m::flip_sign(m::arc(above / below, m::select(large, V(2), m::select(middle, V(1), V(0)))), x);
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> atan2(const xsimd::batch<T, A>& y, const xsimd::batch<T, A>& x) {
  using V = xsimd::batch<T, A>;
  const V a = xsimd::abs(y), b = xsimd::abs(x);
  const auto steep = a > b;
  V least = m::select(steep, b, a), most = m::select(steep, a, b);
  const auto ends = (least == m::infinity<V>()) | (most == V(0));  // two infinities are as two ones, zeros as 0 and 1
  least = m::select(ends & (most == m::infinity<V>()), V(1), least);
  most = m::select(ends, V(1), most);
  const V scale = m::select(most > V(Constants<T>::kLargest / 4), V(0.25f), V(1));  // the sum must not overflow
  least = least * scale;
  most = most * scale;
  const auto middle = least > V(0.56f) * most;
  const V q = m::select(middle, least - most, least) / m::select(middle, least + most, most);
  // The angle is q + n pi / 4 in its octant; mirrored at pi / 4 if steep, and at pi / 2 to the left.
  const auto left = m::flip_sign(V(1), x) < V(0);
  V n = m::select(middle, V(1), V(0)), sign(1);
  n = m::select(steep, V(2) - n, n);
  sign = m::select(steep, -sign, sign);
  n = m::select(left, V(4) - n, n);
  sign = m::select(left, -sign, sign);
  return m::flip_sign(m::arc(sign * q, n), y);
}

// --- sinh, cosh ------------------------------------------------------------------------------------------------------
/// exp(x) / 2 for x from kExpPlain on.
template <class V>
__attribute__((noinline)) V half_exp_far(const V& x) {
  const V y = m::exp(x - V(Of<V>::kLn2High));  // the difference is exact
  return m::select(y == m::infinity<V>(), y, m::fma(-y, V(Of<V>::kLn2Low), y));
}
/// (exp |x| - exp(-|x|)) / 2 or, with kSign = 1, their sum.
template <int kSign, class V>
KASSETTE_FN V half_exps(const V& size) {
  const V plain(Of<V>::kExpPlain), e = m::exp(m::select(size > plain, plain, size));
  const V y = m::fma(e, V(0.5f), V(kSign * 0.5f) / e);
  if (__builtin_expect(xsimd::all(size <= plain), 1)) return y;
  return m::select(size > plain, m::half_exp_far(size), y);
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> sinh(const xsimd::batch<T, A>& x) {
  using V = xsimd::batch<T, A>;
  const V size = xsimd::abs(x), z = size * size;
  const V flat = m::fma(size * z, m::polynomial(z, Elementary<T>::kSinh), size);
  return m::flip_sign(m::select(size <= V(1), flat, m::half_exps<-1>(size)), x);
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> cosh(const xsimd::batch<T, A>& x) {
  return m::half_exps<1>(xsimd::abs(x));
}

// --- asinh, acosh, atanh ---------------------------------------------------------------------------------------------
/// log(1 + x + low) for finite x > -1; where `wide`, log(2 x).
template <class V, class Mask>
KASSETTE_FN V log1p_of(const V& x, const V& low, const Mask& wide) {
  const V u = x + V(1), one = u - x;  // 1, up to the rounding of u
  const V lost = ((V(1) - one) + (x - (u - one))) + low;
  return m::log_near<true>(m::select(wide, x, u), m::select(wide, V(0), lost / u), m::select(wide, V(-1), V(0)));
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> asinh(const xsimd::batch<T, A>& x) {
  using V = xsimd::batch<T, A>;
  const V size = xsimd::abs(x);
  const auto wide = size > V(Elementary<T>::kWide);
  const V a = m::select(wide, V(1), size), square = a * a;
  const V more = square / (m::sqrt(square + V(1)) + V(1)), u = a + more;  // asinh(a) = log(1 + a + more)
  const V y = m::log1p_of(m::select(wide, size, u), (a - u) + more, wide);
  const auto plain = (size > V(0)) & (size <= V(Constants<T>::kLargest));
  return m::select(plain, m::flip_sign(y, x), x);
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> acosh(const xsimd::batch<T, A>& x) {
  using V = xsimd::batch<T, A>;
  const auto wide = x > V(Elementary<T>::kWide);
  const V t = m::select(wide, V(1), x - V(1));
  const V root = m::sqrt(m::fma(t, t, t + t)), u = t + root;  // acosh(1 + t) = log(1 + t + root)
  const V y = m::log1p_of(m::select(wide, x, u), (root - u) + t, wide);
  return m::select(x < V(1), m::not_a_number<V>(), m::select(x <= V(Constants<T>::kLargest), y, x));
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> atanh(const xsimd::batch<T, A>& x) {
  using V = xsimd::batch<T, A>;
  const V size = xsimd::abs(x), twice = size + size;
  const auto flat = size <= V(0.5f), inside = (size > V(0)) & (size < V(1));
  // atanh(x) = log(1 + 2 x / (1 - x)) / 2, and 2 x / (1 - x) = 2 x + 2 x^2 / (1 - x)
  const V more = m::select(flat, twice * size, twice) / (V(1) - size), u = m::select(flat, twice + more, more);
  const V low = m::select(flat, (twice - u) + more, V(0));
  const V y = m::log1p_of(m::select(inside, u, V(1)), m::select(inside, low, V(0)), size < V(0)) * V(0.5f);
  const V edge = m::select(size == V(1), m::infinity<V>(), m::not_a_number<V>());
  return m::select(x == V(0), x, m::flip_sign(m::select(inside, y, edge), x));
}

// --- exp2, log2, log10 -----------------------------------------------------------------------------------------------
/// 2^x = 2^n (1 + r + bent), as in ExpParts.
template <class V>
KASSETTE_FN ExpParts<V> exp2_parts(const V& x) {
  using C = Of<V>;
  const V shifted = x + V(C::kRounder), n = shifted - V(C::kRounder), r = (x - n) * V(ElementaryOf<V>::kLn2);
  return {shifted, n, r, r * r * m::polynomial(r, C::kExp)};
}
template <class V>
__attribute__((noinline)) V exp2_far(const V& x) {
  using C = Of<V>;
  using P = ElementaryOf<V>;
  const ExpParts<V> e = m::exp2_parts(xsimd::max(V(P::kPowerLow), xsimd::min(V(P::kPowerHigh), x)));
  // 2^n as a product of two normal factors; only the multiplication by the second one rounds.
  const V half = m::fma(e.n, V(0.5f), V(C::kRounder)), rest = (e.n - (half - V(C::kRounder))) + V(C::kRounder);
  return m::select(m::is_nan(x), x, (e.r + e.bent + V(1)) * m::power_of_two(half) * m::power_of_two(rest));
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> exp2(const xsimd::batch<T, A>& x) {
  using V = xsimd::batch<T, A>;
  if (__builtin_expect(!xsimd::all(xsimd::abs(x) <= V(Elementary<T>::kPowerPlain)), 0)) return m::exp2_far(x);
  const ExpParts<V> e = m::exp2_parts(x);
  return same_bits<V>(bits(e.r + e.bent + V(1)) + (bits(e.shifted) << Constants<T>::kMantissa));
}

/// 1 / log(base) as a sum, and the logarithm of one number.
struct Log2 {
  static constexpr double kHigh = 0x1.71547652b82fep+0, kLow = 0x1.777d0ffda0d24p-56;
  template <class T>
  KASSETTE_FN T operator()(T x) const {
    return m::log2(x);
  }
};
struct Log10 {
  static constexpr double kHigh = 0x1.bcb7b1526e50ep-2, kLow = 0x1.95355baaafad3p-57;
  template <class T>
  KASSETTE_FN T operator()(T x) const {
    return m::log10(x);
  }
};
template <class Base, class V, class Plain>
__attribute__((noinline)) V log_far(const V& x, const V& y, const Plain& plain) {
  return m::patched(x, y, plain, Base());
}
/// The logarithm of a base. Lanes that are not positive and normal call the C library.
template <class Base, class T, class A>
KASSETTE_FN xsimd::batch<T, A> log_of_base(const xsimd::batch<T, A>& x) {
  using V = xsimd::batch<T, A>;
  using C = Constants<T>;
  const auto plain = (x >= V(C::kSmallest)) & (x <= V(C::kLargest));
  V y;
  if constexpr (sizeof(T) == 4) {
    const auto wide = Doubles<A>::of(x);
    using D = xsimd::batch<double, A>;
    y = Doubles<A>{m::log_of_float(wide.low) * D(Base::kHigh), m::log_of_float(wide.high) * D(Base::kHigh)}.floats();
  } else {
#ifdef KASSETTE_HAS_FMA
    const Pair<V> log = m::product(m::long_log(x), Pair<V>{V(Base::kHigh), V(Base::kLow)});
    y = log.high + log.low;
#else
    return m::patched(x, x, x < x, Base());
#endif
  }
  return __builtin_expect(xsimd::all(plain), 1) ? y : m::log_far<Base>(x, y, plain);
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> log2(const xsimd::batch<T, A>& x) {
  return m::log_of_base<Log2>(x);
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> log10(const xsimd::batch<T, A>& x) {
  return m::log_of_base<Log10>(x);
}

// --- cbrt, hypot -----------------------------------------------------------------------------------------------------
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> cbrt(const xsimd::batch<T, A>& x) {
  using V = xsimd::batch<T, A>;
  using B = BitsOf<V>;
  using C = Constants<T>;
  using P = Elementary<T>;
  const V size = xsimd::abs(x);
  const auto small = size < V(C::kSmallest);
  const V a = m::select(small, size * V(P::kCubeScale), size);
  // a = 2^k f, sqrt(1/2) <= f < sqrt(2), and k = 3 n + rest with a rest of -1, 0 or 1.
  const B moved = bits(a) + B(C::kOne - C::kSqrtHalf);
  const V k = same_bits<V>((moved >> C::kMantissa) | B(C::kExponentBase)) - V(C::kExponentBias);
  const V f = same_bits<V>((moved & B(C::kMantissaMask)) + B(C::kSqrtHalf));
  const V shifted = m::fma(k, V(T(1) / 3), V(C::kRounder)), rest = k - (shifted - V(C::kRounder)) * V(3);
  const auto less = rest<V(0), more = rest> V(0);
  const V g = f * m::select(less, V(0.5f), m::select(more, V(2), V(1)));
  const V first = m::polynomial(f, P::kCbrt) * m::select(less, m::number<V>(0x1.965fea53d6e3dp-1),
                                                         m::select(more, m::number<V>(0x1.428a2f98d728bp+0), V(1)));
  // One step of Halley's iteration, with the remainder g - first^3 to more than the precision of T.
  const V square = first * first, cube = square * first;
  V remainder = m::fma(-first, square, g);
#ifdef KASSETTE_HAS_FMA
  remainder = m::fma(-first, m::fma(first, first, -square), remainder);
#endif
  const V y = m::fma(first, remainder / (cube + cube + g), first) * m::power_of_two(shifted);
  const auto plain = (size > V(0)) & (size <= V(C::kLargest));
  return m::select(plain, m::flip_sign(y * m::select(small, V(P::kCubeBack), V(1)), x), x);
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> hypot(const xsimd::batch<T, A>& x, const xsimd::batch<T, A>& y) {
  using V = xsimd::batch<T, A>;
  using P = Elementary<T>;
  const V a = xsimd::abs(x), b = xsimd::abs(y);
  const auto swap = a > b;
  const V most = m::select(swap, a, b), least = m::select(swap, b, a);
  const auto large = most > V(P::kSquareHigh), small = most < V(P::kSquareLow);
  const V scale = m::select(large, V(P::kDown), m::select(small, V(P::kRaise), V(1))),
          back = m::select(large, V(P::kUp), m::select(small, V(P::kLower), V(1)));
  const V p = most * scale, q = least * scale;
  const V length = m::sqrt(m::fma(p, p, q * q)) * back;
  return m::select((a == m::infinity<V>()) | (b == m::infinity<V>()), m::infinity<V>(), length);
}

// --- parts of numbers ------------------------------------------------------------------------------------------------
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> ldexp(const xsimd::batch<T, A>& x, const xsimd::batch<T, A>& n) {
  return m::lanes(
      x, n, [](T p, T q) __attribute__((always_inline)) { return m::ldexp(p, q); });
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> nextafter(const xsimd::batch<T, A>& x, const xsimd::batch<T, A>& y) {
  return m::lanes(
      x, y, [](T p, T q) __attribute__((always_inline)) { return m::nextafter(p, q); });
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> frexp_exponent(const xsimd::batch<T, A>& x) {
  return m::lanes(
      x, x, [](T p, T) __attribute__((always_inline)) { return m::frexp_exponent(p); });
}

}  // namespace KASSETTE_LEVEL
}  // namespace m
}  // namespace kassette::ops
