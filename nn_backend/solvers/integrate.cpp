// nn_backend/solvers/integrate.cpp - ordinary differential equations: np::integrate.
#include <kassette/integrate.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/text.h"
#include "nn_backend/numpy/numbers.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/engine/stop.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace integrate {
namespace {

using Slope = Callable<Tensor(const Tensor&, const Tensor&)>;

// Dormand and Prince (1980), table 2: the times and weights of the seven stages, of which the last is the first of the
// next step; the difference of the results of order 5 and 4; and the weights of the stages between two steps (Shampine,
// 1986), a polynomial of the part of the step times that part.
constexpr int kStages = 7, kOrder = 5;
constexpr double kTimes[kStages] = {0, 1. / 5, 3. / 10, 4. / 5, 8. / 9, 1, 1};
constexpr double kWeights[kStages][kStages - 1] = {{},
                                                   {1. / 5},
                                                   {3. / 40, 9. / 40},
                                                   {44. / 45, -56. / 15, 32. / 9},
                                                   {19372. / 6561, -25360. / 2187, 64448. / 6561, -212. / 729},
                                                   {9017. / 3168, -355. / 33, 46732. / 5247, 49. / 176, -5103. / 18656},
                                                   {35. / 384, 0, 500. / 1113, 125. / 192, -2187. / 6784, 11. / 84}};
constexpr double kError[kStages] = {-71. / 57600, 0, 71. / 16695, -71. / 1920, 17253. / 339200, -22. / 525, 1. / 40};
constexpr double kBetween[kStages][4] = {
    {1, -8048581381. / 2820520608, 8663915743. / 2820520608, -12715105075. / 11282082432},
    {},
    {0, 131558114200. / 32700410799, -68118460800. / 10900136933, 87487479700. / 32700410799},
    {0, -1754552775. / 470086768, 14199869525. / 1410260304, -10690763975. / 1880347072},
    {0, 127303824393. / 49829197408, -318862633887. / 49829197408, 701980252875. / 199316789632},
    {0, -282668133. / 205662961, 2019193451. / 616988883, -1453857185. / 822651844},
    {0, 40617522. / 29380423, -110615467. / 29380423, 69997945. / 29380423}};

/// y + h (the sum of the weighted stages).
Tensor moved(const Tensor& y, const Tensors& stages, const double* weights, int count, double h) {
  Tensor sum = y;
  for (int i = 0; i < count; ++i)
    if (weights[i] != 0) sum = sum + stages[i] * (weights[i] * h);
  return sum;
}
/// The root of the mean square of x / scale.
double size_in(const Tensor& x, const Tensor& scale) {
  if (x.size() == 0) return 0;
  return std::sqrt(ops::mean(ops::square(ops::stop_gradient(x) / scale)).item<double>());
}

/// A solution while it is made: the last step, and the time and value behind it.
class Solution {
 public:
  Solution(const Slope& f, const Tensor& y0, double start, double stop, const OdeintOptions& options)
      : f_(f), options_(options), rtol_(std::max(options.rtol, 100 * unit_of(y0.dtype()))), t_(start), stop_(stop),
        direction_(stop < start ? -1 : 1), y_(y0) {
    first_ = slope(t_, y_);
    length_ = options.first_step.is_none() ? first_length() : number_of({"odeint", "first_step"}, options.first_step);
    if (!(length_ > 0)) fail<ValueError>({"odeint", "first_step"}, "is ", length_, kExpected, "it must be positive");
  }
  bool reached(double t) const { return direction_ * (t_ - t) >= 0; }
  /// The solution at a time within the last step.
  Tensor at(double t) const {
    if (t == t_) return y_;
    const double h = t_ - before_t_, part = (t - before_t_) / h;
    double weights[kStages];
    for (int i = 0; i < kStages; ++i) {
      const double* p = kBetween[i];
      weights[i] = part * (p[0] + part * (p[1] + part * (p[2] + part * p[3])));
    }
    return moved(before_, stages_, weights, kStages, h);
  }
  void step();

 private:
  Tensor slope(double t, const Tensor& y) {
    Tensor dy = f_(ops::number_like(t, y), y);
    if (!dy.defined()) fail_empty({"odeint", "the result of f"});
    if (dy.symbolic() || dy.dtype() != y.dtype() || dy.shape() != y.shape())
      fail<ValueError>({"odeint", "f"}, "returns ", dy.dtype(), " of shape ", dy.shape(), " for ", y.dtype(),
                       " of shape ", y.shape(), kExpected, "both must be equal");
    return dy;
  }
  Tensor tolerance(const Tensor& y) const { return ops::abs(ops::stop_gradient(y)) * rtol_ + options_.atol; }
  double first_length();

