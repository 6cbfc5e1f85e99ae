// examples/attention.cpp - attention over time: a small recurrent network reads a sequence, and learns where to look in
// it.
#include <cmath>
#include <cstdio>

#include <kassette/backend.h>

namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;

Tensor glorot(int from, int to) {
  double most = std::sqrt(6.0 / (from + to));
  return K::random_uniform_variable({from, to}, -most, most);
}

constexpr int kTime = 20, kUnits = 16;

struct Network {
  Tensor in = glorot(2, kUnits), recurrent = glorot(kUnits, kUnits), bias = K::zeros({kUnits});
  Tensor look = glorot(kUnits, kUnits), where = glorot(kUnits, 1), out = glorot(kUnits, 1), offset = K::zeros({1});
  Tensors weights() const { return {in, recurrent, bias, look, where, out, offset}; }

  struct Answer {
    Tensor value, attention;  // (samples, 1), (samples, time)
  };
  Answer operator()(const Tensor& x) const {
    auto step = [&](const Tensor& projected, const Tensors& h) {
      Tensor next = K::tanh(projected + K::dot(h[0], recurrent));
      return K::Step{next, {next}};
    };
    Tensor states = K::rnn(step, K::dot(x, in) + bias, {K::zeros({K::shape(x)[0], kUnits})}).outputs;
    // Bahdanau et al. 2015: a score for each time, made to weights that sum to 1.
    Tensor attention = K::softmax(K::squeeze(K::dot(K::tanh(K::dot(states, look)), where), -1));
    Tensor context = K::batch_dot(attention, states, {1, 1});
    return {K::dot(context, out) + offset, attention};
  }
};

struct Batch {
  Tensor x, mark, y;
};
// Sequences of numbers in which one is marked; that number is to be told.
Batch draw(int samples) {
  Tensor numbers = K::random_uniform({samples, kTime}, -1, 1);
  Tensor mark = K::one_hot(K::cast(K::random_uniform({samples}, 0, kTime), "int32"), kTime);
  return {K::stack({numbers, mark}, -1), mark, K::sum(numbers * mark, 1, true)};
}

int main() {
  K::set_random_seed(2);
  Network network;
  kassette::Function train, test;
  K::symbolic([&] {
    Tensor x = K::placeholder({K::None, kTime, 2}), y = K::placeholder({K::None, 1}),
           mark = K::placeholder({K::None, kTime});
    auto [value, attention] = network(x);
    Tensor loss = K::mean(K::square(value - y));
    Tensors weights = network.weights(), gradients = K::gradients(loss, weights), updates;
    Tensor steps = K::variable(0), t = steps + 1, scale = 0.01 * K::sqrt(1 - K::pow(0.999, t)) / (1 - K::pow(0.9, t));
    updates.push_back(K::update(steps, t));  // Adam, Kingma and Ba 2015
    for (int i = 0; i < weights.size(); ++i) {
      const Tensor &w = weights[i], &g = gradients[i];
      Tensor m = K::zeros(w.shape()), v = K::zeros(w.shape()), m1 = 0.9 * m + 0.1 * g,
             v1 = 0.999 * v + 0.001 * K::square(g);
      for (const Tensor& u : {K::update(m, m1), K::update(v, v1), K::update(w, w - scale * m1 / (K::sqrt(v1) + 1e-7))})
        updates.push_back(u);
    }
    train = K::function({x, y}, {loss}, updates);
    test = K::function({x, y, mark}, {loss, K::mean(K::sum(attention * mark, 1))});
  })();

  std::printf(" step  squared error\n");
  for (int step = 1; step <= 1000; ++step) {
    Batch b = draw(64);
    double loss = train({b.x, b.y})[0].item<double>();
    if (step % 200 == 0) std::printf("%5d  %.5f\n", step, loss);
  }
  Batch b = draw(500);
  Tensors seen = test({b.x, b.y, b.mark});
  double error = seen[0].item<double>(), on_the_mark = seen[1].item<double>();
  std::printf("held out: squared error %.5f (guessing: 0.333), attention on the marked number %.2f\n", error,
              on_the_mark);
  return error < 0.01 ? 0 : 1;
}
