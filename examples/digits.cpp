// examples/digits.cpp - learns to read handwritten digits: 64-128-10, ReLU, Adam, 30 epochs. With the argument
// "function" it trains through K::function, with placeholders and updates, and prints the same numbers to the last bit.
#include <kassette/inspect.h>

#include <cstdio>
#include <iostream>
#include <string>
#include <unistd.h>

#include "digits.h"

namespace K = kassette::backend;
using kassette::slice;
using kassette::Tensor;
using kassette::Tensors;

Tensors weights = {K::random_uniform_variable({64, 128}, -0.18, 0.18, K::None, K::None, 1), K::zeros({128}),
                   K::random_uniform_variable({128, 10}, -0.21, 0.21, K::None, K::None, 2), K::zeros({10})};
Tensors m, v;  // Adam's moments
Tensor steps = K::variable(0);

Tensor logits(const Tensor& x) { return K::dot(K::relu(K::dot(x, weights[0]) + weights[1]), weights[2]) + weights[3]; }
Tensor loss_of(const Tensor& x, const Tensor& y) {
  return K::mean(K::sparse_categorical_crossentropy(y, logits(x), true));
}

// Adam (Kingma and Ba 2015) with K functions alone. Eagerly the updates run here; in K::symbolic they are ops for a
// function.
Tensors adam(const Tensor& loss, double lr = 0.01, double b1 = 0.9, double b2 = 0.999) {
  Tensors gradients = K::gradients(loss, weights), updates;
  Tensor t = steps + 1.0, rate = lr * K::sqrt(1.0 - K::pow(b2, t)) / (1.0 - K::pow(b1, t));
  for (int i = 0; i < weights.size(); ++i) {
    Tensor mt = b1 * m[i] + (1 - b1) * gradients[i], vt = b2 * v[i] + (1 - b2) * K::square(gradients[i]);
    updates.push_back(K::update(weights[i], weights[i] - rate * mt / (K::sqrt(vt) + 1e-7)));
    updates.push_back(K::update(m[i], mt));
    updates.push_back(K::update(v[i], vt));
  }
  updates.push_back(K::update(steps, t));
  return updates;
}

int main(int argc, char** argv) {
  std::mt19937 random(3);
  Digits digits(random);
  const Tensor &x = digits.x, &y = digits.y, &x_test = digits.x_test, &y_test = digits.y_test;
  const int n_train = Digits::train, batch = 32;
  for (const Tensor& w : weights) m.push_back(K::zeros(w.shape())), v.push_back(K::zeros(w.shape()));

  kassette::Function step;
  if (argc > 1 && std::string(argv[1]) == "function")
    K::symbolic([&] {
      Tensor in = K::placeholder({K::None, 64}), target = K::placeholder({K::None}, K::None, "int32"),
             loss = loss_of(in, target);
      step = K::function({in, target}, {loss}, adam(loss));
    })();
  std::vector<double> losses;
  std::printf("epoch    loss  held-out accuracy\n");
  for (int epoch = 1; epoch <= 30; ++epoch) {
    Tensor rows = K::constant(shuffled_rows(n_train, random), "int32");
    double total = 0;
    for (int at = 0; at < n_train; at += batch) {
      Tensor pick = rows[slice(at, at + batch)], xb = K::gather(x, pick), yb = K::gather(y, pick), loss;
      if (step.defined()) loss = step({xb, yb})[0];
      else adam(loss = loss_of(xb, yb));
      total += loss.item<double>() * double(pick.size());
    }
    losses.push_back(total / n_train);
    double accuracy = K::mean(K::equal(K::argmax(logits(x_test)), K::cast(y_test, "int64"))).item<double>();
    if (isatty(2)) std::fprintf(stderr, "\repoch %d of 30%s", epoch, epoch == 30 ? "\n" : "");
    if (epoch % 5 == 0) std::printf("%5d %7.4f  %6.2f %%\n", epoch, losses.back(), 100 * accuracy);
  }
  kassette::PictureOptions curve;
  curve.title = "loss of each epoch", curve.width = 72, curve.height = 12;
  std::cout << '\n' << kassette::plot(losses, curve) << '\n';

  std::vector<int> said = K::argmax(logits(x_test)).to_vector<int>(), truth = y_test.to_vector<int>();
  std::vector<float> drawn = x_test.to_vector<float>();
  int table[10][10] = {}, right = 0, shown = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    ++table[truth[i]][said[i]];
    right += truth[i] == said[i];
    if (truth[i] == said[i] || ++shown > 3) continue;
    std::printf("\na %d, read as %d\n", truth[i], said[i]);
    for (std::size_t k = 0; k < 64; ++k)
      std::printf("%.2s%s", &"  ..::++##@@"[2 * int(drawn[i * 64 + k] * 5)], k % 8 == 7 ? "\n" : "");
  }
  std::printf(
      "\nconfusion: a row for each digit, a column for what was read\n     0   1   2   3   4   5   6   7   8   9");
  for (int r = 0; r < 100; ++r)
    std::printf(table[r / 10][r % 10] ? "%s%4d" : "%s   .", r % 10 ? "" : "\n ", table[r / 10][r % 10]);
  double accuracy = double(right) / double(truth.size());
  std::printf("\n\n%d of %d held-out digits right: %.2f %%\n", right, int(truth.size()), 100 * accuracy);
#ifdef KASSETTE_SCRIPT_FOLDER  // by `kassette run`
  std::puts(R"(
To try next:
  ./kassette run examples/digits.cpp function   the same training through K::function, to the last bit
  ./kassette run examples/ctc_digits.cpp        reads strings of digits, with a GRU and CTC
  ./kassette repl                               a prompt: K::relu({-1, 2})
The script is examples/digits.cpp; docs/first_steps.md says how to write one.)");
#endif
  return accuracy >= 0.97 ? 0 : 1;
}
