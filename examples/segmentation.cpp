// examples/segmentation.cpp - finding rare pixels: binary cross-entropy, Dice (Milletari, Navab and Ahmadi 2016),
// Tversky (Salehi, Erdogmus and Gholipour 2017) and focal loss (Lin et al. 2017) on discs that cover about three per
// cent of noisy images.
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <vector>

#include "dense.h"

namespace K = kassette::backend;
using kassette::all;
using kassette::slice;
using kassette::Tensor;
using kassette::Tensors;

// Losses of y and p, (pictures, height, width) each: what is there, and the probability that it is.

Tensor cross_entropy(const Tensor& y, const Tensor& p) { return K::mean(K::binary_crossentropy(y, p)); }

// One minus the overlap. alpha and beta say how bad a false alarm is, and a miss; 1/2 and 1/2 are Dice.
Tensor tversky_loss(const Tensor& y, const Tensor& p, double alpha = 0.3, double beta = 0.7, double smooth = 1) {
  Tensor there = K::batch_flatten(y), said = K::batch_flatten(p);
  Tensor hits = K::sum(there * said, -1), alarms = K::sum((1 - there) * said, -1),
         misses = K::sum(there * (1 - said), -1);
  return 1 - K::mean((hits + smooth) / (hits + alpha * alarms + beta * misses + smooth));
}

Tensor dice_loss(const Tensor& y, const Tensor& p, double smooth = 1) {
  Tensor there = K::batch_flatten(y), said = K::batch_flatten(p);
  return 1 - K::mean((2.0 * K::sum(there * said, -1) + smooth) / (K::sum(there, -1) + K::sum(said, -1) + smooth));
}

// What is already right counts little.
Tensor focal_loss(const Tensor& y, const Tensor& p, double gamma = 2, double alpha = 0.75) {
  Tensor q = K::clip(p, K::epsilon(), 1 - K::epsilon());
  Tensor of_truth = K::switch_(K::equal(y, 1), q, 1 - q), weight = alpha * y + (1 - alpha) * (1 - y);
  return -K::mean(weight * K::pow(1 - of_truth, gamma) * K::log(of_truth));
}

// n pictures of 24 x 24, each a disc in noise, as (n, 18, 18, 49): around each pixel of the middle, its neighbourhood.
struct Pictures {
  Tensor x, y;
  Pictures(int n, std::mt19937& random) {
    std::uniform_real_distribution<double> radius(1.2, 2.8), place(6, 18);
    std::normal_distribution<double> noise(0, 0.35);
    std::vector<double> seen, there;
    for (int i = 0; i < n; ++i) {
      const double r = radius(random), cy = place(random), cx = place(random);
      for (int at = 0; at < 24 * 24; ++at) {
        there.push_back(std::hypot(at / 24 - cy, at % 24 - cx) <= r);
        seen.push_back(there.back() + noise(random));
      }
    }
    Tensor whole = K::constant(seen, "float32", {n, 24, 24});
    Tensors shifted;
    for (int i = 0; i < 49; ++i) shifted.push_back(whole(all, slice(i / 7, i / 7 + 18), slice(i % 7, i % 7 + 18)));
    x = K::stack(shifted, -1);
    y = K::constant(there, "float32", {n, 24, 24})(all, slice(3, 21), slice(3, 21));
  }
};

struct Network {
  Dense hidden{49, 24}, out{24, 1};
  Tensors weights = weights_of({hidden, out});
  Tensor operator()(const Tensor& x) const { return K::squeeze(K::sigmoid(out(K::relu(hidden(x)))), -1); }
};

// Of the pixels that are there or said to be there, how many are both.
double overlap(const Tensor& y, const Tensor& said) {
  return K::sum(y * said).item<double>() / K::sum(K::maximum(y, said)).item<double>();
}

using Loss = std::function<Tensor(const Tensor&, const Tensor&)>;

