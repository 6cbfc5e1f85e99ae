// examples/gru.cpp - a GRU written with K alone, trained eagerly on sequences of different lengths. It learns to
// remember two numbers and to add them; steps beyond the end of a sequence are masked.
#include <cmath>
#include <cstdio>

#include <kassette/backend.h>

namespace K = kassette::backend;
using kassette::all;
using kassette::slice;
using kassette::Tensor;
using kassette::Tensors;

Tensor glorot(int from, int to) {
  double most = std::sqrt(6.0 / (from + to));
  return K::random_uniform_variable({from, to}, -most, most);
}

// Cho et al. 2014.
struct Gru {
  int units;
  Tensor kernel, recurrent, candidate, bias;
  Gru(int from, int n)
      : units(n), kernel(glorot(from, 3 * n)), recurrent(glorot(n, 2 * n)), candidate(glorot(n, n)),
        bias(K::zeros({3 * n})) {}

  // x (samples, time, features), mask (samples, time) -> the state after each sample's last time.
  Tensor operator()(const Tensor& x, const Tensor& mask) const {
    auto step = [&](const Tensor& projected, const Tensors& states) {
      const Tensor& h = states[0];
      Tensor gates = K::sigmoid(projected(all, slice(0, 2 * units)) + K::dot(h, recurrent));
      Tensor keep = gates(all, slice(0, units)), reset = gates(all, slice(units, 2 * units));
      Tensor fresh = K::tanh(projected(all, slice(2 * units, 3 * units)) + K::dot(reset * h, candidate));
      Tensor next = keep * h + (1 - keep) * fresh;
      return K::Step{next, {next}};
    };
    K::RnnOptions options;
    options.mask = mask;
    return K::rnn(step, K::dot(x, kernel) + bias, {K::zeros({K::shape(x)[0], units})}, options).last_output;
  }
};

struct Batch {
  Tensor x, mask, y;
};
// The adding problem of Hochreiter and Schmidhuber 1997: two numbers of each sequence are marked, their sum is asked
// for.
Batch adding(int samples, int time) {
  Tensor at = K::arange(0, time), numbers = K::random_uniform({samples, time});
  Tensor lengths = K::cast(K::random_uniform({samples, 1}, time / 2, time + 1), "int32");
  auto mark = [&](const Tensor& from, const Tensor& to) {  // one place in [from, to)
    Tensor place = from + K::cast(K::random_uniform({samples, 1}) * K::cast(to - from, "float32"), "int32");
    return K::cast(K::equal(at, place), "float32");
  };
  Tensor half = K::cast(K::cast(lengths, "float32") * 0.5, "int32");
  Tensor marks = mark(K::zeros_like(half, "int32"), half) + mark(half, lengths);
  return {K::stack({numbers, marks}, -1), K::less(at, lengths), K::sum(numbers * marks, 1, true)};
}

int main() {
  K::set_random_seed(1);
  Gru gru(2, 32);
  Tensor out = glorot(32, 1), bias = K::ones({1});
  Tensors weights{gru.kernel, gru.recurrent, gru.candidate, gru.bias, out, bias}, m, v;
  for (const Tensor& w : weights) m.push_back(K::zeros(w.shape())), v.push_back(K::zeros(w.shape()));
  auto error = [&](const Batch& b) { return K::mean(K::square(K::dot(gru(b.x, b.mask), out) + bias - b.y)); };

  double worst_guess = 1 / 6.0;  // the variance of the sum of two uniform numbers: what always answering 1 costs
  std::printf(" step  squared error (guessing: %.3f)\n", worst_guess);
  for (int step = 1; step <= 600; ++step) {
    Tensor loss = error(adding(32, 16));
    Tensors g = K::gradients(loss, weights);
    double scale = 0.01 * std::sqrt(1 - std::pow(0.999, step)) / (1 - std::pow(0.9, step));  // Adam, Kingma and Ba 2015
    for (int i = 0; i < weights.size(); ++i) {
      K::update(m[i], 0.9 * m[i] + 0.1 * g[i]);
      K::update(v[i], 0.999 * v[i] + 0.001 * K::square(g[i]));
      K::update_sub(weights[i], scale * m[i] / (K::sqrt(v[i]) + 1e-7));
    }
    if (step % 100 == 0) std::printf("%5d  %.4f\n", step, loss.item<double>());
  }
  double held_out = error(adding(500, 16)).item<double>();
  std::printf("held out: %.4f\n", held_out);
  return held_out < 0.01 ? 0 : 1;
}
