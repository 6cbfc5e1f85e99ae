// examples/mc_dropout.cpp - how certain a network is (Gal and Ghahramani 2016): dropout stays on, and the same digits
// are classified a thousand times. Where the results differ, the network is uncertain, as for images of two overlapping
// digits.
#include <chrono>
#include <cstdio>

#include "dense.h"
#include "digits.h"

namespace K = kassette::backend;
using kassette::slice;
using kassette::Tensor;

constexpr double kLevel = 0.5;
constexpr int kDraws = 1000;

struct Network {
  Dense hidden{64, 256}, out{256, 10};
  Tensor features(const Tensor& x) const { return K::relu(hidden(x)); }
  Tensor operator()(const Tensor& x) const {
    Tensor h = features(x);
    return out(K::in_train_phase([&] { return K::dropout(h, kLevel); }, h));
  }
};

Tensor entropy(const Tensor& p) { return -K::sum(p * K::log(K::maximum(p, 1e-30)), -1); }

// The same digits read again and again, with statistics that stay in variables.
struct Readings {
  Tensor logits, squares, p,
      h;  // sums over readings: of logits, their squares, probabilities, and the entropy of each reading
  Readings(const Network& net, const Tensor& x, int draws) {
    const auto n = x.shape()[0];
    logits = K::zeros({n, 10}), squares = K::zeros({n, 10}), p = K::zeros({n, 10}), h = K::zeros({n});
    kassette::Function read = K::symbolic([&] {
      Tensor in = K::placeholder({K::None, 64}), z = net(in), q = K::softmax(z);
      return K::function({in, K::learning_phase()}, {},
                         {K::update_add(logits, z), K::update_add(squares, K::square(z)), K::update_add(p, q),
                          K::update_add(h, entropy(q))});
    })();
    for (int i = 0; i < draws; ++i) read({x, 1});
    for (Tensor* sum : {&logits, &squares, &p, &h}) *sum = K::eval(*sum / draws);
  }
  // What the readings do not agree about, in nats: the mutual information of a reading and which one it is.
  Tensor disagreement() const { return entropy(p) - h; }
};

// How often one of `high` is above one of `low`: 0.5 says nothing, 1 tells them apart.
double area_under_curve(const Tensor& high, const Tensor& low) {
  return K::mean(K::cast(K::expand_dims(high, 1) > K::expand_dims(low, 0), "float32")).item<double>();
}

int main() {
  std::mt19937 random(3);
  K::set_random_seed(1);
  const Digits digits(random);
  const Network net;
  kassette::Function train = K::symbolic([&] {
    Tensor x = K::placeholder({K::None, 64}), y = K::placeholder({K::None}, K::None, "int32");
    Tensor loss = K::mean(K::sparse_categorical_crossentropy(y, net(x), /*from_logits=*/true));
    return K::function({x, y, K::learning_phase()}, {loss}, adam(loss, weights_of({net.hidden, net.out}), 0.003));
  })();
  for (int epoch = 0; epoch < 20; ++epoch) {
    Tensor rows = K::constant(shuffled_rows(Digits::train, random), "int32");
    for (int at = 0; at + 32 <= Digits::train; at += 32) {
      Tensor batch = rows[slice(at, at + 32)];
      train({K::gather(digits.x, batch), K::gather(digits.y, batch), 1});
    }
  }

  const Tensor x = digits.x_test, y = K::cast(digits.y_test, "int64");
  Tensor blends = 0.5 * (x + K::reverse(x, 0));
  const auto start = std::chrono::steady_clock::now();
  const Readings clean(net, x, kDraws), blended(net, blends, kDraws);
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double accuracy = K::mean(K::equal(K::argmax(clean.p), y)).item<double>();
  std::printf("%d readings of 360 digits, twice: %.2f s; the mean reading is right for %.2f %%\n", kDraws, took,
              100 * accuracy);

  // In theory the logits' mean is what the network says without dropout, and their variance is that of a weighted sum
  // of coins.
  Tensor expected = net(x),
         variance = kLevel / (1 - kLevel) * K::dot(K::square(net.features(x)), K::square(net.out.kernel));
  Tensor z = (clean.logits - expected) / K::sqrt(variance / kDraws), measured = clean.squares - K::square(clean.logits);
  const double z2 = K::mean(K::square(z)).item<double>(), ratio = K::mean(measured / variance).item<double>();
  std::printf(
      "mean of the logits: %.3f standard errors off, squared (1 expected); their variance: %.3f of the theory's\n", z2,
      ratio);

  const Tensor sure = clean.disagreement(), unsure = blended.disagreement();
  const double area = area_under_curve(unsure, sure);
  std::printf("disagreement: digits %.4f nats, two blended %.4f; one is above the other in %.1f %% of cases\n",
              K::mean(sure).item<double>(), K::mean(unsure).item<double>(), 100 * area);

  // The same seed draws the same masks.
  auto again = [&] { return K::set_random_seed(7), Readings(net, x[slice(0, 5)], 10).logits; };
  const bool same = K::all(K::equal(again(), again())).item<bool>();

  // And what a call costs when there is little to compute.
  const auto begin = std::chrono::steady_clock::now();
  const Readings one(net, x[slice(0, 1)], kDraws);
  const double each = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / kDraws;
  std::printf("one digit: %.1f microseconds a reading; repeated with the same seed %s\n", 1e6 * each,
              same ? "to the last bit" : "it differs");
  return accuracy > 0.96 && std::fabs(z2 - 1) < 0.2 && std::fabs(ratio - 1) < 0.03 && area > 0.75 && same ? 0 : 1;
}
