// examples/digits.cpp - learns to read handwritten digits: 64-128-10, ReLU, Adam, 30 epochs. Run it with "function" to
// train through K::function with placeholders and updates: the same numbers to the last bit.
#include <kassette/backend.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;

#ifndef KASSETTE_EXAMPLES
#define KASSETTE_EXAMPLES "examples"
#endif

struct Digits { std::vector<float> pixels; std::vector<int> labels; };   // 64 pixels a digit, 0..1

Digits read(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw kassette::ValueError(("digits: cannot read " + path).c_str());
  Digits d;
  for (int value, column = 0; file >> value; file.ignore(), ++column)
    if (column % 65 < 64) d.pixels.push_back(value / 16.0f);
    else d.labels.push_back(value);
  return d;
}

// Layers of the network; weights as Glorot and Bengio draw them.
Tensor glorot(int in, int out, int seed) {
  double limit = std::sqrt(6.0 / (in + out));
  return K::random_uniform_variable({in, out}, -limit, limit, K::None, K::None, seed);
}
Tensors weights = {glorot(64, 128, 1), K::zeros({128}), glorot(128, 10, 2), K::zeros({10})};

Tensor logits(const Tensor& x) {
  return K::dot(K::relu(K::dot(x, weights[0]) + weights[1]), weights[2]) + weights[3];
}
Tensor loss_of(const Tensor& x, const Tensor& y) { return K::mean(K::sparse_categorical_crossentropy(y, logits(x), true)); }

// Adam (Kingma and Ba 2015), written with K functions alone; returns the updates, which eagerly have run.
Tensors moments1, moments2;
Tensor steps = K::variable(0);

Tensors adam(const Tensor& loss, double lr = 0.01, double b1 = 0.9, double b2 = 0.999) {
  Tensors gradients = K::gradients(loss, weights), updates;
  Tensor t = steps + 1.0, rate = lr * K::sqrt(1.0 - K::pow(b2, t)) / (1.0 - K::pow(b1, t));
  for (int i = 0; i < weights.size(); ++i) {
    Tensor m = b1 * moments1[i] + (1 - b1) * gradients[i], v = b2 * moments2[i] + (1 - b2) * K::square(gradients[i]);
    updates.push_back(K::update(weights[i], weights[i] - rate * m / (K::sqrt(v) + 1e-7)));
    updates.push_back(K::update(moments1[i], m));
    updates.push_back(K::update(moments2[i], v));
  }
  updates.push_back(K::update(steps, t));
  return updates;
}

int main(int argc, char** argv) {
  bool by_function = argc > 1 && std::string(argv[1]) == "function";
  Digits d = read(std::string(KASSETTE_EXAMPLES) + "/data/digits.csv");
  int n = static_cast<int>(d.labels.size()), n_train = 1437, batch = 32;
  std::vector<int> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 shuffle(3);
  std::shuffle(order.begin(), order.end(), shuffle);
  Tensor x = K::gather(K::reshape(K::constant(d.pixels), {n, 64}), K::constant(order, "int32"));
  Tensor y = K::gather(K::constant(d.labels, "int32"), K::constant(order, "int32"));
  Tensor x_test = x[kassette::slice(n_train)], y_test = y[kassette::slice(n_train)];
  for (const Tensor& w : weights) {
    moments1.push_back(K::zeros(w.shape()));
    moments2.push_back(K::zeros(w.shape()));
  }

  kassette::Function step;
  if (by_function)
    K::symbolic([&] {
      Tensor in = K::placeholder({K::None, 64}), target = K::placeholder({K::None}, K::None, "int32");
      Tensor loss = loss_of(in, target);
      step = K::function({in, target}, {loss}, adam(loss));
    })();
  std::printf("epoch    loss  held-out accuracy\n");
  std::vector<int> rows(order.begin(), order.begin() + n_train);
  std::iota(rows.begin(), rows.end(), 0);
  for (int epoch = 1; epoch <= 30; ++epoch) {
    std::shuffle(rows.begin(), rows.end(), shuffle);
    Tensor mixed = K::constant(rows, "int32");
    double total = 0;
    for (int at = 0; at < n_train; at += batch) {
      Tensor pick = mixed[kassette::slice(at, at + batch)], xb = K::gather(x, pick), yb = K::gather(y, pick), loss;
      if (by_function) {
        loss = step({xb, yb})[0];
      } else {
        loss = loss_of(xb, yb);
        adam(loss);
      }
      total += loss.item<double>() * static_cast<double>(pick.size());
    }
    double accuracy = K::mean(K::equal(K::argmax(logits(x_test)), K::cast(y_test, "int64"))).item<double>();
    if (isatty(2)) std::fprintf(stderr, "\repoch %d of 30 %s", epoch, epoch == 30 ? "\n" : "");
    if (epoch % 5 == 0) std::printf("%5d %7.4f  %6.2f %%\n", epoch, total / n_train, 100 * accuracy);
  }

  std::vector<std::int64_t> said = K::argmax(logits(x_test)).to_vector<std::int64_t>();
  std::vector<int> truth = y_test.to_vector<int>();
  std::vector<float> pixels = x_test.to_vector<float>();
  int table[10][10] = {}, right = 0, shown = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    ++table[truth[i]][said[i]];
    right += truth[i] == said[i];
  }
  std::printf("\nconfusion: rows are the truth, columns what was said\n     0   1   2   3   4   5   6   7   8   9\n");
  for (int r = 0; r < 10; ++r) {
    std::printf("%d ", r);
    for (int c = 0; c < 10; ++c) std::printf(table[r][c] ? "%4d" : "   .", table[r][c]);
    std::printf("\n");
  }
  for (std::size_t i = 0; i < truth.size() && shown < 3; ++i) {
    if (truth[i] == said[i]) continue;
    std::printf("\na %d, said %d\n", truth[i], static_cast<int>(said[i]));
    for (int r = 0; r < 8; ++r, std::printf("\n"))
      for (int c = 0; c < 8; ++c) std::printf("%.2s", &"  ..::++##@@"[2 * static_cast<int>(pixels[i * 64 + std::size_t(r * 8 + c)] * 5)]);
    ++shown;
  }
  double accuracy = static_cast<double>(right) / static_cast<double>(truth.size());
  std::printf("\n%d of %d held-out digits right: %.2f %%\n", right, static_cast<int>(truth.size()), 100 * accuracy);
  return accuracy >= 0.97 ? 0 : 1;
}
