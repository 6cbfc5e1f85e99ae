// examples/pinn.cpp - a physics-informed neural network (Raissi et al. 2019): from a few noisy temperatures of a rod it
// finds how fast the rod conducts heat, and the temperature everywhere, since the network must obey u_t = c u_xx.
#include <cmath>
#include <cstdio>

#include <kassette/numpy.h>
#include <kassette/optimize.h>
#include <kassette/transforms.h>

namespace np = kassette::numpy;
using kassette::Tensor;

constexpr const char* kDtype = "float64";
constexpr int kWidth = 16;
constexpr double kConduction = 0.3;

/// The weights of a network from (x, t) to u, and the logarithm of the conduction, in one vector.
struct Rod {
  static constexpr int kWeights = 2 * kWidth + kWidth + kWidth * kWidth + kWidth + kWidth + 1;
  Tensor w1, b1, w2, b2, w3, log_conduction;
  explicit Rod(const Tensor& all) {
    const kassette::Tensors p =
        np::split(all, {2 * kWidth, 3 * kWidth, (3 + kWidth) * kWidth, (4 + kWidth) * kWidth, (5 + kWidth) * kWidth});
    w1 = np::reshape(p[0], {2, kWidth}), b1 = p[1], w2 = np::reshape(p[2], {kWidth, kWidth}), b2 = p[3];
    w3 = p[4], log_conduction = p[5][0];
  }
  /// The temperature at the places x and times t, vectors. The ends of the rod are kept at 0.
  Tensor operator()(const Tensor& x, const Tensor& t) const {
    const Tensor h = np::tanh(np::matmul(np::stack({x, t}, -1), w1) + b1);
    return x * (1 - x) * np::matmul(np::tanh(np::matmul(h, w2) + b2), w3);
  }
  /// How far it is from u_t = c u_xx.
  Tensor residual(const Tensor& x, const Tensor& t) const {
    auto total = [&](const Tensor& at, const Tensor& when) { return np::sum((*this)(at, when)); };
    auto slope = [&](const Tensor& at, const Tensor& when) { return np::sum(kassette::grad(total)(at, when)); };
    return kassette::grad(total, 1)(x, t) - np::exp(log_conduction) * kassette::grad(slope)(x, t);
  }
};

Tensor exact(const Tensor& x, const Tensor& t) {  // begins as a sine and an overtone, each of which fades by itself
  auto wave = [&](int n) { return np::sin(n * np::pi * x) * np::exp(-kConduction * n * n * np::pi * np::pi * t); };
  return wave(1) + 0.5 * wave(2);
}

int main() {
  np::random::seed(3);
  // 60 measurements with noise of 0.01; places and times at which the equation must hold need none.
  const Tensor x = np::random::uniform(0, 1, 60, kDtype), t = np::random::uniform(0, 0.5, 60, kDtype);
  const Tensor seen = exact(x, t) + np::random::normal(0, 0.01, 60, kDtype);
  const Tensor inside = np::random::uniform(0, 1, 300, kDtype), when = np::random::uniform(0, 0.5, 300, kDtype);

  auto loss = [&](const Tensor& weights) {
    const Rod rod(weights);
    return np::mean(np::square(rod(x, t) - seen)) + 0.01 * np::mean(np::square(rod.residual(inside, when)));
  };
  Tensor weights = np::concatenate(
      {np::random::normal(0, 0.7, {Rod::kWeights - 1}, kDtype), np::zeros({1}, kDtype)});  // a conduction of 1
  const auto places =
      np::meshgrid({np::linspace(0, 1, 21, {.dtype = kDtype}), np::linspace(0, 0.5, 11, {.dtype = kDtype})});
  const Tensor grid_x = np::ravel(places[0]), grid_t = np::ravel(places[1]), truth = exact(grid_x, grid_t);
  double conduction = 0, worst = 0;
  for (int round = 0; round <= 4; ++round) {
    if (round) weights = np::optimize::minimize(loss, weights, {.ftol = 1e-12, .gtol = 1e-8, .maxiter = 150}).x;
    const Rod rod(weights);
    conduction = np::exp(rod.log_conduction).item<double>();
    worst = np::max(np::abs(rod(grid_x, grid_t) - truth)).item<double>();
    std::printf("after %3d iterations: loss %.1e, conduction %.3f, temperatures off by at most %.3f\n", 150 * round,
                loss(weights).item<double>(), conduction, worst);
  }
  std::printf("the rod conducts with %.3f; the network found %.3f\n", kConduction, conduction);
  return std::fabs(conduction - kConduction) < 0.02 && worst < 0.1 ? 0 : 1;
}
