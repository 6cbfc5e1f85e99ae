// examples/digits_batchnorm.cpp - handwritten digits as one would train them in Keras: batch normalisation, dropout,
// smoothed labels, gradients clipped by their norm, Adam. The learning phase switches the one network between training
// and testing.
#include <cmath>
#include <cstdio>

#include "digits.h"

namespace K = kassette::backend;
using kassette::slice;
using kassette::Tensor;
using kassette::Tensors;

Tensors weights, updates;  // what is learnt, and what changes at each step of training

Tensor learnt(const Tensor& w) { return weights.push_back(w), w; }

Tensor dense(const Tensor& x, int units) {
  int from = int(K::int_shape(x)[-1]);
  double most = std::sqrt(6.0 / (from + units));  // Glorot and Bengio 2010
  return K::dot(x, learnt(K::random_uniform_variable({from, units}, -most, most))) + learnt(K::zeros({units}));
}

// Normalises by the batch where the network learns, and by what batches were like on average where it is tested.
Tensor batch_norm(const Tensor& x, double momentum = 0.9) {
  auto n = K::int_shape(x)[-1];
  Tensor gamma = learnt(K::ones({n})), beta = learnt(K::zeros({n})), average = K::zeros({n}), spread = K::ones({n});
  auto batch = K::normalize_batch_in_training(x, gamma, beta, {0});
  updates.push_back(K::moving_average_update(average, batch.mean, momentum));
  updates.push_back(K::moving_average_update(spread, batch.variance, momentum));
  return K::in_train_phase(batch.normalized, [&] { return K::batch_normalization(x, average, spread, beta, gamma); });
}

Tensor dropout(const Tensor& x, double level) {
  return K::in_train_phase([&] { return K::dropout(x, level); }, x);
}

Tensor network(const Tensor& pixels) {
  Tensor h = pixels;
  for (int units : {256, 128}) h = dropout(K::relu(batch_norm(dense(h, units))), 0.3);
  return dense(h, 10);
}

// The right digit gets 0.91, each other 0.01: a network that is never quite sure generalises better.
Tensor smoothed(const Tensor& labels, double by = 0.1) { return K::one_hot(labels, 10) * (1 - by) + by / 10; }

// All gradients scaled so that together they are no longer than `most`.
Tensors clipped(const Tensors& gradients, double most = 1) {
  Tensor square = K::constant(0);
  for (const Tensor& g : gradients) square = square + K::sum(K::square(g));
  Tensors shorter;
  for (const Tensor& g : gradients) shorter.push_back(g * (most / K::maximum(K::sqrt(square), most)));
  return shorter;
}

// Kingma and Ba 2015.
void adam(const Tensor& loss, double rate = 0.003, double b1 = 0.9, double b2 = 0.999) {
  Tensors gradients = clipped(K::gradients(loss, weights));
  Tensor steps = K::variable(0), t = steps + 1, scale = rate * K::sqrt(1 - K::pow(b2, t)) / (1 - K::pow(b1, t));
  updates.push_back(K::update(steps, t));
  for (int i = 0; i < weights.size(); ++i) {
    const Tensor &w = weights[i], &g = gradients[i];
    Tensor m = K::zeros(w.shape()), v = K::zeros(w.shape()), m1 = b1 * m + (1 - b1) * g,
           v1 = b2 * v + (1 - b2) * K::square(g);
    for (const Tensor& u : {K::update(m, m1), K::update(v, v1), K::update(w, w - scale * m1 / (K::sqrt(v1) + 1e-7))})
      updates.push_back(u);
  }
}

int main() {
  std::mt19937 random(3);
  K::set_random_seed(1);
  Digits digits(random);
  kassette::Function train, test;
  K::symbolic([&] {
    Tensor x = K::placeholder({K::None, 64}), y = K::placeholder({K::None}, K::None, "int32"), scores = network(x);
    Tensor right = K::mean(K::equal(K::argmax(scores), K::cast(y, "int64")));
    Tensor loss = K::mean(K::categorical_crossentropy(smoothed(y), scores, /*from_logits=*/true));
    adam(loss);
    train = K::function({x, y, K::learning_phase()}, {loss}, updates);
    test = K::function({x, y, K::learning_phase()}, {right});
  })();

  double accuracy = 0;
  std::printf("epoch    loss  held-out accuracy\n");
  for (int epoch = 1; epoch <= 30; ++epoch) {
    Tensor rows = K::constant(shuffled_rows(Digits::train, random), "int32");
    double total = 0;
    int batches = 0;
    for (int at = 0; at + 32 <= Digits::train; at += 32, ++batches) {
      Tensor batch = rows[slice(at, at + 32)];
      total += train({K::gather(digits.x, batch), K::gather(digits.y, batch), 1})[0].item<double>();
    }
    accuracy = test({digits.x_test, digits.y_test, 0})[0].item<double>();
    if (epoch % 5 == 0) std::printf("%5d %7.4f  %6.2f %%\n", epoch, total / batches, 100 * accuracy);
  }
  return accuracy >= 0.98 ? 0 : 1;
}
