// examples/wgan_gp.cpp - a generative adversarial network with a gradient penalty (Gulrajani et al. 2017) that learns a
// ring of eight normal distributions. The penalty is a function of the critic's gradient, so that training takes
// gradients of gradients.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "dense.h"

namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;

constexpr int kNoise = 4, kBatch = 128, kModes = 8;
constexpr double kSpread = 0.08;

struct Generator {
  Dense first{kNoise, 64}, second{64, 64}, out{64, 2};
  Tensors weights = weights_of({first, second, out});
  Tensor operator()(const Tensor& z) const { return out(K::relu(second(K::relu(first(z))))); }
};

struct Critic {
  Dense first{2, 64}, second{64, 64}, out{64, 1};
  Tensors weights = weights_of({first, second, out});
  Tensor operator()(const Tensor& x) const {
    return out(K::relu(second(K::relu(first(x), /*alpha=*/0.2)), /*alpha=*/0.2));
  }
};

// How far the critic's slope is from one, at points between real and made ones.
Tensor gradient_penalty(const Critic& critic, const Tensor& real, const Tensor& made, const Tensor& where) {
  Tensor between = where * real + (1 - where) * made;
  Tensor slope = K::gradients(K::sum(critic(between)), {between})[0];
  return K::mean(K::square(K::sqrt(K::sum(K::square(slope), -1) + 1e-12) - 1));
}

// n points of the ring.
Tensor ring(int n) {
  Tensor angle = 2 * M_PI / kModes * K::cast(K::random_uniform({n}, 0, kModes, "int32"), K::floatx());
  return K::stack({K::cos(angle), K::sin(angle)}, -1) + K::random_normal({n, 2}, 0, kSpread);
}

// The energy distance of two samples (Szekely and Rizzo 2013): 0 for the same distribution.
double energy_distance(const Tensor& a, const Tensor& b) {
  auto mean_distance = [](const Tensor& u, const Tensor& v) {
    return K::mean(K::sqrt(K::sum(K::square(K::expand_dims(u, 1) - K::expand_dims(v, 0)), -1)));
  };
  return (2 * mean_distance(a, b) - mean_distance(a, a) - mean_distance(b, b)).item<double>();
}

// The penalty's gradient in the kernels of a critic against central differences, in float64, relative to the largest.
double off_differences() {
  K::set_floatx("float64");
  const Critic critic;
  Tensor real = ring(32), made = 0.5 * K::random_normal({32, 2}), where = K::variable(K::random_uniform({32, 1}));
  const double h = 1e-6;
  double off = 0, largest = 0;
  for (const Tensor& w : {critic.first.kernel, critic.second.kernel, critic.out.kernel}) {
    Tensor g = K::gradients(gradient_penalty(critic, real, made, where), {w})[0], kept = K::get_value(w);
    // Along one random direction for each kernel.
    Tensor along = K::random_normal(w.shape());
    along = along / K::sqrt(K::sum(K::square(along)));
    auto penalty = [&](double step) {
      K::set_value(w, kept + step * along);
      return gradient_penalty(critic, real, made, where).item<double>();
    };
    const double difference = (penalty(h) - penalty(-h)) / (2 * h), exact = K::sum(g * along).item<double>();
    K::set_value(w, kept);
    off = std::fmax(off, std::fabs(difference - exact));
    largest = std::fmax(largest, K::sqrt(K::sum(K::square(g))).item<double>());
  }
  K::set_floatx("float32");
  return off / largest;
}

int main() {
  K::set_random_seed(2);
  const Generator generator;
  const Critic critic;
  const double off = off_differences();
  std::printf("gradient of the penalty against differences: off by %.1e\n", off);

  kassette::Function teach, fool;
  K::symbolic([&] {
    Tensor real = ring(kBatch), made = generator(K::random_normal({kBatch, kNoise}));
    Tensor apart = K::mean(critic(real)) - K::mean(critic(made));
    Tensor penalty = gradient_penalty(critic, real, made, K::random_uniform({kBatch, 1}));
    Tensor loss = penalty - apart;
    teach = K::function({}, {apart, penalty}, adam(loss, critic.weights, 0.003, 0.5, 0.9));
    Tensor fooled = -K::mean(critic(generator(K::random_normal({kBatch, kNoise}))));
    fool = K::function({}, {}, adam(fooled, generator.weights, 0.0005, 0.5, 0.9));
  })();

  const Tensor truth = ring(1000);
  auto generated = [&] { return K::eval(generator(K::random_normal({1000, kNoise}))); };
  const double before = energy_distance(generated(), truth), same = energy_distance(ring(1000), truth);
  double penalty = 0;
  for (int step = 1; step <= 1000; ++step) {
    Tensors said;
    for (int i = 0; i < 4; ++i) said = teach({});
    fool({});
    penalty = 0.98 * penalty + 0.02 * said[1].item<double>();
    if (step % 200 == 0)
      std::printf("step %4d: distance by the critic %6.3f, penalty %.4f, energy distance %.4f\n", step,
                  said[0].item<double>(), penalty, energy_distance(generated(), truth));
  }

  // Which of the eight are there, and how many points are near one.
  Tensor angle = 2 * M_PI / kModes * K::arange(0, kModes, 1, "float32"),
         modes = K::stack({K::cos(angle), K::sin(angle)}, -1);
  Tensor distance = K::sqrt(K::sum(K::square(K::expand_dims(generated(), 1) - K::expand_dims(modes, 0)), -1));
  Tensor near = K::min(distance, -1) < 4 * kSpread, share = K::mean(K::one_hot(K::argmin(distance, -1), kModes), 0);
  const double close = K::mean(K::cast(near, "float32")).item<double>(), rarest = K::min(share).item<double>();
  const double after = energy_distance(generated(), truth);
  std::printf("%.0f %% of the points are near one of the eight, the rarest of which has %.1f %%\n", 100 * close,
              100 * rarest);
  std::printf("energy distance: %.4f before, %.4f after; two samples of the truth %.4f\n", before, after, same);
  return off < 1e-6 && after < before / 10 && close > 0.6 && rarest > 0.04 ? 0 : 1;
}
