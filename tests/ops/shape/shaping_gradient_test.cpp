// tests/ops/shape/shaping_gradient_test.cpp - gradients of the shape ops, of first and second order, eager and
// replayed.
#include <kassette/backend.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "ops/shape/like.h"
#include "ops/engine/operand.h"
#include "ops/shape/shaping.h"
#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::ops;
using namespace kassette::test;

namespace {

using Doubles = std::vector<double>;

struct Sample {
  const char* name;
  std::vector<long> shape, other;  // of x; and another one of the same rank that the function takes as well
  std::function<Tensor(const Tensor&)> f;
};

Pads pads(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  Pads p;
  p.rank = 2;
  p.before[0] = a;
  p.after[0] = b;
  p.before[1] = c;
  p.after[1] = d;
  return p;
}

/// Functions of one tensor with unknown dims; everything else is read off it.
const std::vector<Sample>& samples() {
  static const Tensor rows = K::constant({{2, 0}, {1, 1}}, "int32"), one = K::constant(1, "int32");
  static const std::vector<Sample> list = {
      {"reshape",
       {2, 3},
       {4, 3},
       [](const Tensor& x) {
         return K::reshape(x, {3, -1});
       }},
      {"reshape by tensors",
       {2, 3},
       {4, 3},
       [](const Tensor& x) {
         return K::reshape(x, {K::shape(x)[1], K::shape(x)[0], 1});
       }},
      {"reshape_like", {2, 3}, {4, 3}, [](const Tensor& x) { return reshape_like(x, transpose(x)); }},
      {"flatten", {2, 3}, {4, 2}, [](const Tensor& x) { return K::flatten(x); }},
      {"batch_flatten", {2, 3, 2}, {3, 1, 2}, [](const Tensor& x) { return K::batch_flatten(x); }},
      {"expand_dims", {2, 3}, {3, 1}, [](const Tensor& x) { return K::expand_dims(x, 1); }},
      {"squeeze", {2, 1, 3}, {4, 1, 2}, [](const Tensor& x) { return K::squeeze(x, 1); }},
      {"identity", {2, 3}, {1, 4}, [](const Tensor& x) { return K::identity(x); }},
      {"transpose", {2, 3}, {1, 4}, [](const Tensor& x) { return K::transpose(x); }},
      {"permute_dimensions",
       {2, 3, 4},
       {3, 1, 2},
       [](const Tensor& x) {
         return K::permute_dimensions(x, {2, 0, 1});
       }},
      {"concatenate",
       {2, 3},
       {4, 2},
       [](const Tensor& x) {
         return K::concatenate({x, x * x, K::reverse(x, 1)}, -1);
       }},
      {"concatenate rows",
       {2, 3},
       {4, 2},
       [](const Tensor& x) {
         return K::concatenate({x, x * x}, 0);
       }},
      {"split_like",
       {4, 3},
       {4, 2},
       [](const Tensor& x) {
         Tensor half = x[slice(0, 2)];
         Tensors parts = split_like(x, {half, half}, 0);
         return parts[0] * parts[1] + split_like(x, {half, half}, 0)[1];
       }},
      {"split_like columns",
       {2, 4},
       {3, 4},
       [](const Tensor& x) {
         Tensor half = x(all, slice(0, 2));
         return split_like(x, {half, half}, 1)[1];
       }},
      {"stack",
       {2, 3},
       {3, 1},
       [](const Tensor& x) {
         return K::stack({x, x * x, x}, 1);
       }},
      {"unstack",
       {3, 2},
       {3, 4},
       [](const Tensor& x) {
         Tensors t = unstack(x, 3, 0);
         return t[0] * t[2];
       }},
      {"unstack columns",
       {2, 3},
       {4, 3},
       [](const Tensor& x) {
         Tensors t = unstack(x, 3, -1);
         return t[0] * t[1];
       }},
      {"index", {4, 3}, {5, 2}, [](const Tensor& x) { return x(slice(None, None, -2), newaxis, slice(1, None)); }},
      {"index integer", {3, 2}, {2, 4}, [](const Tensor& x) { return x[1] * x(all, 0)[0]; }},
      {"index tensor", {3, 2}, {2, 4}, [](const Tensor& x) { return x[one]; }},
      {"slice",
       {3, 4},
       {5, 3},
       [](const Tensor& x) {
         return K::slice(x, {1, 0}, {2, -1});
       }},
      {"slice by tensors",
       {3, 4},
       {5, 3},
       [](const Tensor& x) {
         return K::slice(x, {0, 1}, {K::shape(x)[0], 2});
       }},
      {"pad", {2, 3}, {3, 1}, [](const Tensor& x) { return pad(x, pads(1, 2, 0, 1)); }},
      {"reverse",
       {2, 3},
       {3, 1},
       [](const Tensor& x) {
         return K::reverse(x, {0, -1});
       }},
      {"repeat_elements", {2, 3}, {3, 1}, [](const Tensor& x) { return K::repeat_elements(x, 3, 1); }},
      {"repeat_elements rows", {2, 3}, {3, 1}, [](const Tensor& x) { return K::repeat_elements(x, 3, 0); }},
      {"repeat", {2, 3}, {3, 1}, [](const Tensor& x) { return K::repeat_elements(K::expand_dims(x, 1), 2, 1); }},
      {"tile",
       {2, 3},
       {3, 1},
       [](const Tensor& x) {
         return K::tile(x, {2, 3});
       }},
      {"tile by a shorter list", {2, 3}, {3, 1}, [](const Tensor& x) { return K::tile(x, 2); }},
      {"broadcast_to",
       {2, 1},
       {2, 1},
       [](const Tensor& x) {
         return broadcast_to(x, {3, 2, 4});
       }},
      {"gather", {3, 2}, {4, 1}, [](const Tensor& x) { return K::gather(x, rows); }},
      {"gather columns", {2, 3}, {1, 4}, [](const Tensor& x) { return gather(x, rows, -1); }},
  };
  return list;
}

Doubles numbers(std::int64_t n, double seed) {
  Doubles v;
  for (std::int64_t i = 0; i < n; ++i) v.push_back(std::sin(seed + 1.7 * static_cast<double>(i)) + 0.1);
  return v;
}
std::int64_t product(const std::vector<long>& shape) {
  std::int64_t n = 1;
  for (long d : shape) n *= d;
  return n;
}
Tensor input(const std::vector<long>& shape) { return K::constant(numbers(product(shape), 0.3), "float64", shape); }

/// Different weights for every element, computed from y's shape, so that every gradient entry differs.
Tensor weighted(const Tensor& y, double seed) {
  Tensor w = K::reshape(K::sin(K::arange(K::size(y), None, 1, "float64") * 1.3 + seed), K::shape(y));
  return K::sum(K::square(y) * w);
}
Tensor loss_of(const Sample& s, const Tensor& x) { return weighted(s.f(x), 0.5); }
Tensor first(const Sample& s, const Tensor& x) { return K::gradients(loss_of(s, x), {x})[0]; }
/// A function of the first gradient, differentiated again.
Tensor second_loss(const Sample& s, const Tensor& x) { return weighted(first(s, x), 0.9); }

/// The gradient of f at the input of that shape.
Doubles differences(const std::function<double(const Tensor&)>& f, const std::vector<long>& shape) {
  return test::differences(
      [&](const Doubles& x) { return f(K::variable(K::constant(x, "float64", shape), "float64")); },
      values(input(shape)));
}

}  // namespace

