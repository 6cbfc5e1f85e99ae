// tests/autograd/tape/in_place_test.cpp - sums of cotangents that an eager pass makes in place are those of the
// recorded ops.
#include <kassette/backend.h>
#include <kassette/runtime.h>

#include <cmath>
#include <functional>
#include <vector>

#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

/// Gradients computed by an eager pass, and by a function, which records the adjoints.
void check_same(const std::function<Tensor()>& loss, const Tensors& xs) {
  Tensors eager = K::gradients(loss(), xs);
  Tensors recorded = K::symbolic([&] { return K::function({}, K::gradients(loss(), xs)); })()({});
  for (std::int64_t i = 0; i < xs.size(); ++i) {
    std::vector<double> a = values(eager[i]), b = values(recorded[i]);
    CHECK(a == b);
    for (std::size_t k = 0; k < a.size(); ++k) CHECK(std::signbit(a[k]) == std::signbit(b[k]));
  }
}

}  // namespace

TEST_CASE("cotangents of slices are put where they belong, whichever slices these are", "[gradients]") {
  for (DType dtype : {float32, float64, float16, bfloat16}) {
    Tensor x = K::variable(K::cast(f64(numbers(2 * 7 * 3, 5), {2, 7, 3}), dtype), dtype);
    auto over = [](const Tensor& y, double c) { return K::sum(K::square(y) * c); };
    auto columns = [&](int begin, int end) { return x(all, slice(begin, end)); };
    INFO(dtype);
    check_same([&] { return over(columns(0, 2), 1) + over(columns(2, 3), 2) + over(columns(3, 7), 3); },
               {x});                                                                   // they tile it
    check_same([&] { return over(columns(5, 7), 1) + over(columns(1, 2), 2); }, {x});  // gaps
    check_same([&] { return over(columns(2, 5), 1); }, {x});                           // one
    check_same([&] { return over(columns(0, 4), 1) + over(columns(3, 7), 2) + over(columns(0, 1), 3); },
               {x});                                                                                // they overlap
    check_same([&] { return over(columns(0, 4), 1) + over(x, 2) + over(columns(4, 7), 3); }, {x});  // beside the whole
    check_same([&] { return over(x[0], 1) + over(x[1], 2); }, {x});
    check_same([&] { return over(x(all, 3), 1) + over(x(all, -1), 2) + over(x(all, 0), -1); }, {x});
    check_same([&] { return over(x(all, all, 1), 1) + over(x(all, 2), 2) + over(x[1], 3); }, {x});  // of several axes
    // Slices with steps.
    check_same([&] { return over(x(all, slice(None, None, 2)), 1) + over(x(all, slice(1, None, 2)), 2); }, {x});
    // An empty slice.
    check_same([&] { return over(columns(3, 3), 1) + over(columns(0, 3), 2) + over(columns(3, 7), 2); }, {x});
    check_same(
        [&] {
          Tensor y = K::tanh(x);
          return over(y(all, slice(0, 3)), 1) + over(y(all, slice(3, 7)), 2);
        },
        {x});
  }
}

TEST_CASE("a weight of many products gets their shares in one sum", "[gradients]") {
  for (DType dtype : {float32, float64, float16}) {
    INFO(dtype);
    Tensor w = K::variable(K::cast(f64(numbers(9 * 40, 1), {9, 40}), dtype), dtype),
           x = K::variable(K::cast(f64(numbers(6 * 9, 2), {6, 9}), dtype), dtype);
    check_same(
        [&] {
          Tensor h = x, loss = K::sum(K::square(w));
          for (int i = 0; i < 4; ++i) {
            h = K::tanh(K::dot(h, w)(all, slice(0, 9)) + K::dot(h, w(all, slice(0, 9))));
            loss = loss + K::sum(h) + K::sum(K::dot(K::transpose(w), K::transpose(h)));
          }
          return loss;
        },
        {w, x});
  }
}

TEST_CASE("what is added to in place is nobody else's", "[gradients]") {
  Tensor a = var64({1, 2, 3}, {3}), b = var64({4, 5, 6}, {3});
  // a + b gives one cotangent to both, and a gets more.
  Tensors g = K::gradients(K::sum(K::square(a + b)) + 3.0 * K::sum(a), {a, b});
  CHECK(values(g[0]) == std::vector<double>{13, 17, 21});
  CHECK(values(g[1]) == std::vector<double>{10, 14, 18});
  // An intermediate tensor's gradient is asked for, and is read on the way.
  Tensor c = a * 2.0;
  Tensors h = K::gradients(K::sum(c * b) + K::sum(c), {c, a, b});
  CHECK(values(h[0]) == std::vector<double>{5, 6, 7});
  CHECK(values(h[1]) == std::vector<double>{10, 12, 14});
  CHECK(values(h[2]) == std::vector<double>{2, 4, 6});
}

TEST_CASE("gradients of gradients go through sums that were made in place", "[gradients]") {
  Tensor x = var64(numbers(2 * 6, 3), {2, 6}), w = var64(numbers(3 * 3, 4), {3, 3});
  auto loss = [&](const Tensor& x0) {
    return K::sum(K::pow(K::dot(x0(all, slice(0, 3)), w) * x0(all, slice(3, 6)), 2) + K::dot(x0(all, slice(0, 3)), w));
  };
  Tensor squares = K::sum(K::square(K::gradients(loss(x), {x})[0]));
  std::vector<double> second = values(K::gradients(squares, {x})[0]);
  auto first = [&](const std::vector<double>& v) {
    Tensor y = var64(v, {2, 6});
    double sum = 0;
    for (double d : values(K::gradients(loss(y), {y})[0])) sum += d * d;
    return sum;
  };
  check_close(second, differences(first, values(x)), 1e-6);
}

TEST_CASE("ten thousand slices of one tensor have one gradient between them", "[gradients]") {
  constexpr int n = 10000;
  Tensor x = var64(numbers(n, 3), {n}), loss = K::constant(0.0, "float64");
  for (int i = 0; i < n; ++i) loss = loss + x[i] * static_cast<double>(i);
  std::vector<double> g = values(K::gradients(loss, {x})[0]);
  for (int i = 0; i < n; i += 1111) CHECK(g[static_cast<std::size_t>(i)] == i);
}
