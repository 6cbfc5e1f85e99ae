// ops/random/draws.h - the arithmetic of random draws, on single numbers (CUDA) and on vectors of any width (every CPU
// level). All of them give the same bits: only additions, multiplications, divisions and square roots are used, in a
// fixed order and without fused multiply-adds.
#pragma once
#include <cstdint>
#include <cstring>

#include "ops/math/math.h"

namespace kassette::ops {
namespace draws {

// L describes the numbers, which are scalars or vectors: types F (floats), U and I (unsigned and signed integers of the
// same size), kBits (bits of a number), real(I) (conversion to F) and root(F) (square root).

template <class To, class From>
KASSETTE_FN To same(From v) {  // bit_cast
  static_assert(sizeof(To) == sizeof(From));
  To r;
  std::memcpy(&r, &v, sizeof r);
  return r;
}
template <class V, class T, int n>
KASSETTE_FN V polynomial(V x, const T (&c)[n]) {
  V r = c[n - 1] - V{};
  for (int i = n - 2; i >= 0; --i) r = r * x + c[i];
  return r;
}

/// Sets x and y to a pair of independent standard normals (Box and Muller, 1958). The radius is sqrt(-2 log u) with u
/// in (0, 1]; the angle is t right angles, in the quadrant around 0. The top bit of `swap` mirrors the point at the
/// diagonal, the top bit of `sign` at the origin.
template <class D, class V = typename D::F, class U = typename D::U>
KASSETTE_FN void normal_pair(V u, V t, U swap, U sign, V& x, V& y) {
  using L = typename D::Lanes;
  V log_u = D::log_below_one(u), r = L::root(-log_u - log_u), s, c;
  D::sine_cosine(t, s, c);
  constexpr int kTop = L::kBits - 1;
  U top = (U{} + 1) << kTop, swapped = U{} - (swap >> kTop), flip = sign & top;
  U a = same<U>(r * c), b = same<U>(r * s), mixed = (a ^ b) & swapped;
  x = same<V>(a ^ mixed ^ flip);
  y = same<V>(b ^ mixed ^ flip);
}

// The coefficients are Chebyshev fits, computed with 40 digits, to the functions named, over the ranges that occur.

/// Draws of float32 from random words of 32 bits.
template <class L>
struct Singles {
  using Lanes = L;
  using F = typename L::F;
  using U = typename L::U;
  using I = typename L::I;

  /// The upper 24 bits as a float in [0, 1).
  KASSETTE_FN static F uniform(U w) { return L::real(same<I>(w >> 8)) * 0x1p-24f; }
  /// The upper 31 bits of a, plus one half, give u in (0, 1]. Two bits of b give the quadrant, and the other 30 the
  /// angle.
  KASSETTE_FN static void normals(U a, U b, F& x, F& y) {
    normal_pair<Singles>(L::real(same<I>(a >> 1)) * 0x1p-31f + 0x1p-32f, L::real(same<I>(b << 2)) * 0x1p-32f, b, b << 1,
                         x, y);
  }
  KASSETTE_FN static F truncated(U w) { return truncated_quantile(L::real(same<I>(w)) * 0x1p-31f + 0x1p-32f); }

  /// log(x) for 2^-33 <= x <= 1: x = 2^e (1 + f) with 1 + f between sqrt(1/2) and sqrt(2).
  KASSETTE_FN static F log_below_one(F x) {
    constexpr std::int32_t kRootHalf = 0x3f3504f3;
    I i = same<I>(x) - kRootHalf;
    F e = L::real(i >> 23);
    F f = same<F>((i & 0x7fffff) + kRootHalf) - 1.0f;
    constexpr float c[] = {0.333333313f,  -0.24999997f, 0.200007156f,  -0.166678026f, 0.142490581f,
                           -0.124256872f, 0.116854198f, -0.114797339f, 0.0697161183f};  // (log(1+f) - f + f^2/2) / f^3
    F f2 = f * f;
    F rest = f2 * f * polynomial(f, c) - 0.5f * f2;
    constexpr float kLow = -0x1.bd0106p-13f, kHigh = 0x1.63p-1f;  // log(2) in two parts: e * kHigh is exact
    return (e * kLow + rest + f) + e * kHigh;
  }

  /// Sine and cosine of t right angles, |t| <= 1/2.
  KASSETTE_FN static void sine_cosine(F t, F& s, F& c) {
    constexpr float a[] = {1.57079637f, -0.64596349f, 0.0796802193f, -0.00460214913f};
    constexpr float b[] = {1.0f, -1.23370051f, 0.253669202f, -0.0208600704f, 0.000903628068f};
    F z = t * t;
    s = t * polynomial(z, a);
    c = polynomial(z, b);
  }