TEST_CASE("gradients of the shape ops are those of central differences", "[shaping][gradient]") {
  for (const Sample& s : samples()) {
    INFO(s.name);
    Tensor x = K::variable(input(s.shape), "float64");
    check_close(values(first(s, x)),
                differences([&](const Tensor& v) { return loss_of(s, v).item<double>(); }, s.shape), 1e-6);
  }
}

TEST_CASE("second gradients of the shape ops are those of central differences", "[shaping][gradient]") {
  for (const Sample& s : samples()) {
    INFO(s.name);
    Tensor x = K::variable(input(s.shape), "float64");
    Tensor second = K::gradients(second_loss(s, x), {x})[0];
    check_close(values(second), differences([&](const Tensor& v) { return second_loss(s, v).item<double>(); }, s.shape),
                1e-5);
  }
}

TEST_CASE("the shape ops play again with other sizes", "[shaping][gradient]") {
  for (const Sample& s : samples()) {
    INFO(s.name);
    Tensor p = K::placeholder(None, static_cast<int>(s.shape.size()), "float64");
    Tensor y = s.f(p), g = first(s, p), gg = K::gradients(second_loss(s, p), {p})[0];
    CHECK(K::int_shape(g).rank() == static_cast<int>(s.shape.size()));
    K::function({p}, {y});
    auto play = K::function({p}, {y, g, gg});
    for (const auto& shape : {s.shape, s.other}) {
      Tensor x = K::variable(input(shape), "float64");
      Tensors out = play({x});
      Tensor want = s.f(x);
      CHECK(out[0].shape() == want.shape());
      CHECK(values(out[0]) == values(want));
      CHECK(values(out[1]) == values(first(s, x)));
      check_close(values(out[2]), values(K::gradients(second_loss(s, x), {x})[0]), 1e-12);
    }
  }
}

TEST_CASE("the shape ops take a placeholder of unknown rank", "[shaping][gradient]") {
  for (const Sample& s : samples()) {
    INFO(s.name);
    std::string name = s.name;
    if (name == "repeat") continue;  // it must know that the rank is 2
    Tensor p = K::placeholder(None, None, "float64");
    Tensor x = K::variable(input(s.shape), "float64");
    Tensors out = K::function({p}, {s.f(p), first(s, p)})({x});
    CHECK(values(out[0]) == values(s.f(x)));
    CHECK(values(out[1]) == values(first(s, x)));
  }
}

TEST_CASE("gather's gradient adds up where an index comes twice", "[shaping][gradient]") {
  Tensor x = K::variable({{1, 2}, {3, 4}, {5, 6}});
  Tensor g = K::gradients(K::sum(K::gather(x, {1, 1, 0})), {x})[0];
  CHECK(values(g) == Doubles{1, 1, 2, 2, 0, 0});
}
