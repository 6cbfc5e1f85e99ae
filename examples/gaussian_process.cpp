// examples/gaussian_process.cpp - a Gaussian process that learns its length scale, amplitude and noise from the data,
// by the gradient of the likelihood, and says how sure it is between them.
#include <cmath>
#include <cstdio>

#include <kassette/numpy.h>

#include <kassette/backend.h>

namespace K = kassette::backend;
namespace np = kassette::numpy;
using kassette::Tensor;
using kassette::Tensors;

constexpr const char* kDtype = "float64";

/// The covariance of the values at the points x and y.
Tensor kernel(const Tensor& x, const Tensor& y, const Tensor& log_scale, const Tensor& log_size) {
  const Tensor apart = (np::expand_dims(x, 1) - np::expand_dims(y, 0)) * np::exp(-log_scale);
  return np::exp(2 * log_size - 0.5 * np::square(apart));
}

struct Process {
  Tensor log_scale = K::variable(0.5, kDtype), log_size = K::variable(0, kDtype), log_noise = K::variable(-1, kDtype);
  Tensors parameters() const { return {log_scale, log_size, log_noise}; }

  Tensor covariance(const Tensor& x) const {
    const Tensor noise = np::exp(2 * log_noise) + 1e-9;
    return kernel(x, x, log_scale, log_size) + noise * np::eye(x.shape()[0], kassette::None, 0, kDtype);
  }
  /// Minus the logarithm of the likelihood of y, for each point.
  Tensor loss(const Tensor& x, const Tensor& y) const {
    const Tensor l = np::linalg::cholesky(covariance(x));
    const Tensor white = np::linalg::solve_triangular(l, y, {.lower = true});
    const double n = double(x.shape()[0]);
    return (0.5 * np::sum(np::square(white)) + np::sum(np::log(np::diagonal(l)))) / n + 0.5 * std::log(2 * np::pi);
  }
  struct Prediction {
    Tensor mean, deviation;
  };
  Prediction operator()(const Tensor& x, const Tensor& y, const Tensor& at) const {
    const Tensor l = np::linalg::cholesky(covariance(x)), across = kernel(x, at, log_scale, log_size);
    const Tensor mean = np::matmul(np::transpose(across), np::linalg::cholesky_solve(l, y));
    const Tensor white = np::linalg::solve_triangular(l, across, {.lower = true});
    return {mean, np::sqrt(np::maximum(np::exp(2 * log_size) - np::sum(np::square(white), 0), 0))};
  }
};

int main() {
  K::set_random_seed(7);
  // sin with noise of 0.1, and a gap without data.
  const Tensor x =
      np::concatenate({np::linspace(-4, -1, 25, {.dtype = kDtype}), np::linspace(1.5, 4, 20, {.dtype = kDtype})});
  const Tensor y = np::sin(x) + 0.1 * K::random_normal(x.shape(), 0, 1, kDtype);

  Process process;
  Tensors speed;
  for (const Tensor& p : process.parameters()) speed.push_back(K::variable(0, p.dtype()));
  for (int step = 0; step <= 300; ++step) {
    const Tensor loss = process.loss(x, y);
    if (step % 100 == 0)
      std::printf("step %3d: loss %7.4f, length scale %.3f, amplitude %.3f, noise %.3f\n", step, loss.item<double>(),
                  std::exp(process.log_scale.item<double>()), std::exp(process.log_size.item<double>()),
                  std::exp(process.log_noise.item<double>()));
    const Tensors gradients = K::gradients(loss, process.parameters());
    for (int i = 0; i < gradients.size(); ++i) {
      K::update(speed[i], 0.9 * speed[i] - 0.02 * gradients[i]);
      K::update_add(process.parameters()[i], speed[i]);
    }
  }

  const Tensor at = np::linspace(-4, 4, 9, {.dtype = kDtype});
  const auto [mean, deviation] = process(x, y, at);
  double worst = 0;
  std::printf("    x      sin     mean   deviation\n");
  for (int i = 0; i < 9; ++i) {
    const double point = at[i].item<double>(), m = mean[i].item<double>(), s = deviation[i].item<double>();
    std::printf("%5.1f  %7.3f  %7.3f  %7.3f\n", point, std::sin(point), m, s);
    worst = std::max(worst, std::fabs(m - std::sin(point)) / (s + 0.05));
  }
  const double noise = std::exp(process.log_noise.item<double>());
  const bool unsure_in_gap = deviation[4].item<double>() > 2 * deviation[2].item<double>();
  return worst < 3 && noise > 0.05 && noise < 0.2 && unsure_in_gap ? 0 : 1;
}
