// examples/optimizers.cpp - custom optimisers, written with K: momentum, RMSprop, AMSGrad; gradients clipped by their
// norm and accumulated over several batches; weights averaged over time. On XOR, and on handwritten digits.
#include <cmath>
#include <cstdio>
#include <functional>

#include "dense.h"
#include "digits.h"

namespace K = kassette::backend;
using kassette::slice;
using kassette::Tensor;
using kassette::Tensors;

// An optimiser makes of a loss and weights the updates of one step.
using Optimizer = std::function<Tensors(const Tensor& loss, const Tensors& weights)>;

// All gradients shortened alike, where together they are longer than `norm`.
Tensors clipped(const Tensors& gradients, double norm) {
  Tensor squares = 0 * K::sum(gradients[0]);
  for (const Tensor& g : gradients) squares = squares + K::sum(K::square(g));
  Tensors shorter;
  for (const Tensor& g : gradients) shorter.push_back(g * K::minimum(1, norm / K::sqrt(squares + 1e-12)));
  return shorter;
}

// Nesterov's momentum (Sutskever et al. 2013).
Tensors momentum(const Tensor& loss, const Tensors& weights, double rate, double keep = 0.9) {
  Tensors gradients = clipped(K::gradients(loss, weights), 5), updates;
  for (int i = 0; i < weights.size(); ++i) {
    const Tensor &w = weights[i], &g = gradients[i];
    Tensor v = K::zeros(w.shape()), v1 = keep * v - rate * g;
    updates.push_back(K::update(v, v1)), updates.push_back(K::update(w, w + keep * v1 - rate * g));
  }
  return updates;
}

Tensors rmsprop(const Tensor& loss, const Tensors& weights, double rate, double keep = 0.9) {
  Tensors gradients = K::gradients(loss, weights), updates;
  for (int i = 0; i < weights.size(); ++i) {
    const Tensor &w = weights[i], &g = gradients[i];
    Tensor a = K::zeros(w.shape()), a1 = keep * a + (1 - keep) * K::square(g);
    updates.push_back(K::update(a, a1)), updates.push_back(K::update(w, w - rate * g / (K::sqrt(a1) + K::epsilon())));
  }
  return updates;
}

// Adam whose steps never grow again (Reddi, Kale and Kumar 2018).
Tensors amsgrad(const Tensor& loss, const Tensors& weights, double rate, double b1 = 0.9, double b2 = 0.999) {
  Tensors gradients = K::gradients(loss, weights), updates;
  Tensor steps = K::variable(0), t = steps + 1, scale = rate * K::sqrt(1 - K::pow(b2, t)) / (1 - K::pow(b1, t));
  updates.push_back(K::update(steps, t));
  for (int i = 0; i < weights.size(); ++i) {
    const Tensor &w = weights[i], &g = gradients[i];
    Tensor m = K::zeros(w.shape()), v = K::zeros(w.shape()), most = K::zeros(w.shape());
    Tensor m1 = b1 * m + (1 - b1) * g, v1 = b2 * v + (1 - b2) * K::square(g), most1 = K::maximum(most, v1);
    for (const Tensor& u : {K::update(m, m1), K::update(v, v1), K::update(most, most1),
                            K::update(w, w - scale * m1 / (K::sqrt(most1) + K::epsilon()))})
      updates.push_back(u);
  }
  return updates;
}

// AMSGrad on the sum of (w - target)^2 * weight, from 0, in plain C++.
double amsgrad_by_hand(double target, double weight, double rate, int steps) {
  double w = 0, m = 0, v = 0, most = 0;
  for (int t = 1; t <= steps; ++t) {
    const double g = 2 * weight * (w - target);
    m = 0.9 * m + 0.1 * g, v = 0.999 * v + 0.001 * g * g, most = std::fmax(most, v);
    w -= rate * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t)) * m / (std::sqrt(most) + 1e-7);
  }
  return w;
}

double difference(const Tensors& a, const Tensors& b) {
  double most = 0;
  for (int i = 0; i < a.size(); ++i) most = std::fmax(most, K::max(K::abs(a[i] - b[i])).item<double>());
  return most;
}