  const Slope& f_;
  const OdeintOptions& options_;
  double rtol_, t_, stop_, before_t_ = 0, length_ = 0;
  int direction_;
  Tensor y_, before_, first_;  // first_: the slope at t_
  Tensors stages_;
  std::int64_t steps_ = 0;
};

/// A step for which the terms of order 1 and 2 are small (Hairer, Norsett and Wanner, II.4).
double Solution::first_length() {
  const double whole = std::fabs(stop_ - t_);
  if (whole == 0) return 1;
  const Tensor scale = tolerance(y_);
  const double d0 = size_in(y_, scale), d1 = size_in(first_, scale);
  const double h = std::min(d0 < 1e-5 || d1 < 1e-5 ? 1e-6 : 0.01 * d0 / d1, whole);
  const Tensor ahead = slope(t_ + h * direction_, ops::stop_gradient(y_ + first_ * (h * direction_)));
  const double d2 = size_in(ahead - first_, scale) / h;
  const double longer =
      d1 <= 1e-15 && d2 <= 1e-15 ? std::max(1e-6, h * 1e-3) : std::pow(0.01 / std::max(d1, d2), 1. / kOrder);
  return std::min({100 * h, longer, whole, options_.max_step});
}

void Solution::step() {
  const double least = 10 * std::fabs(std::nextafter(t_, direction_ * HUGE_VAL) - t_);
  length_ = std::clamp(length_, least, std::max(least, options_.max_step));
  for (bool rejected = false;; rejected = true) {
    if (!(length_ >= least))
      fail<ValueError>({"odeint", "f"}, "needs steps below ", least, " at t = ", t_, kExpected,
                       "the solution must be smooth and finite");
    if (++steps_ > options_.max_steps)
      fail<ValueError>({"odeint", "max_steps"}, "is ", options_.max_steps, ", which led to t = ", t_, kRemedy,
                       "raise it, or the tolerances");
    double to = t_ + length_ * direction_;
    if (direction_ * (to - stop_) > 0) to = stop_;
    const double h = to - t_;
    Tensors stages{first_};
    Tensor y;
    for (int i = 1; i < kStages; ++i) {
      y = moved(y_, stages, kWeights[i], i, h);
      stages.push_back(slope(i < kStages - 1 ? t_ + kTimes[i] * h : to, y));
    }
    const Tensor scale = ops::maximum(tolerance(y_), tolerance(y));
    const double error = size_in(moved(ops::zeros_of(y), stages, kError, kStages, h), scale);
    const double factor = error == 0 ? 10 : 0.9 * std::pow(error, -1. / kOrder);
    if (error < 1) {
      length_ = std::fabs(h) * std::min(rejected ? 1.0 : 10.0, factor);
      before_t_ = t_, before_ = y_;
      t_ = to, y_ = y, stages_ = stages, first_ = stages[kStages - 1];
      return;
    }
    length_ = std::fabs(h) * (factor > 0.2 ? factor : 0.2);  // 0.2 for an error that is not finite, too
  }
}

/// The numbers of t. Throws ValueError unless they are a vector that rises or falls.
std::vector<double> times_of(const Operand& t) {
  const At at{"odeint", "t"};
  const Tensor given = float_value_of(at, t);
  if (given.shape().size() != 1 || given.size() == 0)
    fail<ValueError>(at, "of shape ", given.shape(), kExpected, "it must be a vector that is not empty");
  const Values<double> all = given.to_vector<double>();
  std::vector<double> times(all.begin(), all.end());
  for (std::size_t i = 0; i < times.size(); ++i) {
    const bool ordered = i == 0 || (times[1] > times[0] ? times[i] > times[i - 1] : times[i] < times[i - 1]);
    if (!std::isfinite(times[i]) || !ordered)
      fail<ValueError>(at, "is ", times[i], " at ", i, kExpected, "it must rise or fall, and be finite");
  }
  return times;
}

}  // namespace

Tensor odeint(Slope f, const Operand& y0, const Operand& t, const OdeintOptions& options) {
  const Tensor start = float_value_of({"odeint", "y0"}, y0);
  const std::vector<double> times = times_of(t);
  if (!(options.max_step > 0))
    fail<ValueError>({"odeint", "max_step"}, "is ", options.max_step, kExpected, "it must be positive");
  if (!(options.rtol >= 0) || !(options.atol >= 0))
    fail<ValueError>({"odeint", options.rtol >= 0 ? "atol" : "rtol"}, "is ",
                     options.rtol >= 0 ? options.atol : options.rtol, kExpected, "it must not be negative");
  Tensors at_times{start};
  if (times.size() == 1) return ops::stack(at_times, 0);
  Solution solution(f, start, times.front(), times.back(), options);
  for (std::size_t i = 1; i < times.size(); ++i) {
    while (!solution.reached(times[i])) solution.step();
    at_times.push_back(solution.at(times[i]));
  }
  return ops::stack(at_times, 0);
}

}  // namespace integrate
}  // namespace numpy
}  // namespace kassette
