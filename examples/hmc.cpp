// examples/hmc.cpp - Hamiltonian Monte Carlo (Neal 2011): samples of what data leave open about a regression, from many
// chains at once, beside the exact answer.
#include <cmath>
#include <cstdio>

#include <kassette/numpy.h>
#include <kassette/transforms.h>

namespace np = kassette::numpy;
using kassette::Tensor;

constexpr const char* kDtype = "float64";
constexpr int kChains = 64, kWarmUp = 200, kSamples = 300, kSteps = 12;
constexpr double kNoise = 0.5, kPrior = 3;

/// A Gaussian posterior, so that the answer is known: y = x w + noise, w from a normal distribution.
struct Regression {
  Tensor x, y;
  /// The logarithm of the density of w, up to a constant, for chains of w: (chains, 3) to (chains,).
  Tensor operator()(const Tensor& w) const {
    const Tensor off = np::matmul(w, np::transpose(x)) - y;
    return -0.5 * (np::sum(np::square(off), -1) / (kNoise * kNoise) + np::sum(np::square(w), -1) / (kPrior * kPrior));
  }
};

/// Chains of positions that move along the density as bodies without friction would.
class Sampler {
 public:
  Sampler(const Regression& density, const Tensor& start) : density_(density), position_(start) { look(position_); }

  /// One step of each chain. Returns the share of the chains that moved.
  double step(double length) {
    const Tensor before = value_, from = position_, slope = slope_;
    Tensor speed = np::random::standard_normal(position_.shape(), kDtype);
    const Tensor energy = 0.5 * np::sum(np::square(speed), -1) - value_;
    Tensor at = position_;
    for (int i = 0; i < kSteps; ++i) {  // leapfrog
      speed = speed + 0.5 * length * slope_;
      at = at + length * speed;
      look(at);
      speed = speed + 0.5 * length * slope_;
    }
    const Tensor gained = energy - (0.5 * np::sum(np::square(speed), -1) - value_);
    const Tensor accepted = np::less(np::log(np::random::uniform(0, 1, {kChains}, kDtype)), gained);
    const Tensor rows = np::expand_dims(accepted, -1);
    position_ = np::where(rows, at, from), value_ = np::where(accepted, value_, before);
    slope_ = np::where(rows, slope_, slope);
    return np::mean(np::astype(accepted, kDtype)).item<double>();
  }
  const Tensor& position() const { return position_; }

 private:
  void look(const Tensor& at) {
    // The chains do not know of each other: the gradient of the sum holds that of each.
    slope_ = kassette::grad([&](const Tensor& w) { return np::sum(value_ = density_(w)); })(at);
  }

  const Regression& density_;
  Tensor position_, value_, slope_;
};

int main() {
  np::random::seed(1);
  const Tensor place = np::linspace(-1, 1, 20, {.dtype = kDtype});
  const Tensor x = np::stack({np::ones_like(place), place, place * place}, -1);
  const Tensor y = np::matmul(x, np::array({1.0, -2.0, 0.5}, kDtype)) + np::random::normal(0, kNoise, 20, kDtype);
  const Regression density{x, y};

  Sampler sampler(density, np::random::normal(0, kPrior, {kChains, 3}, kDtype));
  double length = 0.02, moved = 0;
  for (int i = 0; i < kWarmUp; ++i) length *= sampler.step(length) > 0.8 ? 1.05 : 0.95;
  kassette::Tensors kept;
  for (int i = 0; i < kSamples; ++i) {
    moved += sampler.step(length) / kSamples;
    kept.push_back(sampler.position());
  }
  const Tensor samples = np::stack(kept);  // (samples, chains, 3)
  std::printf("steps of %.3f, %.0f %% accepted, %d samples\n", length, 100 * moved, kChains * kSamples);

  // The exact posterior.
  const Tensor precision =
      np::matmul(np::transpose(x), x) / (kNoise * kNoise) + np::eye(3, kassette::None, 0, kDtype) / (kPrior * kPrior);
  const Tensor covariance = np::linalg::inv(precision),
               mean = np::matmul(covariance, np::matmul(np::transpose(x), y)) / (kNoise * kNoise);
  const Tensor got_mean = np::mean(samples, {0, 1}), got = np::cov(np::transpose(np::reshape(samples, {-1, 3})));
  // Gelman and Rubin's test: chains that agree vary within as much as all of them together.
  const Tensor within = np::mean(np::var(samples, 0), 0), between = np::var(np::mean(samples, 0), 0);
  const Tensor rhat = np::sqrt(1 + between / within);
  bool fine = true;
  std::printf("weight     mean   exact  deviation   exact  R-hat\n");
  for (int i = 0; i < 3; ++i) {
    const double deviation = std::sqrt(covariance(i, i).item<double>()), m = got_mean[i].item<double>(),
                 s = std::sqrt(got(i, i).item<double>()), exact = mean[i].item<double>(), r = rhat[i].item<double>();
    std::printf("%6d  %7.3f %7.3f  %9.3f %7.3f  %5.3f\n", i, m, exact, s, deviation, r);
    fine = fine && std::fabs(m - exact) < 0.1 * deviation && std::fabs(s / deviation - 1) < 0.1 && r < 1.05;
  }
  return fine && moved > 0.5 ? 0 : 1;
}
