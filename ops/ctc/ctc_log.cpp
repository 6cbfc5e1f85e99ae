// ops/ctc/ctc_log.cpp - the CTC recursions in log space, together with their directional derivatives.
#include "ops/ctc/ctc_log.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace kassette::ops {
namespace {

constexpr double kZero = -std::numeric_limits<double>::infinity();  // log 0

using Log = CtcLog;

/// The forward and backward recursions over the states of a sample: state 2 i is blank i, state 2 i + 1 is label i.
template <class T>
class Lattice {
 public:
  /// v: the direction of the derivatives; null for none.
  Lattice(const CtcSample<T>& s, const T* v) : s_(s), v_(v), n_(2 * s.length + 1) {
    inverse_.reserve(s.steps);
    for (std::int64_t t = 0; t < s.steps; ++t) {
      double total = 0;
      for (std::int64_t k = 0; k < s.classes; ++k) {
        const double z = at(t, k);
        total += z < 0 ? std::numeric_limits<double>::quiet_NaN() : z;
      }
      inverse_.push_back(1 / total);
    }
    if (s.slack() >= 0) fill_alpha();
  }
  double loss() const { return total_.value == 0 ? 0 : -total_.value; }
  bool has_path() const { return total_.value != kZero; }

  /// Calls write(t, row) for the steps t from the last one to the first; `row` is the gradient at t or, if there is a
  /// direction, its derivative.
  template <class Write>
  void gradients(Write write) {
    std::vector<Log> beta(n_);
    std::vector<double> g(s_.classes), slope(g.size());
    for (std::int64_t t = s_.steps - 1; t >= 0; --t) {
      const double inverse = inverse_[t];
      double fall = 0;  // the derivative of log(inverse)
      if (v_)
        for (std::int64_t k = 0; k < s_.classes; ++k) fall -= static_cast<double>(v_[t * s_.classes + k]) * inverse;
      std::fill(g.begin(), g.end(), inverse);
      std::fill(slope.begin(), slope.end(), inverse * fall);
      if (has_path()) {
        step_beta(t, beta);
        for (std::int64_t u = 0; u < n_; ++u) {
          const Log path = product(alpha_[t * n_ + u], beta[u]);
          if (path.value == kZero) continue;
          const double share = std::exp(path.value - total_.value) * inverse;
          const std::int64_t k = class_of(u);
          g[k] -= share;
          slope[k] -= share * (path.slope - total_.slope);
        }
      }
      write(t, v_ ? slope : g);
    }
  }

 private:
  double at(std::int64_t t, std::int64_t k) const { return static_cast<double>(s_.y[t * s_.classes + k]) + s_.epsilon; }
  std::int64_t class_of(std::int64_t u) const { return u % 2 ? s_.labels[u / 2] : s_.classes - 1; }
  bool skips_to(std::int64_t u) const { return u % 2 && s_.skip[u / 2] != 0; }
  /// log q. Its slope leaves out the derivative of the normalisation: that cancels in alpha * beta * inverse / p, where
  /// each step's occurs once above and once below.
  Log emission(std::int64_t t, std::int64_t u) const {
    const std::int64_t k = class_of(u);
    const double z = at(t, k);
    return {std::log(z) + std::log(inverse_[t]), v_ ? static_cast<double>(v_[t * s_.classes + k]) / z : 0};
  }
  /// Computes alpha without the factor q of its own step, so that nothing has to be divided by a q of 0.
  void fill_alpha() {
    alpha_.resize(s_.steps * n_);
    std::vector<Log> before(n_);  // alpha times q
    for (std::int64_t t = 0; t < s_.steps; ++t) {
      Log* here = alpha_.data() + t * n_;
      for (std::int64_t u = 0; u < n_; ++u) {
        if (t == 0) here[u] = u < 2 ? Log{0, 0} : Log();
        else here[u] = sum(before[u], u > 0 ? before[u - 1] : Log(), skips_to(u) ? before[u - 2] : Log());
      }
      for (std::int64_t u = 0; u < n_; ++u) before[u] = product(here[u], emission(t, u));
    }
    total_ = sum(before[n_ - 1], n_ > 1 ? before[n_ - 2] : Log(), Log());
  }
  /// Turns beta of the step after t into beta of step t, without the factor q of its own step.
  void step_beta(std::int64_t t, std::vector<Log>& beta) const {
    if (t == s_.steps - 1) {
      beta[n_ - 1] = {0, 0};
      if (n_ > 1) beta[n_ - 2] = {0, 0};
      return;
    }
    for (std::int64_t u = 0; u < n_; ++u) {
      Log& b = beta[u];
      b = product(b, emission(t + 1, u));
    };
    for (std::int64_t u = 0; u < n_; ++u)
      beta[u] = sum(beta[u], u + 1 < n_ ? beta[u + 1] : Log(), u + 2 < n_ && skips_to(u + 2) ? beta[u + 2] : Log());
  }

  const CtcSample<T>& s_;
  const T* v_;
  const std::int64_t n_;
  std::vector<double> inverse_;  // 1 / sum(z) at each step
  std::vector<Log> alpha_;
  Log total_;  // the probability of all paths, as a log
};

template <class T>
void write_rows(Lattice<T>& lattice, const CtcSample<T>& s, T* out) {
  lattice.gradients([&](std::int64_t t, const std::vector<double>& row) {
    for (std::int64_t k = 0; k < s.classes; ++k) out[t * s.classes + k] = static_cast<T>(row[k]);
  });
}

}  // namespace

template <class T>
double ctc_in_log_space(const CtcSample<T>& s, T* g) {
  Lattice<T> lattice(s, nullptr);
  if (g) write_rows(lattice, s, g);
  return lattice.loss();
}
template <class T>
void ctc_second_derivative(const CtcSample<T>& s, const T* v, T* out) {
  Lattice<T> lattice(s, v);
  write_rows(lattice, s, out);
}
template double ctc_in_log_space(const CtcSample<float>&, float*);
template double ctc_in_log_space(const CtcSample<double>&, double*);
template void ctc_second_derivative(const CtcSample<float>&, const float*, float*);
template void ctc_second_derivative(const CtcSample<double>&, const double*, double*);

}  // namespace kassette::ops