  /// The quantile at (1 + v) / 2 of the standard normal truncated to (-2, 2), for v in (-1, 1). It is sqrt(2) erfinv(x)
  /// with x = v erf(sqrt(2)), and is computed as x q(-log(1 - x^2)).
  KASSETTE_FN static F truncated_quantile(F v) {
    constexpr float q[] = {1.25331414f,     0.328117192f,    0.0163305625f,    -0.00329360249f,
                           -0.00019492727f, 7.75767548e-05f, -2.26947964e-06f, -4.9904213e-07f};
    F x = v * 0.954499736f;
    F z = x * polynomial(-log_below_one(1.0f - x * x), q);
    constexpr float kEnd = 0x1.fffffep0f;
    z = z < kEnd ? z : kEnd - F{};
    return z > -kEnd ? z : -kEnd - F{};
  }
};

/// Draws of float64 from random words of 64 bits.
template <class L>
struct Doubles {
  using Lanes = L;
  using F = typename L::F;
  using U = typename L::U;

  /// The upper 53 bits as a number in [0, 1).
  KASSETTE_FN static F uniform(U w) { return upper53(w) * 0x1p-53; }
  /// The upper 53 bits of b give the angle, and the lowest two the quadrant.
  KASSETTE_FN static void normals(U a, U b, F& x, F& y) {
    normal_pair<Doubles>((upper53(a) + 0.5) * 0x1p-53, upper53(b) * 0x1p-53 - 0.5, b << 63, b << 62, x, y);
  }
  KASSETTE_FN static F truncated(U w) { return truncated_quantile((upper53(w) + 0.5) * 0x1p-52 - 1.0); }

  /// The upper 53 bits as a float with an integer value.
  KASSETTE_FN static F upper53(U w) {
    constexpr std::uint64_t kMagic = 0x4330000000000000u;  // 2^52, which makes the low bits of its mantissa an integer
    F high = same<F>((w >> 38) | kMagic) - 0x1p52, low = same<F>((w >> 11 & 0x7ffffffu) | kMagic) - 0x1p52;
    return high * 0x1p27 + low;
  }
  KASSETTE_FN static F log_below_one(F x) {
    constexpr std::uint64_t kRootHalf = 0x3fe6a09e667f3bcdu, kOne = 0x3ff0000000000000u;
    U i = same<U>(x) + (kOne - kRootHalf);
    F e = same<F>((i >> 52) | 0x4330000000000000u) - (4503599627370496.0 + 1023);
    F f = same<F>((i & 0xfffffffffffffu) + kRootHalf) - 1.0;
    constexpr double c[] = {0.66666666666666696, 0.39999999999898889, 0.28571428626253836, 0.22222211089379496,
                            0.18182892432536871, 0.15331611722055008, 0.14617807153417325};  // of s^2: log((1+s)/(1-s))
    F s = f / (f + 2.0), z = s * s;
    F rest = s * (z * polynomial(z, c));
    constexpr double kLow = 0x1.a39ef35793c76p-33, kHigh = 0x1.62e42feep-1;
    return (e * kLow + rest + 2.0 * s) + e * kHigh;
  }
  KASSETTE_FN static void sine_cosine(F t, F& s, F& c) {
    constexpr double a[] = {1.5707963267948966,     -0.64596409750624428,   0.079692626246043008,
                            -0.0046817541323409756, 0.00016044115074219091, -3.5986433529823099e-06,
                            5.6339337815378543e-08};
    constexpr double b[] = {1.0,
                            -1.2337005501361697,
                            0.2536695079010467,
                            -0.02086348076331121,
                            0.00091926027418315576,
                            -2.520203677046026e-05,
                            4.7106097267578228e-07,
                            -6.3212568696285881e-09};
    F z = t * t;
    s = t * polynomial(z, a);
    c = polynomial(z, b);
  }
  KASSETTE_FN static F truncated_quantile(F v) {
    constexpr double q[] = {
        1.2533141373155003,      0.32811687386921945,    0.016333236146925039,    -0.0033023324099102987,
        -0.00018108057207079288, 6.5918570918687314e-05, 2.8565763997447685e-06,  -1.4317191056762975e-06,
        -5.3117903819845517e-08, 3.2648738934715541e-08, 7.2744395800583906e-10,  -5.3471990887127856e-10,
        -1.1525573609117679e-10, 4.6612282063526243e-11, -5.5909240907970596e-12, 2.4970373885300149e-13};
    F x = v * 0.95449973610364158;
    F z = x * polynomial(-log_below_one(1.0 - x * x), q);
    constexpr double kEnd = 0x1.fffffffffffffp0;
    z = z < kEnd ? z : kEnd - F{};
    return z > -kEnd ? z : -kEnd - F{};
  }
};

}  // namespace draws
}  // namespace kassette::ops
