// ops/random/rejection.h - samples of the gamma, Poisson and binomial distributions, in double, by methods that draw
// until a candidate is accepted. Each element has a series of Philox blocks of its own. Compiled by g++ and nvcc.
#pragma once
#include "ops/math/special_math.h"
#include "ops/random/philox.h"

namespace kassette::ops {

/// The distributions: gamma of shape a, Poisson of mean a, binomial of a trials with probability b.
enum class RejectionLaw : std::int64_t { gamma, poisson, binomial };

/// The random numbers of one element: pairs in (0, 1).
class ElementDraws {
 public:
  KASSETTE_FN ElementDraws(const RandomKey& key, std::int64_t element)
      : key_(key), at_(static_cast<std::uint64_t>(element)) {}
  KASSETTE_FN void pair(double& u, double& v) {
    const PhiloxWords r = random_block(key_, at_);
    at_ += std::uint64_t(1) << 40;  // elements are below that
    u = number(r.w[0], r.w[1]), v = number(r.w[2], r.w[3]);
  }
  KASSETTE_FN double normal() {
    double u, v;
    pair(u, v);
    return m::sqrt(-2 * m::log(u)) * m::cos(6.283185307179586 * v);
  }

 private:
  KASSETTE_FN static double number(std::uint32_t high, std::uint32_t low) {
    return (static_cast<double>((std::uint64_t(high) << 32 | low) >> 11) + 0.5) * 0x1p-53;
  }
  RandomKey key_;
  std::uint64_t at_;
};

namespace rejection {

KASSETTE_FN double log_factorial(double k) { return m::lgamma_positive(k + 1); }

/// Marsaglia and Tsang, 2000.
KASSETTE_FN double gamma(ElementDraws& draws, double a) {
  if (!(a >= 0)) return std::numeric_limits<double>::quiet_NaN();
  if (a == 0) return 0;
  const double d = (a < 1 ? a + 1 : a) - 1. / 3, c = 1 / m::sqrt(9 * d);
  double u, w;
  for (;;) {
    const double x = draws.normal(), root = 1 + c * x, v = root * root * root;
    draws.pair(u, w);
    if (v > 0 && m::log(u) < 0.5 * x * x + d - d * v + d * m::log(v)) {
      // Below 1 by a sample of shape a + 1 and a power of a uniform number.
      return a < 1 ? m::exp(m::log(d * v) + m::log(w) / a) : d * v;
    }
  }
}
/// Products of uniform numbers for small means, else Hörmann's transformed rejection, 1993.
KASSETTE_FN double poisson(ElementDraws& draws, double mean) {
  if (!(mean >= 0) || mean > 0x1p62) return std::numeric_limits<double>::quiet_NaN();
  double u, v;
  if (mean < 10) {
    const double limit = m::exp(-mean);
    double product = 1;
    for (double k = 0;; k += 2) {
      draws.pair(u, v);
      if ((product *= u) <= limit) return k;
      if ((product *= v) <= limit) return k + 1;
    }
  }
  const double root = m::sqrt(mean), log_mean = m::log(mean), b = 0.931 + 2.53 * root, a = 0.02483 * b - 0.059;
  const double scale = 1.1239 + 1.1328 / (b - 3.4), sure = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    draws.pair(u, v);
    u -= 0.5;
    const double side = 0.5 - m::abs(u), k = m::floor((2 * a / side + b) * u + mean + 0.43);
    if (side >= 0.07 && v <= sure) return k;
    if (k < 0 || (side < 0.013 && v > side)) continue;
    if (m::log(v * scale / (a / (side * side) + b)) <= k * log_mean - mean - log_factorial(k)) return k;
  }
}
/// Gaps between successes for small means, else Hörmann's transformed rejection, 1993; p <= 1/2.
KASSETTE_FN double rare_binomial(ElementDraws& draws, double n, double p) {
  double u, v;
  if (p == 0) return 0;
  if (n * p < 10) {
    const double log_failure = m::log1p(-p);
    double trials = 0;
    for (double k = 0;; ++k) {
      draws.pair(u, v);
      trials += m::floor(m::log(u) / log_failure) + 1;
      if (trials > n) return k;
    }
  }
  const double spread = m::sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * spread, a = 0.0248 * b - 0.0873 + 0.01 * p;
  const double sure = 0.92 - 4.2 / b, scale = (2.83 + 5.1 / b) * spread, odds = m::log(p / (1 - p));
  const double mode = m::floor((n + 1) * p), at_mode = log_factorial(mode) + log_factorial(n - mode);
  for (;;) {
    draws.pair(u, v);
    u -= 0.5;
    const double side = 0.5 - m::abs(u), k = m::floor((2 * a / side + b) * u + n * p + 0.5);
    if (k < 0 || k > n) continue;
    if (side >= 0.07 && v <= sure) return k;
    if (m::log(v * scale / (a / (side * side) + b)) <=
        at_mode - log_factorial(k) - log_factorial(n - k) + (k - mode) * odds)
      return k;
  }
}
KASSETTE_FN double binomial(ElementDraws& draws, double n, double p) {
  if (!(n >= 0 && p >= 0 && p <= 1)) return std::numeric_limits<double>::quiet_NaN();
  return p > 0.5 ? n - rare_binomial(draws, n, 1 - p) : rare_binomial(draws, n, p);
}

}  // namespace rejection

/// Element number `element` of a draw.
KASSETTE_FN double rejection_sample(RejectionLaw law, const RandomKey& key, std::int64_t element, double a, double b) {
  ElementDraws draws(key, element);
  if (law == RejectionLaw::gamma) return rejection::gamma(draws, a);
  return law == RejectionLaw::poisson ? rejection::poisson(draws, a) : rejection::binomial(draws, a, b);
}

}  // namespace kassette::ops
