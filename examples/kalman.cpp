// examples/kalman.cpp - a Kalman filter and the smoother of Rauch, Tung and Striebel: where a body is and how fast it
// moves, from noisy measurements of its place; and the noise of these found by the gradient of the likelihood.
#include <cmath>
#include <cstdio>
#include <vector>

#include <kassette/numpy.h>

#include <kassette/backend.h>

namespace K = kassette::backend;
namespace np = kassette::numpy;
using kassette::Tensor;

constexpr const char* kDtype = "float64";
constexpr int kSteps = 100;
constexpr double kTime = 0.1;

Tensor t(const Tensor& x) { return np::matrix_transpose(x); }
Tensor matrix(std::initializer_list<kassette::Operand> rows) { return np::array(rows, kDtype); }

/// A body in the plane: (x, y, speed of x, speed of y), pushed at random.
struct Motion {
  Tensor move = matrix({{1, 0, kTime, 0}, {0, 1, 0, kTime}, {0, 0, 1, 0}, {0, 0, 0, 1}});
  Tensor see = matrix({{1, 0, 0, 0}, {0, 1, 0, 0}});
  Tensor push = 0.05 * np::eye(4, kassette::None, 0, kDtype);
};

struct State {
  Tensor mean, covariance;
};
struct Filtered {
  std::vector<State> predicted, updated;
  Tensor log_likelihood;
};

Filtered filter(const Motion& m, const std::vector<Tensor>& seen, const Tensor& noise) {
  Filtered f;
  State s{np::zeros(4, kDtype), np::eye(4, kassette::None, 0, kDtype)};
  const Tensor one = np::eye(4, kassette::None, 0, kDtype),
               r = np::square(noise) * np::eye(2, kassette::None, 0, kDtype);
  f.log_likelihood = np::zeros({}, kDtype);
  for (const Tensor& z : seen) {
    s = {np::matmul(m.move, s.mean), np::matmul(np::matmul(m.move, s.covariance), t(m.move)) + m.push};
    f.predicted.push_back(s);
    const Tensor surprise = z - np::matmul(m.see, s.mean);
    const Tensor spread = np::matmul(np::matmul(m.see, s.covariance), t(m.see)) + r;
    // The gain k solves k spread = covariance see'.
    const Tensor gain = t(np::linalg::solve(spread, np::matmul(m.see, s.covariance)));
    f.log_likelihood = f.log_likelihood - 0.5 * (np::vdot(surprise, np::linalg::solve(spread, surprise)) +
                                                 np::linalg::slogdet(spread).logabsdet + 2 * std::log(2 * np::pi));
    s = {s.mean + np::matmul(gain, surprise), np::matmul(one - np::matmul(gain, m.see), s.covariance)};
    f.updated.push_back(s);
  }
  return f;
}

std::vector<State> smooth(const Motion& m, const Filtered& f) {
  std::vector<State> all = f.updated;
  for (std::size_t i = all.size() - 1; i-- > 0;) {
    const State &now = f.updated[i], &next = f.predicted[i + 1];
    const Tensor gain = t(np::linalg::solve(next.covariance, np::matmul(m.move, now.covariance)));
    all[i].mean = now.mean + np::matmul(gain, all[i + 1].mean - next.mean);
    all[i].covariance = now.covariance + np::matmul(np::matmul(gain, all[i + 1].covariance - next.covariance), t(gain));
  }
  return all;
}

double error_of(const std::vector<State>& states, const std::vector<Tensor>& places) {
  double sum = 0;
  for (std::size_t i = 0; i < states.size(); ++i)
    sum += np::sum(np::square(states[i].mean[kassette::slice(0, 2)] - places[i])).item<double>();
  return std::sqrt(sum / double(states.size()));
}

int main() {
  K::set_random_seed(11);
  const Motion motion;
  std::vector<Tensor> places, seen;
  double raw = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double time = i * kTime;
    places.push_back(matrix({3 * std::cos(0.6 * time), 2 * std::sin(0.6 * time)}));
    seen.push_back(places.back() + 0.5 * K::random_normal({2}, 0, 1, kDtype));
    raw += np::sum(np::square(seen.back() - places.back())).item<double>();
  }

  // The noise of the measurements, from a wrong guess, by Newton's method on its logarithm.
  Tensor log_noise = K::variable(std::log(2.0), kDtype);
  for (int step = 0; step < 8; ++step) {
    const Tensor loss = -filter(motion, seen, np::exp(log_noise)).log_likelihood / kSteps;
    const Tensor slope = K::gradients(loss, {log_noise})[0], bend = K::gradients(slope, {log_noise})[0];
    std::printf("step %d: loss %.4f, noise %.4f\n", step, loss.item<double>(), std::exp(log_noise.item<double>()));
    K::update_sub(log_noise, np::clip(slope / np::maximum(np::abs(bend), 0.1), -0.5, 0.5));
  }
  const double noise = std::exp(log_noise.item<double>());
  const Filtered filtered = filter(motion, seen, np::exp(log_noise));
  const double measured = std::sqrt(raw / kSteps), found = error_of(filtered.updated, places),
               smoothed = error_of(smooth(motion, filtered), places);
  std::printf("off by %.3f measured, %.3f filtered, %.3f smoothed\n", measured, found, smoothed);
  return smoothed < found && found < measured && std::fabs(noise - 0.5) < 0.15 ? 0 : 1;
}
