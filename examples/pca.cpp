// examples/pca.cpp - principal components of handwritten digits, by power iteration: the directions in which the
// pictures differ most.
#include <cmath>
#include <cstdio>
#include <random>

#include <kassette/numpy.h>

#include "digits.h"

namespace K = kassette::backend;
namespace np = kassette::numpy;
using kassette::Tensor;
using kassette::Tensors;

Tensor normalized(const Tensor& v) { return v / K::sqrt(np::vdot(v, v)); }

int main() {
  std::mt19937 random(1);
  const Digits digits(random);
  const Tensor x = np::astype(digits.x, "float64");
  const Tensor centered = x - np::mean(x, 0);
  Tensor covariance = np::matmul(np::matrix_transpose(centered), centered) / (double(x.shape()[0]) - 1);
  const Tensor total = np::trace(covariance);

  K::set_random_seed(3);
  Tensors components;
  double explained = 0;
  for (int i = 0; i < 8; ++i) {
    Tensor v = normalized(K::random_normal({64}, 0, 1, "float64"));
    int steps = 0;
    for (double moved = 1; moved > 1e-9 && steps < 10000; ++steps) {
      Tensor next = normalized(np::matmul(covariance, v));
      moved = np::max(np::abs(next - v)).item<double>();
      v = next;
    }
    const Tensor variance = np::vdot(v, np::matmul(covariance, v));
    const double share = (variance / total).item<double>();
    explained += share;
    std::printf("component %d: %5.2f %% of the variance, %5.2f %% so far, %d steps\n", i + 1, 100 * share,
                100 * explained, steps);
    components.push_back(v);
    covariance = covariance - variance * np::outer(v, v);  // without this direction, the next one is the largest
  }
  // The directions are at right angles to each other.
  const Tensor w = np::stack(components);
  const double off =
      np::max(np::abs(np::matmul(w, np::transpose(w)) - np::eye(8, kassette::None, 0, "float64"))).item<double>();
  // A picture from eight numbers.
  const Tensor back = np::matmul(np::matmul(centered, np::transpose(w)), w);
  const double left = (np::sum(np::square(centered - back)) / np::sum(np::square(centered))).item<double>();
  std::printf("not at right angles by %.1e; eight numbers leave out %.2f %% of the pictures\n", off, 100 * left);
  return off < 1e-6 && std::fabs(left - (1 - explained)) < 1e-6 ? 0 : 1;
}
