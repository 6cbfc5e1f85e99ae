// examples/kmeans_distributed.cpp - k-means (Lloyd 1982) over rows that are spread over the ranks:
//
//   ./kassette run --ranks 4 examples/kmeans_distributed.cpp
//
// Each rank assigns its own rows to the nearest of ten centers; the sums and counts of all ranks give the next centers.
#include <kassette/distributed.h>

#include <cmath>
#include <cstdio>

#include "digits.h"

namespace D = kassette::distributed;
namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;

constexpr int kCenters = 10, kSteps = 25;

struct Clusters {
  Tensor centers;  // (10, 64)
  double inertia;  // the sum of squared distances to the nearest center
};

/// Over the rows of all ranks, of which this one has x.
Clusters cluster(const Tensor& x, Tensor centers, bool together) {
  double inertia = 0;
  for (int step = 0; step < kSteps; ++step) {
    // |x - c|^2 = |x|^2 - 2 x.c + |c|^2
    const Tensor distances =
        K::sum(K::square(x), 1, true) - 2.0 * K::dot(x, K::transpose(centers)) + K::sum(K::square(centers), 1);
    const Tensor mine = K::one_hot(K::argmin(distances, 1), kCenters);
    Tensors all{K::dot(K::transpose(mine), x), K::sum(mine, 0), K::sum(K::min(distances, 1))};
    if (together) all = D::all_reduce(all);
    centers = all[0] / K::maximum(K::reshape(all[1], {kCenters, 1}), 1.0);
    inertia = all[2].item<double>();
  }
  return {centers, inertia};
}

int main() {
  const D::World world = D::init();
  std::mt19937 random(3);
  const Digits digits(random);
  const Tensor start = D::broadcast(digits.x[kassette::slice(0, kCenters)], 0);

  const Clusters found = cluster(D::shard(digits.x), start, true), alone = cluster(digits.x, start, false);
  const double away = K::max(K::abs(found.centers - alone.centers)).item<double>();
  if (world.rank() == 0)
    std::printf("%d rank%s: inertia %.2f, of one rank %.2f; centers differ by %.1e\n", world.size(),
                world.size() == 1 ? "" : "s", found.inertia, alone.inertia, away);
  return away < 1e-4 && std::abs(found.inertia / alone.inertia - 1) < 1e-5 ? 0 : 1;
}
