// examples/lstm.cpp - an LSTM written with K alone reads handwritten digits row by row, from top to bottom.
#include <cmath>
#include <cstdio>

#include "digits.h"

namespace K = kassette::backend;
using kassette::all;
using kassette::slice;
using kassette::Tensor;
using kassette::Tensors;

Tensor glorot(int from, int to) {
  double most = std::sqrt(6.0 / (from + to));
  return K::random_uniform_variable({from, to}, -most, most);
}

// Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000, whose bias starts at 1.
struct Lstm {
  int units;
  Tensor kernel, recurrent, bias;
  Lstm(int from, int n)
      : units(n), kernel(glorot(from, 4 * n)), recurrent(glorot(n, 4 * n)),
        bias(K::variable(K::concatenate({K::zeros({n}), K::ones({n}), K::zeros({2 * n})}))) {}

  // x (samples, time, features) -> what the cell gives after the last time. All inputs are projected at once, before
  // the loop.
  Tensor operator()(const Tensor& x) const {
    Tensor start = K::zeros({K::shape(x)[0], units});
    return K::rnn(
               [&](const Tensor& projected, const Tensors& states) {
                 Tensor z = projected + K::dot(states[0], recurrent);
                 auto gate = [&](int k) { return z(all, slice(k * units, (k + 1) * units)); };
                 Tensor cell = K::sigmoid(gate(1)) * states[1] + K::sigmoid(gate(0)) * K::tanh(gate(2));
                 Tensor h = K::sigmoid(gate(3)) * K::tanh(cell);
                 return K::Step{h, {h, cell}};
               },
               K::dot(x, kernel) + bias, {start, start})
        .last_output;
  }
};

// Kingma and Ba 2015.
Tensors adam(const Tensor& loss, const Tensors& weights, double rate = 0.01) {
  Tensors gradients = K::gradients(loss, weights), updates;
  Tensor steps = K::variable(0), t = steps + 1, scale = rate * K::sqrt(1 - K::pow(0.999, t)) / (1 - K::pow(0.9, t));
  updates.push_back(K::update(steps, t));
  for (int i = 0; i < weights.size(); ++i) {
    const Tensor &w = weights[i], &g = gradients[i];
    Tensor m = K::zeros(w.shape()), v = K::zeros(w.shape()), m1 = 0.9 * m + 0.1 * g,
           v1 = 0.999 * v + 0.001 * K::square(g);
    for (const Tensor& u : {K::update(m, m1), K::update(v, v1), K::update(w, w - scale * m1 / (K::sqrt(v1) + 1e-7))})
      updates.push_back(u);
  }
  return updates;
}

int main() {
  std::mt19937 random(3);
  K::set_random_seed(1);
  Digits digits(random);
  Lstm lstm(8, 64);
  Tensor out = glorot(64, 10), bias = K::zeros({10});
  kassette::Function train, test;
  K::symbolic([&] {
    Tensor x = K::placeholder({K::None, 64}), y = K::placeholder({K::None}, K::None, "int32");
    Tensor scores = K::dot(lstm(K::reshape(x, {-1, 8, 8})), out) + bias;
    Tensor loss = K::mean(K::sparse_categorical_crossentropy(y, scores, /*from_logits=*/true));
    train = K::function({x, y}, {loss}, adam(loss, {lstm.kernel, lstm.recurrent, lstm.bias, out, bias}));
    test = K::function({x, y}, {K::mean(K::equal(K::argmax(scores), K::cast(y, "int64")))});
  })();

  double accuracy = 0;
  std::printf("epoch    loss  held-out accuracy\n");
  for (int epoch = 1; epoch <= 12; ++epoch) {
    Tensor rows = K::constant(shuffled_rows(Digits::train, random), "int32");
    double total = 0;
    int batches = 0;
    for (int at = 0; at + 32 <= Digits::train; at += 32, ++batches) {
      Tensor batch = rows[slice(at, at + 32)];
      total += train({K::gather(digits.x, batch), K::gather(digits.y, batch)})[0].item<double>();
    }
    accuracy = test({digits.x_test, digits.y_test})[0].item<double>();
    if (epoch % 3 == 0) std::printf("%5d %7.4f  %6.2f %%\n", epoch, total / batches, 100 * accuracy);
  }
  return accuracy >= 0.95 ? 0 : 1;
}
