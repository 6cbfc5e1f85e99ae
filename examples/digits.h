// examples/digits.h - 1,797 handwritten digits of 8 by 8 pixels, shuffled: 1,437 to learn from, 360 held out.
#pragma once
#include <kassette/backend.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#if !defined(KASSETTE_EXAMPLES) && defined(KASSETTE_SCRIPT_FOLDER)  // by `kassette run`, from anywhere
#define KASSETTE_EXAMPLES KASSETTE_SCRIPT_FOLDER
#elif !defined(KASSETTE_EXAMPLES)
#define KASSETTE_EXAMPLES "examples"
#endif

struct Digits {
  static constexpr int train = 1437;
  kassette::Tensor x, y, x_test, y_test;  // pixels (n, 64) from 0 to 1; labels (n,) int32

  explicit Digits(std::mt19937& random) {
    namespace K = kassette::backend;
    std::ifstream file(KASSETTE_EXAMPLES "/data/digits.csv");
    if (!file) throw std::runtime_error("digits: cannot read " KASSETTE_EXAMPLES "/data/digits.csv");
    std::vector<float> pixels;
    std::vector<int> labels;
    for (int value, column = 0; file >> value; file.ignore(), ++column)
      if (column % 65 < 64) pixels.push_back(float(value) / 16);
      else labels.push_back(value);
    std::vector<int> order(labels.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    kassette::Tensor shuffled = K::constant(order, "int32");
    x = K::gather(K::constant(pixels, "float32", {int(labels.size()), 64}), shuffled);
    y = K::gather(K::constant(labels, "int32"), shuffled);
    x_test = x[kassette::slice(train)], y_test = y[kassette::slice(train)];
  }
};

/// The row numbers 0 to n - 1 in a new order each epoch.
inline std::vector<int> shuffled_rows(int n, std::mt19937& random) {
  std::vector<int> rows(std::size_t(n), 0);
  std::iota(rows.begin(), rows.end(), 0);
  std::shuffle(rows.begin(), rows.end(), random);
  return rows;
}
