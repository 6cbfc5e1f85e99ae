// examples/neural_ode.cpp - a neural ordinary differential equation (Chen et al. 2018): a network learns the slope of
// a spiral from points along it, by gradients through the solver, and then draws the whole spiral from its start.
#include <cmath>
#include <cstdio>

#include <kassette/integrate.h>
#include <kassette/numpy.h>
#include <kassette/optimize.h>

namespace np = kassette::numpy;
using kassette::Tensor;

constexpr const char* kDtype = "float64";
constexpr int kHidden = 24, kPoints = 161, kAhead = 4;
constexpr double kEnd = 16;

/// dy/dt = tanh(y^3 w + b) v + c, with all weights in one vector, for y of shape (..., 2).
struct Slope {
  static constexpr int kWeights = 2 * kHidden + kHidden + 2 * kHidden + 2;
  Tensor w, b, v, c;
  explicit Slope(const Tensor& weights) {
    const kassette::Tensors parts = np::split(weights, {2 * kHidden, 3 * kHidden, 5 * kHidden});
    w = np::reshape(parts[0], {2, kHidden}), b = parts[1], v = np::reshape(parts[2], {kHidden, 2}), c = parts[3];
  }
  Tensor operator()(const Tensor&, const Tensor& y) const {
    return np::matmul(np::tanh(np::matmul(y * y * y, w) + b), v) + c;
  }
};

int main() {
  // The truth: a spiral of which only points are known.
  const Tensor turn = np::array({{-0.1, 2.0}, {-2.0, -0.1}}, kDtype);
  auto truth = [&](const Tensor&, const Tensor& y) { return np::matmul(y * y * y, turn); };
  const Tensor times = np::linspace(0, kEnd, kPoints, {.dtype = kDtype});
  const Tensor start = np::array({2.0, 0.0}, kDtype);
  const Tensor spiral = np::integrate::odeint(truth, start, times, {.rtol = 1e-9, .atol = 1e-9});

  // From each point the next four must be met: one solution for all starts at once.
  const int starts = kPoints - kAhead;
  const Tensor from = spiral[kassette::slice(0, starts)], ahead = times[kassette::slice(0, kAhead + 1)];
  kassette::Tensors next;
  for (int i = 0; i <= kAhead; ++i) next.push_back(spiral[kassette::slice(i, i + starts)]);
  const Tensor wanted = np::stack(next);
  auto loss = [&](const Tensor& weights) {
    const Tensor got = np::integrate::odeint(Slope(weights), from, ahead, {.rtol = 1e-4, .atol = 1e-5});
    return np::mean(np::square(got - wanted));
  };

  np::random::seed(5);
  Tensor weights = np::random::normal(0, 0.3, {Slope::kWeights}, kDtype);
  double error = 0;
  for (int round = 0; round <= 4; ++round) {
    if (round) {
      const auto found = np::optimize::minimize(loss, weights, {.ftol = 1e-14, .gtol = 1e-9, .maxiter = 60});
      weights = found.x;
    }
    const Tensor drawn = np::integrate::odeint(Slope(weights), start, times, {.max_step = 0.2});
    error = np::mean(np::linalg::norm(drawn - spiral, {.axis = 1})).item<double>();
    std::printf("after %3d iterations: loss %.1e, the whole spiral is off by %.4f\n", 60 * round,
                loss(weights).item<double>(), error);
  }
  return error < 0.1 ? 0 : 1;
}
