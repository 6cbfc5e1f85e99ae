// ops/math/special_math.h - error functions, the gamma function's relatives and Bessel functions: one code for
// numbers, CUDA and xsimd batches, from the functions of math.h and simd.h.
//
// tests/data/make_polynomials.py makes the polynomials, one for each function and dtype. Every lane computes every
// piece of its function, and takes its own. Errors found by tests/ops/elementwise/math_test.cpp and
// special_cases_test.cpp are below 1.2 ULP for erf, 2.6 for lgamma and erfinv, 3.9 for erfc, 4.5 for the others; around
// zeros that are no floats those of lgamma and digamma are below 4 units in the last place of 1.
#pragma once
#include "ops/math/math.h"

namespace kassette::ops {
namespace m {

/// The numbers that a V is made of: a batch's elements, or the type itself.
template <class V, bool = std::is_arithmetic_v<V>>
struct Elements {
  using Type = V;
};
template <class V>
struct Elements<V, false> {
  using Type = typename V::value_type;
};
template <class V>
inline constexpr bool is_single = sizeof(typename Elements<V>::Type) == 4;
template <class V>
KASSETTE_FN V limit_infinity() {
  return V(std::numeric_limits<typename Elements<V>::Type>::infinity());
}
template <class V>
KASSETTE_FN V limit_nan() {
  return V(std::numeric_limits<typename Elements<V>::Type>::quiet_NaN());
}

/// c0 + c1 x + c2 x^2 + ..., by Horner's rule. Coefficients are arguments, since an array is not known to CUDA.
template <class V>
KASSETTE_FN V horner(const V&, double c) {
  return m::number<V>(c);
}
template <class V, class... C>
KASSETTE_FN V horner(const V& x, double c, C... rest) {
  return m::multiply_add(m::horner(x, rest...), x, m::number<V>(c));
}
/// The least of x and a number, and the largest; NaN stays.
template <class V>
KASSETTE_FN V at_most(const V& x, double most) {
  return m::select(x > m::number<V>(most), m::number<V>(most), x);
}
template <class V>
KASSETTE_FN V at_least(const V& x, double least) {
  return m::select(x < m::number<V>(least), m::number<V>(least), x);
}

// ---- error functions ------------------------------------------------------------------------------------------------
/// erf(s) / s - 1 in z = s^2 up to 1.
template <class V>
KASSETTE_FN V erf_part(const V& z) {
  if constexpr (is_single<V>)
    return m::horner(z, 0x1.06eba8p-3, -0x1.81273ep-2, 0x1.ce2d1ep-4, -0x1.b7fb88p-6, 0x1.54187p-8, -0x1.a479eap-11,
                     0x1.4ac1a4p-14);
  else
    return m::horner(z, 0x1.06eba8214db69p-3, -0x1.812746b0379e6p-2, 0x1.ce2f21a042b32p-4, -0x1.b82ce31284ea4p-6,
                     0x1.565bcd0dbc15dp-8, -0x1.c02db3db018fbp-11, 0x1.f9a321dc22456p-14, -0x1.f4d1e388847f3p-17,
                     0x1.b9df276328e4ap-20, -0x1.5f1ef21b91138p-23, 0x1.f7b6306ec2d0cp-27, -0x1.38a1375425851p-30,
                     0x1.0608f5fa982dbp-34);
}
/// (1 + 2 x) exp(x^2) erfc(x) in t = (x - 3.75) / (x + 3.75), for x from 0.5 to 28.
template <class V>
KASSETTE_FN V erfcx_part(const V& t) {
  if constexpr (is_single<V>)
    return m::horner(t, 0x1.3ccdap+0, -0x1.1f369p-3, 0x1.d5f54ap-9, 0x1.510834p-4, -0x1.bdaafcp-4, 0x1.79d2bcp-4,
                     -0x1.e0b5dep-5, 0x1.d4b948p-6, -0x1.40d396p-7, 0x1.5b054cp-10, 0x1.7fe254p-12);
  else
    return m::horner(t, 0x1.3ccda0b5d5dc2p+0, -0x1.1f367683f89a7p-3, 0x1.d5f294815b0dap-9, 0x1.510169d0967c5p-4,
                     -0x1.bda9309a2b2e5p-4, 0x1.7a14188a9a6bp-4, -0x1.e0d0fa6d730b1p-5, 0x1.d0b0037d8ee1p-6,
                     -0x1.3f603c5234fe2p-7, 0x1.cc3a0e4f53b2bp-10, 0x1.33fb432c93868p-12, -0x1.303fa2917c12dp-12,
                     0x1.b13f6e4b35fbdp-15, 0x1.778b92d2f90c3p-16, -0x1.7fc955d323331p-17, -0x1.05684a2e13e8fp-20,
                     0x1.d2892428b285ap-20, -0x1.e466e6fc4699ap-25, -0x1.023672c0a30cep-22, 0x1.7a198cee4b0ebp-26,
                     0x1.a71db5946333dp-26, -0x1.7ca3857320ae3p-29);
}
/// erfc(x) for x from 0.5 on.
template <class V>
KASSETTE_FN V erfc_far(const V& from) {
  const V x = m::at_most(from, is_single<V> ? 11 : 28);  // erfc is 0 there
  // exp(-x^2): the rounding error of x^2 would be one of the result. x = high + low, whose products are exact (Dekker).
  const V split = x * V(is_single<V> ? 4097 : 134217729), high = split - (split - x), low = x - high;
  const V square = x * x, lost = ((high * high - square) + V(2) * high * low) + low * low;
  const V e = m::exp(-square), scaled = e - e * lost;
  return scaled * (m::erfcx_part((x - V(3.75f)) / (x + V(3.75f))) / (V(1) + V(2) * x));
}
template <class V>
KASSETTE_FN V erf(const V& x) {
  const V size = m::abs(x);
  const V near = m::multiply_add(size, m::erf_part(size * size), size);
  return m::copysign(m::select(size < V(1), near, V(1) - m::erfc_far(m::at_least(size, 0.5))), x);
}
template <class V>
KASSETTE_FN V erfc(const V& x) {
  const V size = m::abs(x), near = m::multiply_add(x, m::erf_part(x * x), x);
  const V far = m::erfc_far(m::at_least(size, 0.5));
  return m::select(size < V(0.5f), V(1) - near, m::select(x < V(0), V(2) - far, far));
}

/// erfinv(x) / x in u = w - 3.125 for w = -log(1 - x^2) up to 6.25.
template <class V>
KASSETTE_FN V erfinv_near(const V& u) {
  if constexpr (is_single<V>)
    return m::horner(u, 0x1.a755e8p+0, 0x1.ebd80cp-3, -0x1.8b6d32p-8, -0x1.84556ep-11, 0x1.87bf4ap-13, -0x1.d21e88p-17,
                     -0x1.75a5a8p-20, 0x1.c9be4ep-22, -0x1.9fec7cp-26, -0x1.3ec0bcp-28, 0x1.5ea51ep-31);
  else
    return m::horner(u, 0x1.a755e7c99ae86p+0, 0x1.ebd80d9b13df7p-3, -0x1.8b6c33114ee44p-8, -0x1.8457694834142p-11,
                     0x1.879c2a20d6e59p-13, -0x1.d1d1f7cb0596p-17, -0x1.6e8a53ee59ac2p-20, 0x1.c6b4f8aec4e42p-22,
                     -0x1.f36ce539f1a32p-26, -0x1.1a9eb6dea8c7p-28, 0x1.20f4eae393d1ap-30, -0x1.dc3dd7ad13ba7p-35,
                     -0x1.c89601f07d363p-37, 0x1.723099b188709p-39, -0x1.6d8fd0a09d029p-44, -0x1.683340cb3a1b4p-45,
                     0x1.db34faf858154p-48, -0x1.8ad0f3c55083fp-55, -0x1.2bdf46e998e63p-53, 0x1.22a1998878a66p-56,
                     0x1.51e6b42eac67p-60, -0x1.a5e13f6d9f623p-62, -0x1.3395ec0fc251cp-70, 0x1.fd8ae6eb87e8ap-69);
}
/// The same in u = sqrt(w) - 3.25 for w up to 16 (float: 17).
template <class V>
KASSETTE_FN V erfinv_far(const V& u) {
  if constexpr (is_single<V>)
    return m::horner(u, 0x1.8abcc4p+1, 0x1.0158ap+0, 0x1.5ffe96p-8, -0x1.ea7bc2p-9, 0x1.465abp-9, -0x1.c80bd4p-10,
                     0x1.fb4106p-11, -0x1.047af8p-12, -0x1.729454p-16);
  else
    return m::horner(u, 0x1.8abcc380d5a48p+1, 0x1.0158a6d641d47p+0, 0x1.5ffcfe5b74fe1p-8, -0x1.ebadabb94b9eap-9,
                     0x1.468eeca6040e9p-9, -0x1.ba9241042f27dp-10, 0x1.f3cc55652a48p-11, -0x1.7448b35937bdcp-12,
                     0x1.932d34f958e1fp-16, 0x1.1e69a26fe6913p-14, -0x1.8cf033f36a0a7p-15, 0x1.a2683caef2697p-17,
                     0x1.889a18dbe7cdap-19, -0x1.0c451050f892dp-18, 0x1.928a0026dea67p-20, -0x1.370851e2e6ab8p-27,
                     -0x1.2408d6639b343p-22, 0x1.f0a5fec00b4f8p-24, 0x1.e61dee7e1b7dbp-31, -0x1.475ccb2ff971dp-27);
}
/// The same in u = sqrt(w) - 5, for doubles close to 1.
template <class V>
KASSETTE_FN V erfinv_end(const V& u) {
  return m::horner(u, 0x1.3664ddd1ad7fbp+2, 0x1.02a30d1fba104p+0, -0x1.22ea5df041185p-13, -0x1.c2f36a9e64862p-13,
                   0x1.3ebf4eb042d78p-14, -0x1.4a349192eee67p-16, 0x1.2fbd2988f8df1p-18, -0x1.0a8fb5523f394p-20,
                   0x1.ebc8feaf8efd4p-23, -0x1.22500101c9e52p-24, 0x1.f4baee7f6075fp-26, -0x1.04d7e43d6b52bp-26,
                   0x1.05c44db039fb4p-27, -0x1.e7d73e9ca93b9p-29, 0x1.9dd1424042e97p-30, -0x1.afdbd0a3c02c5p-32,
                   -0x1.d0dc8595cbedbp-36, 0x1.1c8a752108b87p-35);
}
template <class V>
KASSETTE_FN V erfinv(const V& x) {
  const V size = m::abs(x);
  const auto small = size < V(0.5f), inside = size < V(1);
  const V square = m::select(small, size * size, V(0)),
          rest = m::select(inside, m::select(small, V(0.75f), (V(1) - size) * (V(1) + size)), V(0.75f));
  const V w = -m::select(small, m::log1p(-square), m::log(rest));
  V y = m::erfinv_near(w - V(3.125f));
  const auto far = w > V(6.25f);
  if (m::any(far)) {
    const V root = m::sqrt(w);
    V beyond = m::erfinv_far(root - V(3.25f));
    if constexpr (!is_single<V>) beyond = m::select(root > V(4), m::erfinv_end(root - V(5)), beyond);
    y = m::select(far, beyond, y);
  }
  const V edge = m::select(size == V(1), m::copysign(m::limit_infinity<V>(), x), m::limit_nan<V>());
  return m::select(inside, x * y, edge);
}

// ---- gamma function -------------------------------------------------------------------------------------------------
/// lgamma(2 + u) / (u (1 + u)) for |u| <= 1.
template <class V>
KASSETTE_FN V lgamma_part(const V& u) {
  if constexpr (is_single<V>)
    return m::horner(u, 0x1.b0ee6p-2, -0x1.9ae648p-4, 0x1.0e0c8p-5, -0x1.95d4b8p-7, 0x1.47a56ep-8, -0x1.138518p-9,
                     0x1.dd5ba6p-11, -0x1.be4592p-12, 0x1.9ab2c2p-13, -0x1.b78098p-15, 0x1.53290ep-16, -0x1.4502p-15,
                     0x1.442456p-16);
  else
    return m::horner(u, 0x1.b0ee6072093cep-2, -0x1.9ae6509ea109ep-4, 0x1.0e0c9df2935d8p-5, -0x1.95ce223a9d2e8p-7,
                     0x1.47974853952bp-8, -0x1.145121f9540bbp-9, 0x1.dfebcf9f0b152p-11, -0x1.a96a403c6dc51p-12,
                     0x1.7ed730446a4c6p-13, -0x1.5c86aefc38bc7p-14, 0x1.402f7bc5ebbaap-15, -0x1.28511b651ef51p-16,
                     0x1.13db977381118p-17, -0x1.02225ebe7909p-18, 0x1.e644464992e7ap-20, -0x1.cb4db22e386c6p-21,
                     0x1.a8e2b00c2c4e6p-22, -0x1.8f9039578f23ap-23, 0x1.c0ab56d70fe1dp-24, -0x1.bfca8c4df2272p-25,
                     0x1.85949476b4dc6p-28, -0x1.84088ccbdfba9p-31, 0x1.18b3c571217e6p-26, -0x1.352a92060263fp-27,
                     -0x1.2bd1db3da948bp-28, 0x1.5581ea2796e0cp-29, 0x1.b2fa85396b0b1p-30, -0x1.c3825bb42835fp-31);
}
/// sin(pi x), exactly zero at integers.
template <class V>
KASSETTE_FN V sin_pi(const V& x) {
  const V n = m::round_even(x), half = n * V(0.5f);
  const V s = m::sin((x - n) * m::number<V>(3.141592653589793));
  const V y = m::select(m::round_even(half) == half, s, -s);
  return m::select(s == V(0), m::copysign(s, x), y);
}
/// log |gamma(x)| for x >= 0.
template <class V>
KASSETTE_FN V lgamma_positive(const V& x) {
  // Up to 3, by the polynomial; up to 8, by gamma(x + 1) = x gamma(x) from there.
  const auto low = x < V(1), high = x >= V(8);
  V y = m::select(high, V(2), x), product = m::select(low, x, V(1));
  for (int i = 0; i < 5; ++i) {
    const auto above = y >= V(3);
    y = m::select(above, y - V(1), y);
    product = m::select(above, product * y, product);
  }
  const V u = m::select(low, y - V(1), y - V(2));
  const V log = m::log(m::select(high, x, product));
  const V near = m::select(low, -log, log) + u * (u + V(1)) * m::lgamma_part(u);
  // Stirling's series: (x - 1/2) (log(x) - 1) + log(2 pi) / 2 - 1/2 + 1 / (12 x) - ...
  const V inverse = V(1) / m::select(high, x, V(8)), z = inverse * inverse;
  const V tail = inverse * m::horner(z, 1. / 12, -1. / 360, 1. / 1260, -1. / 1680, 1. / 1188, -691. / 360360, 1. / 156,
                                     -3617. / 122400);
  const V far = (x - V(0.5f)) * (log - V(1)) + (m::number<V>(0.4189385332046727) + tail);
  return m::select(high, far, near);
}
/// log |gamma(x)|; inf at 0 and at negative integers.
template <class V>
KASSETTE_FN V lgamma(const V& x) {
  const V size = m::abs(x), y = m::lgamma_positive(size);
  const auto mirrored = x < m::number<V>(-1e-20);  // above that it is as at |x|
  V result = y;
  if (m::any(mirrored)) {
    // gamma(-x) gamma(x) = -pi / (x sin(pi x))
    const V a = m::select(mirrored, size, V(0.5f));
    const V sine = m::abs(m::sin_pi(a)), other = m::log(m::number<V>(3.141592653589793) / (a * sine)) - y;
    result = m::select(mirrored, m::select(sine == V(0), m::limit_infinity<V>(), other), y);
  }
  return m::select(size == m::limit_infinity<V>(), size, result);
}

/// digamma(y) / (y - its root) in u = y - 1.5, for y from 1 to 2.
template <class V>
KASSETTE_FN V digamma_part(const V& u) {
  if constexpr (is_single<V>)
    return m::horner(u, 0x1.e6f0ccp-1, -0x1.b1cb68p-2, 0x1.eca19cp-3, -0x1.2febb2p-3, 0x1.850bf2p-4, -0x1.fc5f74p-5,
                     0x1.4ee20cp-5, -0x1.a661d8p-6, 0x1.1635acp-6, -0x1.0c763ep-6, 0x1.6c5544p-7);
  else
    return m::horner(u, 0x1.e6f0cbb873617p-1, -0x1.b1cb63005ee98p-2, 0x1.eca189b8e6d99p-3, -0x1.2feeeb98a7a33p-3,
                     0x1.8512e5905da56p-4, -0x1.fb44202a07294p-5, 0x1.4de9aa059a79cp-5, -0x1.b9f8b124a2317p-6,
                     0x1.256475f13edbfp-6, -0x1.8635627b11374p-7, 0x1.03c006a727d2ap-7, -0x1.5a06cc7bfacc7p-8,
                     0x1.cd3e742ae70f4p-9, -0x1.336b4340f8e27p-9, 0x1.980d9d4613db3p-10, -0x1.0fcd4b1a55c2ap-10,
                     0x1.7b4a112ea9c0dp-11, -0x1.fc46db450df5ap-12, 0x1.dc1b2c8f048cep-13, -0x1.343be1877063fp-13,
                     0x1.10795cc1e8c9cp-12, -0x1.7247aa2c95f5cp-13);
}
/// The derivative of lgamma. -inf at 0, inf at -0, NaN at negative integers.
template <class V>
KASSETTE_FN V digamma(const V& x) {
  const auto negative = x < V(0);
  const V a = m::select(negative, V(1) - x, x);  // digamma(1 - x) = digamma(x) + pi / tan(pi x)
  const auto low = a < V(1), high = a >= V(10);
  // digamma(a + 1) = digamma(a) + 1 / a, up or down to [1, 2].
  V y = m::select(high, V(1), m::select(low, a + V(1), a));
  V sum = m::select(low, V(-1) / a, V(0));
  for (int i = 0; i < 8; ++i) {
    const auto above = y > V(2);
    y = m::select(above, y - V(1), y);
    sum = m::select(above, sum + V(1) / y, sum);
  }
  // The root as a sum.
  const double root = is_single<V> ? 0x1.762d86p+0 : 0x1.762d86356be3fp+0;
  const double root_low = is_single<V> ? 0x1.ab5f2p-27 : 0x1.b86a722197829p-54;
  const V near = sum + ((y - m::number<V>(root)) - m::number<V>(root_low)) * m::digamma_part(y - V(1.5f));
  const V b = m::select(high, a, V(10)), inverse = V(1) / b, z = inverse * inverse;
  const V far = m::log(b) - inverse * V(0.5f) -
                z * m::horner(z, 1. / 12, -1. / 120, 1. / 252, -1. / 240, 1. / 132, -691. / 32760, 1. / 12);
  V result = m::select(high, far, near);
  if (m::any(negative)) {
    const V r = m::select(negative, x - m::round_even(x), V(0.25f));
    const V pi = m::number<V>(3.141592653589793), turned = result - pi / m::tan(pi * r);
    result = m::select(negative, m::select(r == V(0), m::limit_nan<V>(), turned), result);
  }
  return m::select(x == V(0), -m::copysign(m::limit_infinity<V>(), x), result);
}
/// x to the power n >= 0, a whole number that is the same for all lanes.
template <class V>
KASSETTE_FN V whole_power(V x, int n) {
  V result(1);
  for (; n; n >>= 1) {
    if (n & 1) result = result * x;
    x = x * x;
  }
  return result;
}
/// Hurwitz's zeta function, the sum of (x + k)^-s over k >= 0, for x >= 0 and a whole s >= 2: ten terms, and the others
/// by the formula of Euler and Maclaurin.
template <class V>
KASSETTE_FN V hurwitz_zeta(int s, const V& x) {
  V sum(0);
  for (int k = 9; k >= 0; --k) sum = sum + m::whole_power(V(1) / (x + V(k)), s);
  const V inverse = V(1) / (x + V(10)), z = inverse * inverse;
  const V first = m::whole_power(inverse, s - 1), power = first * inverse;
  // B_2j / (2 j)! s (s + 1) ... (s + 2 j - 2) for j = 1, 2, ...
  const double bernoulli[] = {1. / 12,           -1. / 720,
                              1. / 30240,        -1. / 1209600,
                              1. / 47900160.,    -691. / 1307674368000.,
                              1. / 74724249600., -3617. / 10670622842880000.};
  V tail(0);
  for (int j = 7; j >= 0; --j) {
    double factor = s;
    for (int i = 1; i <= 2 * j; ++i) factor *= s + i;
    tail = tail * z + m::number<V>(bernoulli[j] * factor);
  }
  return ((power * inverse * tail + power * V(0.5f)) + first * m::number<V>(1. / (s - 1))) + sum;
}
/// The derivative of order n of digamma; NaN or inf at 0 and negative integers.
template <class V>
KASSETTE_FN V polygamma(int n, const V& x) {
  if (n == 0) return m::digamma(x);
  const auto negative = x < V(0);
  const V whole = m::floor(x), rest = x - whole;
  V zeta = m::hurwitz_zeta(n + 1, m::select(negative, rest, x));
  if (m::any(negative)) {
    // The terms with x + k < 0, backwards: those from 1 - rest on, without those from 1 - x on.
    const V other = m::select(negative, (whole + V(1)) - x, V(1)), beyond = m::select(negative, V(1) - x, V(1));
    const V below = m::hurwitz_zeta(n + 1, other) - m::hurwitz_zeta(n + 1, beyond);
    zeta = m::select(negative, zeta + (n % 2 ? below : -below), zeta);
  }
  double factorial = n % 2 ? 1 : -1;
  for (int i = 2; i <= n; ++i) factorial *= i;
  return zeta * m::number<V>(factorial);
}

// ---- Bessel functions -----------------------------------------------------------------------------------------------
/// I0(x) in z = (x / 2)^2 up to 16.
template <class V>
KASSETTE_FN V bessel_i0_near(const V& z) {
  if constexpr (is_single<V>)
    return m::horner(z, 0x1.p+0, 0x1.000004p+0, 0x1.ffff94p-3, 0x1.c720cp-6, 0x1.c6f3bap-10, 0x1.24144p-14,
                     0x1.fc5c8ap-20, 0x1.72ba9ap-25, 0x1.a30f84p-32, 0x1.079b88p-36);
  else
    return m::horner(z, 0x1.p+0, 0x1.p+0, 0x1.ffffffffffff3p-3, 0x1.c71c71c71c85bp-6, 0x1.c71c71c71a938p-10,
                     0x1.23456789c5e65p-14, 0x1.02e85c06c94cap-19, 0x1.522a44218f1c6p-25, 0x1.522a4126a0adbp-31,
                     0x1.0b3153e78c256p-37, 0x1.55ff4d7db58bap-44, 0x1.69e61f7a17557p-51, 0x1.40a5db76b75cfp-58,
                     0x1.f2a303105cbcbp-66, 0x1.108b5fddab1b4p-73, 0x1.1cafc8c2165p-80);
}
/// exp(-x) sqrt(x) I0(x) in t = 16 / x - 1, for x from 8 on.
template <class V>
KASSETTE_FN V bessel_i0_far(const V& t) {
  if constexpr (is_single<V>)
    return m::horner(t, 0x1.9bd428p-2, 0x1.b87988p-9, 0x1.1dab2ap-13, 0x1.74e1fep-17, 0x1.8c1d12p-20, 0x1.84de4p-22,
                     0x1.d3d7p-24);
  else
    return m::horner(t, 0x1.9bd428ad249a5p-2, 0x1.b87969bb93b9bp-9, 0x1.1daa72b5e270fp-13, 0x1.75e5ee711e8edp-17,
                     0x1.8e513a795ed51p-20, 0x1.3f49a964ebb02p-22, 0x1.7d0f0a42d11cap-24, 0x1.51cdd5ee90b69p-25,
                     0x1.7234de72e487dp-26, 0x1.03a49a279044fp-27, -0x1.cfe786596108fp-28, -0x1.cd00f1493d21fp-27,
                     -0x1.7295a6fe72b89p-28, 0x1.044039e08c60cp-27, 0x1.fc7b873d508b9p-28, -0x1.e71da83b68c1bp-29,
                     -0x1.957e5596130ap-28, 0x1.ade534e08c8a7p-30, 0x1.ebe677e61d7fbp-29, -0x1.4b8e5c48028a3p-31,
                     -0x1.b1a84860d434dp-30, 0x1.6c5132acc76dbp-33, 0x1.e508a24934ff4p-32, -0x1.8ca1ee1f44ba7p-36,
                     -0x1.fc45db18325ecp-35);
}
/// I1(x) / x in z = (x / 2)^2 up to 16.
template <class V>
KASSETTE_FN V bessel_i1_near(const V& z) {
  if constexpr (is_single<V>)
    return m::horner(z, 0x1.p-1, 0x1.000002p-2, 0x1.555534p-5, 0x1.c71edp-9, 0x1.6c0294p-13, 0x1.8518d2p-18,
                     0x1.23e116p-23, 0x1.6c4d28p-29, 0x1.940c0ep-36, 0x1.95e4e8p-41);
  else
    return m::horner(z, 0x1.p-1, 0x1.p-2, 0x1.5555555555552p-5, 0x1.c71c71c71c7a1p-9, 0x1.6c16c16c160bep-13,
                     0x1.845c8a0cf7706p-18, 0x1.27e4fb76585f6p-23, 0x1.522a4411450f1p-29, 0x1.2c97573013b8dp-35,
                     0x1.ab82105b9504ep-42, 0x1.f17427ebbec59p-49, 0x1.e28089160f8d9p-56, 0x1.8ad6b1138f51ap-63,
                     0x1.1c18594e208f9p-70, 0x1.26fe635154a05p-78, 0x1.17ce08e3c1ac4p-85);
}
/// exp(-x) sqrt(x) I1(x) in t = 16 / x - 1, for x from 8 on.
template <class V>
KASSETTE_FN V bessel_i1_far(const V& t) {
  if constexpr (is_single<V>)
    return m::horner(t, 0x1.8ebe78p-2, -0x1.3f796ap-7, -0x1.cbc664p-13, -0x1.f778e4p-17, -0x1.e9a596p-20,
                     -0x1.c37e12p-22, -0x1.09bf06p-23);
  else
    return m::horner(t, 0x1.8ebe783a8403p-2, -0x1.3f796198ee632p-7, -0x1.cbc54df1e8dacp-13, -0x1.f89c23059fc72p-17,
                     -0x1.ec8e10776d0d1p-20, -0x1.7613810c376b8p-22, -0x1.ad8d46c94cebep-24, -0x1.72797324bcacbp-25,
                     -0x1.9191e105e385cp-26, -0x1.21a4722cf52b3p-27, 0x1.cf034b263b1f1p-28, 0x1.e27e58c49aebcp-27,
                     0x1.99ac3346f2903p-28, -0x1.07596272d2dccp-27, -0x1.0de60bc03fca5p-27, 0x1.dc416aa62a2b8p-29,
                     0x1.a91bf7d1391bp-28, -0x1.97c790de811bp-30, -0x1.006f46bd28235p-28, 0x1.34d7024375b28p-31,
                     0x1.c2f9e96a54f1ap-30, -0x1.511e7ac337e45p-33, -0x1.f7baa291fb095p-32, 0x1.6ef23dae65aebp-36,
                     0x1.07b7bf265ff31p-34);
}
/// exp(x) / sqrt(x) * part, in an order that overflows only where the result does.
template <class V>
KASSETTE_FN V bessel_scaled(const V& x, const V& part) {
  const V e = m::exp(x * V(0.5f));
  return m::select(x == m::limit_infinity<V>(), x, e * (part / m::sqrt(x)) * e);
}
/// The modified Bessel function of the first kind of order 0.
template <class V>
KASSETTE_FN V bessel_i0(const V& x) {
  const V size = m::abs(x), half = m::at_most(size, 8) * V(0.5f), far = m::at_least(size, 8);
  const V beyond = m::bessel_scaled(far, m::bessel_i0_far(V(16) / far - V(1)));
  return m::select(size > V(8), beyond, m::bessel_i0_near(half * half));
}
/// That of order 1.
template <class V>
KASSETTE_FN V bessel_i1(const V& x) {
  const V size = m::abs(x), near = m::at_most(size, 8), half = near * V(0.5f), far = m::at_least(size, 8);
  const V beyond = m::bessel_scaled(far, m::bessel_i1_far(V(16) / far - V(1)));
  const V y = m::select(size > V(8), beyond, near * m::bessel_i1_near(half * half));
  return m::copysign(y, x);
}
/// sin(pi x) / (pi x), 1 at 0.
template <class V>
KASSETTE_FN V sinc(const V& x) {
  const V y = m::sin_pi(x) / (x * m::number<V>(3.141592653589793));
  return m::select(x == V(0), V(1), y);
}

}  // namespace m
}  // namespace kassette::ops
