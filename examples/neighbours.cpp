// examples/neighbours.cpp - two methods without training: the k nearest neighbours tell which digit a picture shows,
// and k-means finds groups of pictures without being told any.
#include <cstdio>
#include <random>

#include <kassette/numpy.h>

#include "digits.h"

namespace K = kassette::backend;
namespace np = kassette::numpy;
using kassette::all;
using kassette::Tensor;

/// The squared distances of the rows of two matrices.
Tensor squared_distances(const Tensor& x, const Tensor& y) {
  return np::sum(np::square(x), {.axis = 1, .keepdims = true}) - 2 * np::matmul(x, np::transpose(y)) +
         np::sum(np::square(y), 1);
}

/// What most of the k nearest rows are labelled; of two labels that are as frequent, the lower one.
Tensor nearest_label(const Tensor& x, const Tensor& known, const Tensor& labels, int k) {
  const Tensor nearest = np::top_k(-squared_distances(x, known), k).indices;   // (n, k)
  const Tensor votes = np::sum(K::one_hot(np::take(labels, nearest), 10), 1);  // (n, 10)
  return np::argmax(votes, 1);
}

struct Clusters {
  Tensor centers, of;  // (k, 64), and the number of each row's
  double spread;       // the mean squared distance to the center
};
Clusters k_means(const Tensor& x, int k, int steps) {
  // k-means++: centers far from those that there are.
  Tensor centers = x(np::arange(1));
  while (centers.shape()[0] < k) {
    const Tensor nearest = np::min(squared_distances(x, centers), 1);
    const Tensor reach = np::cumsum(np::maximum(nearest, 0));
    const Tensor draw = K::random_uniform({1}) * reach[-1];
    centers = np::concatenate({centers, x(np::minimum(np::searchsorted(reach, draw), x.shape()[0] - 1))});
  }
  Clusters found;
  for (int step = 0; step < steps; ++step) {
    const Tensor distances = squared_distances(x, centers);
    found.of = np::argmin(distances, 1);
    found.spread = np::mean(np::min(distances, 1)).item<double>();
    const Tensor counts = np::segment_sum(np::ones(x.shape()[0]), found.of, k);
    const Tensor sums = np::segment_sum(x, found.of, k);
    // A center that lost all of its rows stays where it is.
    const Tensor size = np::expand_dims(counts, 1);
    centers = np::where(size > 0, sums / np::maximum(size, 1), centers);
  }
  found.centers = centers;
  return found;
}

int main() {
  std::mt19937 random(5);
  const Digits digits(random);
  const Tensor x = digits.x[kassette::slice(0, Digits::train)], y = digits.y[kassette::slice(0, Digits::train)];
  double best = 0;
  for (int k : {1, 3, 5, 11}) {
    const Tensor right = np::equal(nearest_label(digits.x_test, x, y, k), np::astype(digits.y_test, "int64"));
    const double share = np::mean(right).item<double>();
    std::printf("%2d nearest neighbours: %.1f %% of the digits read\n", k, 100 * share);
    best = std::max(best, share);
  }

  K::set_random_seed(1);
  const Clusters found = k_means(x, 10, 25);
  // How many of a cluster are of its most frequent digit.
  double pure = 0;
  for (int cluster = 0; cluster < 10; ++cluster) {
    const Tensor inside = np::sum(np::where(np::expand_dims(np::equal(found.of, cluster), 1), K::one_hot(y, 10), 0), 0);
    pure += np::max(inside).item<double>();
  }
  std::printf("k-means: mean squared distance %.3f, %.1f %% of the digits in a cluster of their own\n", found.spread,
              100 * pure / Digits::train);
  return best > 0.97 && pure / Digits::train > 0.6 ? 0 : 1;
}
