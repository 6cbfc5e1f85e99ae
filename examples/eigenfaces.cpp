// examples/eigenfaces.cpp - eigenfaces (Turk and Pentland 1991) of handwritten digits: the singular vectors of the
// centred pictures, digits drawn from few of them, and read in the space that they span.
#include <cstdio>
#include <random>

#include <kassette/numpy.h>

#include "digits.h"

namespace K = kassette::backend;
namespace np = kassette::numpy;
using kassette::all;
using kassette::Tensor;

/// Pictures of 8 by 8 side by side, darker where a pixel is larger.
void draw(const Tensor& pictures) {
  static const char kShades[] = " .:-=+*#%@";
  const Tensor low = np::min(pictures, 1), high = np::max(pictures, 1);
  const Tensor span = np::expand_dims(np::maximum(high - low, 1e-9), 1);
  const Tensor shade = np::astype(np::rint((pictures - np::expand_dims(low, 1)) / span * 9), "int32");
  for (int row = 0; row < 8; ++row) {
    for (int i = 0; i < pictures.shape()[0]; ++i, std::printf("  "))
      for (int column = 0; column < 8; ++column) std::putchar(kShades[shade(i, 8 * row + column).item<int>()]);
    std::putchar('\n');
  }
}

/// The class of each row of x: that of the mean that is nearest.
Tensor nearest(const Tensor& x, const Tensor& means) { return np::argmin(np::cdist(x, means), 1); }

int main() {
  std::mt19937 random(1);
  const Digits digits(random);
  const Tensor train = np::astype(digits.x[kassette::slice(0, Digits::train)], "float64"),
               held_out = np::astype(digits.x_test, "float64"), labels = digits.y[kassette::slice(0, Digits::train)];
  const Tensor mean = np::mean(train, 0);
  const auto [u, s, vh] = np::linalg::svd(train - mean, false);
  const Tensor variance = np::square(s) / (Digits::train - 1), share = np::cumsum(variance) / np::sum(variance);

  std::printf("the mean, and the first six eigendigits\n");
  draw(np::concatenate({np::expand_dims(mean, 0), vh(kassette::slice(0, 6), all)}));

  bool fine = true;
  double before = 1;
  std::printf("components  variance  pixels off by  right of the held out\n");
  for (const int n : {2, 4, 8, 16, 32}) {
    const Tensor faces = vh(kassette::slice(0, n), all);
    const Tensor code = np::matmul(train - mean, np::transpose(faces)),
                 code_out = np::matmul(held_out - mean, np::transpose(faces));
    const double off = np::sqrt(np::mean(np::square(np::matmul(code_out, faces) + mean - held_out))).item<double>();
    // The means of the ten classes in this space, by sums over the rows of each.
    const Tensor counts = np::astype(np::bincount(labels, {.minlength = 10}), "float64");
    const Tensor means = np::segment_sum(code, labels, 10) / np::expand_dims(counts, 1);
    const Tensor right = np::equal(np::astype(nearest(code_out, means), "int32"), digits.y_test);
    const double accuracy = np::mean(np::astype(right, "float64")).item<double>();
    std::printf("%10d %8.1f %% %14.3f %20.1f %%\n", n, 100 * share[n - 1].item<double>(), off, 100 * accuracy);
    fine = fine && off < before && (n < 16 || accuracy > 0.85);
    before = off;
  }

  std::printf("seven of the held out, and what 16 numbers keep of each\n");
  const Tensor some = held_out[kassette::slice(0, 7)], faces = vh(kassette::slice(0, 16), all);
  draw(some);
  draw(np::matmul(np::matmul(some - mean, np::transpose(faces)), faces) + mean);

  // The singular values are the roots of the covariance's eigenvalues.
  const Tensor eigenvalues = np::flip(np::linalg::eigvalsh(np::cov(np::transpose(train))));
  const double apart = np::max(np::abs(eigenvalues - variance)).item<double>();
  std::printf("from the eigenvalues of the covariance by at most %.1e\n", apart);
  return fine && apart < 1e-10 ? 0 : 1;
}
