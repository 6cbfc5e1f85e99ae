// tests/autograd/tape/backward_pass_test.cpp - gradients that are differentiated again after they were sliced or
// multiplied, and the order in which shares of a gradient are added.
#include <kassette/backend.h>

#include <vector>

#include "tests/catch.h"
#include "tests/results.h"
#include "tests/sweeps/sample.h"

namespace K = kassette::backend;
using kassette::all;
using kassette::slice;
using kassette::Tensor;
using namespace kassette::test;
using Vec = std::vector<double>;

TEST_CASE("a gradient that is sliced is differentiated like any other", "[gradients]") {
  Tensor w = K::variable({{1, 2, 3, 4}, {5, 6, 7, 8}}, "float64");
  Tensor g = K::gradients(K::sum(w * w * w), {w})[0];  // 3 w^2
  Tensor left = g(all, slice(0, 2)), right = g(all, slice(2, 4));
  // (3 w^2)^2, of the left half: 36 w^3
  CHECK(values(K::gradients(K::sum(K::square(left)), {w})[0]) == Vec{36, 288, 0, 0, 4500, 7776, 0, 0});
  // 9 a^2 b^2: 18 a b^2 and 18 a^2 b
  CHECK(values(K::gradients(K::sum(left * right), {w})[0]) ==
        Vec{18 * 1 * 9, 18 * 2 * 16, 18 * 1 * 3, 18 * 4 * 4, 18 * 5 * 49, 18 * 6 * 64, 18 * 25 * 7, 18 * 36 * 8});
  // third order
  Tensor second = K::gradients(K::sum(left), {w})[0];  // 6 w in the left half
  CHECK(values(K::gradients(K::sum(second(0)), {w})[0]) == Vec{6, 6, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("a gradient that several products read is differentiated like any other", "[gradients][matmul]") {
  constexpr int kRows = 32, kUnits = 96;
  Tensor w = K::variable(K::random_uniform({kRows, kUnits}, 0.5, 1.5, "float64"), "float64");
  std::vector<Tensor> right;
  for (int i = 0; i < 7; ++i) right.push_back(K::eval(K::random_uniform({kUnits, kUnits}, -1, 1, "float64")));
  Tensor g = K::gradients(K::sum(w * w * w), {w})[0];
  Tensor loss = K::sum(K::dot(g, right[0]));
  for (int i = 1; i < 7; ++i) loss = loss + K::sum(K::dot(g, right[static_cast<std::size_t>(i)]));
  // 3 w^2 by the sums of rows of the right factors: 6 w times these
  Vec sums(kUnits), at = values(w), got = values(K::gradients(loss, {w})[0]), expected;
  for (const Tensor& r : right) {
    Vec v = values(r);
    for (int i = 0; i < kUnits; ++i)
      for (int j = 0; j < kUnits; ++j) sums[static_cast<std::size_t>(i)] += v[static_cast<std::size_t>(i * kUnits + j)];
  }
  for (std::size_t i = 0; i < at.size(); ++i) expected.push_back(6 * at[i] * sums[i % kUnits]);
  check_close(got, expected, 1e-10, 1e-10);
}

TEST_CASE("shares of a weight's gradient are added in the order of the pass, products and others alike",
          "[gradients][matmul]") {
  constexpr int kRows = 32, kUnits = 96;
  for (kassette::DType dtype : {kassette::float32, kassette::float64}) {
    Tensor w = K::variable(K::random_uniform({kUnits, kUnits}, -0.1, 0.1, dtype), dtype);
    Tensor x = K::eval(K::random_uniform({kRows, kUnits}, -1, 1, dtype)),
           y = K::eval(K::random_uniform({kRows * 2, kUnits}, -1, 1, dtype));
    // Products of two shapes, elementwise terms between them, and the weight itself: in no order.
    auto loss = [&] {
      Tensor h = x, l = K::sum(K::square(w)) * 0.5;
      for (int t = 0; t < 11; ++t) {
        h = K::tanh(K::dot(h, w));
        l = l + K::sum(K::square(h));
        if (t % 3 == 1) l = l + K::sum(w * w) * 0.25;
        if (t % 4 == 2) l = l + K::sum(K::dot(y, w)) + K::sum(w(slice(0, 3)));
        if (t % 5 == 3) l = l + K::sum(K::dot(h, K::transpose(w)));
      }
      return l;
    };
    // The same by a recorded pass, which adds nothing in place.
    Tensor p = K::placeholder({kRows, kUnits}, K::None, dtype);
    Tensor keep = x;
    Tensor eager = K::gradients(loss(), {w})[0];
    x = p;
    Tensor symbolic = K::gradients(loss(), {w})[0];
    x = keep;
    Tensor replayed = K::function({p}, {symbolic})({keep})[0];
    CHECK(same_bits(eager, replayed));
  }
}
