// examples/fgsm.cpp - how to fool a network, and how to harden it: saliency maps, the fast gradient sign method
// (Goodfellow, Shlens and Szegedy 2015) and its iterated form (Madry et al. 2018). Given a file name, it draws digits,
// their saliency maps, and adversarial versions of them.
#include <cmath>
#include <cstdio>
#include <kassette/io.h>
#include <kassette/runtime.h>
#include <string>

#include "dense.h"
#include "digits.h"

namespace K = kassette::backend;
using kassette::slice;
using kassette::Tensor;
using kassette::Tensors;

struct Network {
  Dense hidden{64, 128}, out{128, 10};
  Tensors weights = weights_of({hidden, out});
  Tensor operator()(const Tensor& x) const { return out(K::relu(hidden(x))); }
  Tensor loss(const Tensor& x, const Tensor& y) const {
    return K::sparse_categorical_crossentropy(y, (*this)(x), /*from_logits=*/true);
  }
};

// One step up the loss: each pixel moves by epsilon, in the direction that hurts.
Tensor fgsm(const Network& net, const Tensor& x, const Tensor& y, double epsilon) {
  Tensor g = K::gradients(net.loss(x, y), {x})[0];
  return K::stop_gradient(K::clip(x + epsilon * K::sign(g), 0, 1));
}

// Small steps, none of them further than epsilon from where it began.
Tensor iterated_fgsm(const Network& net, const Tensor& x, const Tensor& y, double epsilon, int steps = 10) {
  Tensor attacked = K::variable(x);
  for (int i = 0; i < steps; ++i) {
    Tensor further = fgsm(net, attacked, y, 2.5 * epsilon / steps);
    K::update(attacked, K::clip(further, x - epsilon, x + epsilon));
  }
  return K::eval(attacked);
}

double accuracy(const Network& net, const Tensor& x, const Tensor& y) {
  return 100 * K::mean(K::equal(K::argmax(net(x)), K::cast(y, "int64"))).item<double>();
}

// Trains on digits, or on digits and attacks on them that follow the network as it learns.
void train(const Network& net, const Digits& digits, double epsilon, std::mt19937& random) {
  kassette::Function step = K::symbolic([&] {
    Tensor x = K::placeholder({K::None, 64}), y = K::placeholder({K::None}, K::None, "int32"),
           loss = K::mean(net.loss(x, y));
    if (epsilon > 0) loss = 0.5 * loss + 0.5 * K::mean(net.loss(fgsm(net, x, y, epsilon), y));
    return K::function({x, y}, {loss}, adam(loss, net.weights, 0.005));
  })();
  for (int epoch = 0; epoch < 30; ++epoch) {
    Tensor rows = K::constant(shuffled_rows(Digits::train, random), "int32");
    for (int at = 0; at + 32 <= Digits::train; at += 32) {
      Tensor batch = rows[slice(at, at + 32)];
      step({K::gather(digits.x, batch), K::gather(digits.y, batch)});
    }
  }
}

int main(int argc, char** argv) {
  std::mt19937 random(3);
  K::set_random_seed(1);
  const Digits digits(random);
  const double epsilon = 0.1;
  const Network plain, hardened;
  train(plain, digits, 0, random);
  train(hardened, digits, epsilon, random);

  Tensor x = K::variable(digits.x_test), y = digits.y_test;
  Tensor noise = K::clip(x + epsilon * K::sign(K::random_normal(K::shape(x))), 0, 1);
  std::printf("accuracy on held-out digits, of 16 grey levels, where pixels change by up to %.1f levels\n\n",
              16 * epsilon);
  std::printf("                    plain    trained on attacks\n");
  double right[4][2];
  const char* names[] = {"as they are", "random signs", "FGSM", "iterated FGSM"};
  for (int k = 0; k < 2; ++k) {
    const Network& net = k ? hardened : plain;
    const Tensor shown[] = {x, noise, fgsm(net, x, y, epsilon), iterated_fgsm(net, x, y, epsilon)};
    for (int i = 0; i < 4; ++i) right[i][k] = accuracy(net, shown[i], y);
  }
  for (int i = 0; i < 4; ++i) std::printf("%-16s %6.2f %%    %6.2f %%\n", names[i], right[i][0], right[i][1]);

  // To first order, no other change of at most h per pixel costs more: h times the sum of all |dloss/dpixel|.
  const double h = 1e-4;
  Tensor loss = K::sum(plain.loss(x, y)), g = K::gradients(loss, {x})[0],
         moved = K::sum(plain.loss(x + h * K::sign(g), y));
  const double rise = (moved - loss).item<double>() / h, slope = K::sum(K::abs(g)).item<double>();
  std::printf("\nthe loss rises by %.3f per unit of the sign's direction; the gradient's 1-norm is %.3f\n", rise,
              slope);

  // An attack leaves nothing behind on the tape.
  const std::int64_t before = kassette::live_nodes();
  iterated_fgsm(plain, x, y, epsilon, 50);
  const std::int64_t left = kassette::live_nodes() - before;
  std::printf("nodes left on the tape after 50 more steps: %d\n", int(left));

  if (argc > 1) {  // rows: the digit, where the score of its class is sensitive, the attacked digit and its sensitivity
    Tensor score = K::sum(K::max(plain(x), 1)), attacked = K::variable(iterated_fgsm(plain, x, y, epsilon));
    auto map = [](const Tensor& sensitivity) {
      return K::abs(sensitivity) / K::max(K::abs(sensitivity), 1, /*keepdims=*/true);
    };
    Tensors rows = {x, map(K::gradients(score, {x})[0]), attacked};
    Tensor picture = K::reshape(K::stack(rows)(kassette::all, slice(0, 16)), {3, 16, 8, 8});
    picture = K::reshape(K::permute_dimensions(picture, {0, 2, 1, 3}), {24, 128});
    kassette::save_png(std::string(argv[1]), K::repeat_elements(K::repeat_elements(picture, 6, 0), 6, 1));
  }
  return right[0][0] > 96 && right[1][0] > 90 && right[2][0] < 60 && right[3][0] <= right[2][0] && right[3][1] > 80 &&
                 std::fabs(rise / slope - 1) < 0.02 && left == 0
             ? 0
             : 1;
}
