// examples/digits_distributed.cpp - learns to read handwritten digits on many ranks, each with its rows of every batch:
//
//   ./kassette run --ranks 2 examples/digits_distributed.cpp
//
// The global batch is the same whatever the number of ranks, and so are the weights, but for the rounding of sums.
#include <kassette/distributed.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "digits.h"

namespace D = kassette::distributed;
namespace K = kassette::backend;
using kassette::slice;
using kassette::Tensor;
using kassette::Tensors;

constexpr int kBatch = 48, kEpochs = 15;

Tensors start(int seed) {
  return {K::random_uniform_variable({64, 128}, -0.18, 0.18, K::None, K::None, seed), K::zeros({128}),
          K::random_uniform_variable({128, 10}, -0.21, 0.21, K::None, K::None, seed + 1), K::zeros({10})};
}
Tensor logits(const Tensors& w, const Tensor& x) { return K::dot(K::tanh(K::dot(x, w[0]) + w[1]), w[2]) + w[3]; }

/// Trains w, on all rows of each batch or on this rank's, and returns the accuracy on the held-out digits.
double train(const Tensors& w, const Digits& digits, bool together) {
  std::mt19937 random(5);  // the same order of rows on all ranks
  Tensors velocity;
  for (const Tensor& x : w) velocity.push_back(K::zeros(x.shape()));
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const Tensor rows = K::constant(shuffled_rows(Digits::train, random), "int32");
    for (int at = 0; at < Digits::train; at += kBatch) {
      const Tensor batch = rows[slice(at, std::min(at + kBatch, int(Digits::train)))],
                   mine = together ? D::shard(batch) : batch;
      const Tensor x = K::gather(digits.x, mine), y = K::gather(digits.y, mine);
      // The mean over the global batch is the sum of what the ranks add to it.
      const Tensor loss = K::sum(K::sparse_categorical_crossentropy(y, logits(w, x), true)) / double(batch.size());
      Tensors g = K::gradients(loss, w);
      if (together) g = D::all_reduce(g);
      for (int i = 0; i < w.size(); ++i) {
        K::update(velocity[i], 0.9 * velocity[i] + g[i]);
        K::update_sub(w[i], 0.1 * velocity[i]);
      }
    }
  }
  return K::mean(K::equal(K::argmax(logits(w, digits.x_test)), K::cast(digits.y_test, "int64"))).item<double>();
}

int main() {
  const D::World world = D::init();
  std::mt19937 random(3);
  const Digits digits(random);

  const Tensors w = start(1 + 10 * world.rank());  // each rank its own ...
  D::broadcast(w, 0);                              // ... until all take rank 0's
  const double accuracy = train(w, digits, true);

  // All ranks hold the same bits, and nearly those of one rank that sees all rows.
  const Tensors alone = start(1);
  train(alone, digits, false);
  double spread = 0, away = 0;
  for (int i = 0; i < w.size(); ++i) {
    spread = std::max(spread, K::max(D::all_reduce(w[i], D::max) - D::all_reduce(w[i], D::min)).item<double>());
    away = std::max(away, K::max(K::abs(w[i] - alone[i])).item<double>());
  }
  if (world.rank() == 0)
    std::printf("%d rank%s: accuracy %.4f; weights differ by %g between ranks, and by %.1e from one rank's\n",
                world.size(), world.size() == 1 ? "" : "s", accuracy, spread, away);
  return accuracy >= 0.95 && spread == 0 && away < 1e-5 ? 0 : 1;
}