// The largest difference between a loss' gradient in float64 and central differences, relative to the largest gradient.
double off_differences(const Loss& loss) {
  Tensor y = K::constant({{0, 1, 1, 0, 0, 1}}, "float64"),
         p = K::constant({{0.1, 0.8, 0.3, 0.6, 0.01, 0.99}}, "float64");
  auto at = K::variable(p, "float64");
  Tensor g = K::gradients(loss(y, at), {at})[0];
  double off = 0;
  for (int i = 0; i < 6; ++i) {
    Tensor here = K::cast(K::one_hot(K::constant({i}, "int32"), 6), "float64");
    Tensor h = 1e-5 * here;
    const double difference = (loss(y, p + h) - loss(y, p - h)).item<double>() / 2e-5;
    off = std::fmax(off, std::fabs(g(0, i).item<double>() - difference));
  }
  return off / K::max(K::abs(g)).item<double>();
}

// Whether loss and gradient are numbers where the network is certain, right or wrong.
bool stable(const Loss& loss) {
  Tensor logits = K::variable({{-200, 200, -200, 200, 0}}), y = K::constant({{0, 0, 1, 1, 1}});
  Tensor value = loss(y, K::sigmoid(logits)), g = K::gradients(value, {logits})[0],
         all_of = K::concatenate({K::flatten(value), K::flatten(g)});
  return K::all(K::abs(all_of) < INFINITY).item<bool>();
}

int main() {
  std::mt19937 random(5);
  const Pictures train(160, random), test(80, random);
  std::printf("%.1f %% of the pixels are there\n\n%-14s %8s %8s  %s\n", 100 * K::mean(train.y).item<double>(), "loss",
              "held out", "overlap", "gradient off");
  struct Row {
    const char* name;
    Loss loss;
  };
  const Row rows[] = {{"cross-entropy", cross_entropy},
                      {"Dice", [](auto& y, auto& p) { return dice_loss(y, p); }},
                      {"Tversky", [](auto& y, auto& p) { return tversky_loss(y, p); }},
                      {"focal", [](auto& y, auto& p) { return focal_loss(y, p); }}};
  bool good = true;
  for (const Row& row : rows) {
    K::set_random_seed(1);
    const Network net;
    kassette::Function step = K::symbolic([&] {
      Tensor x = K::placeholder({K::None, 18, 18, 49}), y = K::placeholder({K::None, 18, 18}),
             loss = row.loss(y, net(x));
      return K::function({x, y}, {loss}, adam(loss, net.weights, 0.01));
    })();
    for (int i = 0; i < 200; ++i) {
      const int at = 8 * i % 160;
      const auto batch = slice(at, at + 8);
      step({train.x[batch], train.y[batch]});
    }
    Tensor p = net(test.x), said = K::cast(p > 0.5, "float32");
    const double found = overlap(test.y, said), off = off_differences(row.loss);
    std::printf("%-14s %8.4f %8.3f  %.1e\n", row.name, row.loss(test.y, p).item<double>(), found, off);
    good = good && found > 0.75 && off < 1e-6 && stable(row.loss);
  }

  // Two that have to agree: Tversky of 1/2 and 1/2 with Dice of twice the smoothing, focal without focus with
  // cross-entropy.
  Tensor y = test.y[slice(0, 8)], p = K::random_uniform(y.shape(), 0.05, 0.95);
  const double dice = (dice_loss(y, p, 2) - tversky_loss(y, p, 0.5, 0.5, 1)).item<double>();
  const double focal = (cross_entropy(y, p) - 2.0 * focal_loss(y, p, 0, 0.5)).item<double>();
  std::printf("\nDice is Tversky's balance, off by %.1e; focal without focus is cross-entropy, off by %.1e\n",
              std::fabs(dice), std::fabs(focal));
  return good && std::fabs(dice) < 1e-6 && std::fabs(focal) < 1e-6 ? 0 : 1;
}
