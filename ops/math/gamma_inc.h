// ops/math/gamma_inc.h - the regularized incomplete gamma functions P(a, x) and Q(a, x) = 1 - P(a, x) of
// numbers, in double: by series, a continued fraction or, for large a, Temme's uniform expansion, each where it
// converges fast and without cancellation (Gautschi 1979, Temme 1979).
#pragma once
#include "ops/math/special_math.h"

namespace kassette::ops {
namespace m {

/// lgamma(1 + a) for 0 <= a <= 2, without cancellation at 0.
KASSETTE_FN double lgamma1p(double a) { return (a - 1) * a * m::lgamma_part(a - 1); }
/// log(x / a) - (x - a) / a: with u = (x - a) / a, log(1 + u) - u.
KASSETTE_FN double log_ratio_rest(double x, double a) {
  const double u = (x - a) / a;
  if (u > 0.6 || u < -0.4) return m::log(x / a) - u;
  // log(1 + u) = 2 atanh(s); the term in s is s (2 + u) - s u
  const double s = u / (2 + u), z = s * s;
  return s * (2 * z *
                  m::horner(z, 1. / 3, 1. / 5, 1. / 7, 1. / 9, 1. / 11, 1. / 13, 1. / 15, 1. / 17, 1. / 19, 1. / 21,
                            1. / 23, 1. / 25, 1. / 27, 1. / 29) -
              u);
}
/// x^a exp(-x) / gamma(a + 1) for a, x > 0.
KASSETTE_FN double gamma_weight(double a, double x) {
  if (a < 1) return m::exp(a * m::log(x) - x - m::lgamma1p(a));
  // (x / a)^a exp(a - x) times a^a exp(-a) / gamma(a + 1)
  const double power = m::exp(a * m::log_ratio_rest(x, a));
  if (a < 10) return power * m::exp(a * m::log(a) - a - m::lgamma_positive(a + 1));
  const double inverse = 1 / a, z = inverse * inverse;
  const double stirling =
      inverse * m::horner(z, 1. / 12, -1. / 360, 1. / 1260, -1. / 1680, 1. / 1188, -691. / 360360, 1. / 156);
  return power * m::exp(-stirling) * 0.3989422804014327 / m::sqrt(a);
}
/// P by its series in x / (a + 1), ...
KASSETTE_FN double gamma_p_series(double a, double x) {
  double term = 1, sum = 1;
  for (int n = 1; n < 100000 && term > sum * 1e-17; ++n) {
    term *= x / (a + n);
    sum += term;
  }
  return gamma_weight(a, x) * sum;
}
/// Q for small x by the alternating series of P: 1 - P without cancellation.
KASSETTE_FN double gamma_q_series(double a, double x) {
  double term = 1, sum = 0;
  for (int n = 1; n < 200; ++n) {
    term *= -x / n;
    const double next = term / (a + n);
    sum += next;
    if (m::abs(next) <= m::abs(sum) * 1e-17) break;
  }
  const double log_power = a * m::log(x) - m::lgamma1p(a);
  return -m::expm1(log_power) - m::exp(log_power) * a * sum;
}
/// Q by its continued fraction, by Lentz's method.
KASSETTE_FN double gamma_q_fraction(double a, double x) {
  double b = x + 1 - a, c = 1e300, d = 1 / b, fraction = d;
  for (int n = 1; n < 100000; ++n) {
    const double numerator = -n * (n - a);
    b += 2;
    d = numerator * d + b;
    if (d == 0) d = 1e-300;
    c = b + numerator / c;
    if (c == 0) c = 1e-300;
    d = 1 / d;
    const double factor = c * d;
    fraction *= factor;
    if (m::abs(factor - 1) < 2e-16) break;
  }
  return gamma_weight(a, x) * a * fraction;
}
/// Q, or P if not `upper`, for a above 10^6: the first two terms of Temme's expansion.
KASSETTE_FN double gamma_uniform(double a, double x, bool upper) {
  const double rest = m::log_ratio_rest(x, a), size = m::sqrt(-2 * rest), eta = x < a ? -size : size;
  const double first = m::horner(eta, -1. / 3, 1. / 12, -2. / 135, 1. / 864, 1. / 2835), second = -1. / 540 - eta / 288;
  const double more = m::exp(a * rest) * 0.3989422804014327 / m::sqrt(a) * (first + second / a);
  const double along = m::erfc((upper ? eta : -eta) * m::sqrt(a * 0.5)) * 0.5;
  return upper ? along + more : along - more;
}
/// Q, or P if not `upper`. NaN for negative arguments.
KASSETTE_FN double gamma_inc(double a, double x, bool upper) {
  const double inf = std::numeric_limits<double>::infinity(), zero = upper ? 1 : 0, one = 1 - zero;
  if (!(a >= 0 && x >= 0) || (a == 0 && x == 0) || (a == inf && x == inf))
    return std::numeric_limits<double>::quiet_NaN();
  if (x == 0 || a == inf) return zero;
  if (a == 0 || x == inf) return one;
  if (a > 1e6 && x > a * 0.5 && x < a * 2) return gamma_uniform(a, x, upper);
  const bool small = x <= 1.1, p_is_near = x <= 0.5 ? a > -0.4 / m::log(x) : small ? a > 0.75 * x : x < a + 1;
  if (p_is_near) {
    const double p = gamma_p_series(a, x);
    return upper ? 1 - p : p;
  }
  const double q = small ? gamma_q_series(a, x) : gamma_q_fraction(a, x);
  return upper ? q : 1 - q;
}
/// The same of numbers, or of each lane of batches.
template <class V>
KASSETTE_FN V gamma_inc_of(const V& a, const V& x, bool upper) {
  if constexpr (std::is_arithmetic_v<V>) {
    return static_cast<V>(m::gamma_inc(a, x, upper));
  } else {
    typename V::value_type p[V::size], q[V::size];
    a.store_unaligned(p);
    x.store_unaligned(q);
    for (std::size_t i = 0; i < V::size; ++i)
      p[i] = static_cast<typename V::value_type>(m::gamma_inc(p[i], q[i], upper));
    return V::load_unaligned(p);
  }
}

}  // namespace m
}  // namespace kassette::ops