int main() {
  std::mt19937 random(3);
  const Digits digits(random);
  const struct {
    const char* name;
    Optimizer xor_, digits_;
  } optimizers[] = {{"momentum", [](auto& l, auto& w) { return momentum(l, w, 0.1); },
                     [](auto& l, auto& w) { return momentum(l, w, 0.05); }},
                    {"RMSprop", [](auto& l, auto& w) { return rmsprop(l, w, 0.01); },
                     [](auto& l, auto& w) { return rmsprop(l, w, 0.002); }},
                    {"AMSGrad", [](auto& l, auto& w) { return amsgrad(l, w, 0.02); },
                     [](auto& l, auto& w) { return amsgrad(l, w, 0.003); }}};
  bool good = true;
  std::printf("%-10s %12s %18s %20s\n", "", "loss of XOR", "digits, held out", "with averaged weights");
  K::set_random_seed(4);
  const Dense a{2, 8}, b{8, 1}, hidden{64, 64}, out{64, 10};
  const Tensors of_xor = weights_of({a, b}), of_digits = weights_of({hidden, out});
  const Tensors xor_start = K::batch_get_value(of_xor), digits_start = K::batch_get_value(of_digits);
  auto scores = [&](const Tensor& x) { return out(K::relu(hidden(x))); };
  auto loss_of = [&](const Tensor& x, const Tensor& y) {
    return K::mean(K::sparse_categorical_crossentropy(y, scores(x), true));
  };
  for (const auto& one : optimizers) {
    K::batch_set_value(of_xor, xor_start), K::batch_set_value(of_digits, digits_start);
    Tensors averages;
    for (const Tensor& w : of_digits) averages.push_back(K::variable(w));
    const Tensor x = K::constant({{0, 0}, {0, 1}, {1, 0}, {1, 1}}), y = K::constant({{0}, {1}, {1}, {0}});
    kassette::Function learn_xor, learn_digits, average;
    K::symbolic([&] {
      Tensor loss = K::mean(K::binary_crossentropy(y, b(K::tanh(a(x))), true));
      learn_xor = K::function({}, {loss}, one.xor_(loss, of_xor));
      Tensor px = K::placeholder({K::None, 64}), py = K::placeholder({K::None}, K::None, "int32"), dl = loss_of(px, py);
      learn_digits = K::function({px, py}, {dl}, one.digits_(dl, of_digits));
      Tensors moves;
      for (int i = 0; i < averages.size(); ++i)
        moves.push_back(K::moving_average_update(averages[i], of_digits[i], 0.99));
      average = K::function({}, {}, moves);
    })();
    double loss = 0;
    for (int i = 0; i < 1000; ++i) loss = learn_xor({})[0].item<double>();
    std::mt19937 order(7);
    for (int epoch = 0; epoch < 15; ++epoch) {
      Tensor rows = K::constant(shuffled_rows(Digits::train, order), "int32");
      for (int at = 0; at + 32 <= Digits::train; at += 32) {
        Tensor batch = rows[slice(at, at + 32)];
        learn_digits({K::gather(digits.x, batch), K::gather(digits.y, batch)}), average({});
      }
    }
    auto accuracy = [&] {
      return 100 * K::mean(K::equal(K::argmax(scores(digits.x_test)), K::cast(digits.y_test, "int64"))).item<double>();
    };
    const double last = accuracy();
    K::batch_set_value(of_digits, averages);
    const double averaged = accuracy();
    std::printf("%-10s %12.5f %16.2f %% %18.2f %%\n", one.name, loss, last, averaged);
    good = good && loss < 0.01 && last > 95 && averaged > 95;
  }

  // The gradients of four batches of 8, gathered, are those of one of 32.
  Tensors gathered;
  for (const Tensor& w : of_digits) gathered.push_back(K::zeros(w.shape()));
  for (int i = 0; i < 4; ++i) {
    const auto batch = slice(8 * i, 8 * i + 8);
    Tensors g = K::gradients(loss_of(digits.x[batch], digits.y[batch]), of_digits);
    for (int k = 0; k < g.size(); ++k) K::update_add(gathered[k], g[k] / 4);
  }
  const double apart =
      difference(K::gradients(loss_of(digits.x[slice(0, 32)], digits.y[slice(0, 32)]), of_digits), gathered);

  // And AMSGrad takes the steps that it takes on paper.
  Tensor w = K::variable({0, 0, 0}, "float64"), target = K::constant({1, -2, 0.5}, "float64"),
         weight = K::constant({1, 10, 0.1}, "float64");
  K::set_floatx("float64");
  kassette::Function step =
      K::symbolic([&] { return K::function({}, {}, amsgrad(K::sum(weight * K::square(w - target)), {w}, 0.05)); })();
  K::set_floatx("float32");
  for (int i = 0; i < 100; ++i) step({});
  Tensor by_hand = K::constant(
      {amsgrad_by_hand(1, 1, 0.05, 100), amsgrad_by_hand(-2, 10, 0.05, 100), amsgrad_by_hand(0.5, 0.1, 0.05, 100)},
      "float64");
  const double off = K::max(K::abs(w - by_hand)).item<double>();
  std::printf(
      "four batches gathered, against one: off by %.1e; AMSGrad against plain C++ after 100 steps: off by %.1e\n",
      apart, off);
  return good && apart < 1e-6 && off < 1e-9 ? 0 : 1;
}
