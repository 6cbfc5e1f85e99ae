// ops/math/beta_inc.h - the regularized incomplete beta function I_x(a, b) of numbers, in double: by its power
// series or its continued fraction (DLMF 8.17), on the side of the mean where that converges fast.
#pragma once
#include "ops/math/gamma_inc.h"

namespace kassette::ops {
namespace m {

/// log(gamma(z)) without Stirling's (z - 1/2) log z - z + log(2 pi) / 2.
KASSETTE_FN double stirling_rest(double z) {
  if (z < 10) return m::lgamma_positive(z) - ((z - 0.5) * m::log(z) - z + 0.9189385332046728);
  const double inverse = 1 / z, s = inverse * inverse;
  return inverse * m::horner(s, 1. / 12, -1. / 360, 1. / 1260, -1. / 1680, 1. / 1188, -691. / 360360, 1. / 156);
}
/// log(1 + u) - u.
KASSETTE_FN double log1p_rest(double u) { return u > -0.4 && u < 0.6 ? m::log_ratio_rest(1 + u, 1) : m::log1p(u) - u; }
/// x^a (1 - x)^b / B(a, b) for 0 < x < 1.
KASSETTE_FN double beta_weight(double a, double b, double x) {
  const double small = a < b ? a : b, large = a < b ? b : a;
  if (large < 1)
    return m::exp(a * m::log(x) + b * m::log1p(-x) + m::lgamma1p(a + b) - m::lgamma1p(a) - m::lgamma1p(b)) * a * b /
           (a + b);
  // Around the mean a / (a + b) the linear terms of both logarithms cancel.
  const double mean = a / (a + b), rest = b / (a + b), off = x - mean;
  const double p = off / mean, q = -off / rest;
  const double of_x = p > -0.4 ? m::log1p_rest(p) : m::log(x / mean) - p;
  const double of_y = q > -0.4 ? m::log1p_rest(q) : m::log1p(-x) - m::log(rest) - q;
  const double scale = small < 1e-8 ? small * m::exp(small * (m::log(small) - 1))  // gamma(small) is 1 / small
                                    : m::sqrt(small * 0.15915494309189535) * m::exp(-m::stirling_rest(small));
  const double others = m::stirling_rest(large) - m::stirling_rest(a + b);
  return scale * m::sqrt(large / (a + b)) * m::exp(a * of_x + b * of_y - others);
}
/// I_x(a, b) by its power series, for b <= 1: all terms are positive.
KASSETTE_FN double beta_series(double a, double b, double x) {
  double term = 1, sum = 0;
  for (int n = 1; n < 10000; ++n) {
    term *= (n - b) / n * x;
    const double next = term / (a + n);
    sum += next;
    if (next <= sum * 1e-17) break;
  }
  const double power = m::exp(-b * m::log1p(-x));
  return m::beta_weight(a, b, x) * power * (1 / a + sum);
}
/// I_x(a, b) by its continued fraction, for x below the mean.
KASSETTE_FN double beta_fraction(double a, double b, double x) {
  const double tiny = 1e-300;
  double c = 1, d = 0, fraction = 1;
  for (int k = 1; k < 200000; ++k) {
    const double n = k / 2, at = a + 2 * n;
    const double numerator = k % 2 ? -(a + n) / at * ((a + b + n) / (at + 1)) * x : n / (at - 1) * ((b - n) / at) * x;
    d = 1 + numerator * d;
    d = 1 / (d == 0 ? tiny : d);
    c = 1 + numerator / c;
    if (c == 0) c = tiny;
    const double factor = c * d;
    fraction *= factor;
    if (m::abs(factor - 1) < 2e-16) break;
  }
  return m::beta_weight(a, b, x) / (a * fraction);
}
/// I_x(a, b); NaN for a negative a or b, if both are 0, and for an x outside of [0, 1].
KASSETTE_FN double beta_inc(double a, double b, double x) {
  const double inf = std::numeric_limits<double>::infinity();
  if (!(a >= 0 && b >= 0 && x >= 0 && x <= 1) || (a == 0 && b == 0) || (a == inf && b == inf))
    return std::numeric_limits<double>::quiet_NaN();
  if (x == 0 || x == 1) return x;
  if (a == 0 || b == inf) return 1;
  if (b == 0 || a == inf) return 0;
  if (b <= 1 && x <= 0.9) return m::beta_series(a, b, x);
  if (a <= 1 && x >= 0.1) return 1 - m::beta_series(b, a, 1 - x);
  if (x * (a + b + 2) <= a + 1) return m::beta_fraction(a, b, x);
  return 1 - m::beta_fraction(b, a, 1 - x);
}

}  // namespace m
}  // namespace kassette::ops
