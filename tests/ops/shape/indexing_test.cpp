// tests/ops/shape/indexing_test.cpp - x[i] and x(i, j, ...): NumPy's basic indexing, and one tensor of integers.
#include <kassette/backend.h>

#include <vector>

#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

using Doubles = std::vector<double>;
Tensor counted(const Dims& shape, int n) { return K::reshape(K::arange(n, None, 1, "float32"), shape); }

}  // namespace

TEST_CASE("integers drop an axis", "[indexing]") {
  Tensor x = counted({2, 3, 4}, 24);
  CHECK(x[1].shape() == Shape{3, 4});
  CHECK(place<float>(x[1]) == x.data<float>() + 12);
  CHECK(values(x[-1](0)) == Doubles{12, 13, 14, 15});
  CHECK(x(1, 2, 3).item<float>() == 23);
  CHECK(x(1, -1, -4).item<float>() == 20);
  CHECK(values(x(0, all, 1)) == Doubles{1, 5, 9});
  CHECK_THROWS_WITH(x[2], "index: 2 is out of range for axis 0 of a tensor of shape (2, 3, 4)");
  CHECK_THROWS_WITH(x(0, -4), "index: -4 is out of range for axis 1 of a tensor of shape (2, 3, 4)");
  CHECK_THROWS_WITH(x(0, 0, 0, 0), "index: 4 indices for a tensor of shape (2, 3, 4)");
  CHECK_THROWS_WITH(K::constant(1)[0], "index: 1 index for a scalar");
  CHECK_THROWS_WITH(Tensor()[0],
                    "index: x is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
}

TEST_CASE("slices are clipped and step both ways", "[indexing]") {
  Tensor x = counted({6}, 6);
  CHECK(values(x[slice(1, 4)]) == Doubles{1, 2, 3});
  CHECK(values(x[slice(None, None, -1)]) == Doubles{5, 4, 3, 2, 1, 0});
  CHECK(values(x[slice(4, 0, -2)]) == Doubles{4, 2});
  CHECK(values(x[slice(-2, None)]) == Doubles{4, 5});
  CHECK(values(x[slice(None, 100)]) == values(x));
  CHECK(values(x[slice(10, None, -3)]) == Doubles{5, 2});
  CHECK(x[slice(4, 2)].shape() == Shape{0});
  CHECK(x[slice(1, INT64_MAX, INT64_MAX)].shape() == Shape{1});
  CHECK(x[slice(None, None, INT64_MIN)].item<float>() == 5);
  CHECK(values(counted({2, 3}, 6)(all, slice(None, None, 2))) == Doubles{0, 2, 3, 5});
  CHECK_THROWS_WITH(slice(0, 1, 0), "slice: step is 0; it must be another number");
  CHECK_THROWS_WITH(slice(0.5, 1), "slice: a bound is 0.5; it must be an integer or None");
}

TEST_CASE("ellipsis and new axes", "[indexing]") {
  Tensor x = counted({2, 3, 4}, 24);
  CHECK(x(ellipsis, 0).shape() == Shape{2, 3});
  CHECK(values(x(ellipsis, 0)) == Doubles{0, 4, 8, 12, 16, 20});
  CHECK(x(all, newaxis).shape() == Shape{2, 1, 3, 4});
  CHECK(x(None, ellipsis, None).shape() == Shape{1, 2, 3, 4, 1});
  CHECK(x(0, ellipsis, slice(0, 2), newaxis).shape() == Shape{3, 2, 1});
  CHECK(x[ellipsis].shape() == Shape{2, 3, 4});
  CHECK(K::constant(3)(newaxis).shape() == Shape{1});
  CHECK_THROWS_WITH(x(ellipsis, ellipsis), "index: more than one ellipsis");
  Tensor eight = K::reshape(x, {2, 3, 4, 1, 1, 1, 1, 1});
  CHECK_THROWS_WITH(eight[newaxis], "index: (2, 3, 4, 1, 1, 1, 1, 1): rank 9; a tensor has 0 to 8 axes");
}

TEST_CASE("an index may be text", "[indexing]") {
  Tensor x = counted({2, 3, 4}, 24);
  CHECK(x["..., 1:3"].shape() == Shape{2, 3, 2});
  CHECK(values(x["1, ::-1, 0"]) == Doubles{20, 16, 12});
  CHECK(x[":, newaxis, 0:1"].shape() == Shape{2, 1, 1, 4});
  CHECK(x["None, -1"].shape() == Shape{1, 3, 4});
  CHECK(x("0", "1:")(1, 2).item<float>() == 10);
  CHECK_THROWS_WITH(
      x["1;2"],
      "index: '1;2' is not understood at ';2'; it must be made of 1, 1:5, ::-1, ..., newaxis, with commas between");
  CHECK_THROWS_WITH(x["::0"], "index: '::0': the step is 0; it must be another number");
  CHECK_THROWS_AS(x[""], ValueError);
}

TEST_CASE("a scalar integer tensor is an index", "[indexing]") {
  Tensor x = counted({2, 3, 4}, 24), i = K::constant(1, "int32"), last = K::constant(-1, "int64");
  CHECK(values(x[i]) == values(x[1]));
  CHECK(values(x(all, last)) == values(x(all, 2)));
  CHECK(values(x(i, all, last)) == values(x(1, all, 3)));
  CHECK(values(x(ellipsis, last)) == values(x(ellipsis, 3)));
  CHECK(values(x(i, ellipsis, last)) == values(x(1, ellipsis, 3)));
  CHECK(values(x(ellipsis, i, last)) == values(x(ellipsis, 1, 3)));
  CHECK(values(x(slice(1, None), newaxis, i, slice(0, 2))) == values(x(slice(1, None), newaxis, 1, slice(0, 2))));
  CHECK_THROWS_WITH(x[K::constant(2, "int32")], "index: index 2 is out of range for an axis of size 2");
  CHECK_THROWS_WITH(x[K::constant(1.0)], "index: a tensor of float32; an index tensor must hold integers or bools");
}

// The shapes and values are what NumPy 2 gives for the same expressions.
TEST_CASE("an integer tensor with axes takes elements along one", "[indexing]") {
  Tensor x = counted({2, 3, 4}, 24), i = K::constant({{2, 0}, {-1, 2}}, "int32"), j = K::constant({1, -4}, "int64"),
         rows = K::constant({0, 2}, "int8"), turned = K::constant({1, 0}, "uint8");
  auto check = [](const Tensor& y, const Shape& shape, const Doubles& expected) {
    CHECK(y.shape() == shape);
    CHECK(values(y) == expected);
  };
  check(x(all, i), {2, 2, 2, 4}, {8,  9,  10, 11, 0,  1,  2,  3,  8,  9,  10, 11, 8,  9,  10, 11,
                                  20, 21, 22, 23, 12, 13, 14, 15, 20, 21, 22, 23, 20, 21, 22, 23});
  check(x(ellipsis, j), {2, 3, 2}, {1, 0, 5, 4, 9, 8, 13, 12, 17, 16, 21, 20});
  check(x(all, newaxis, rows, slice(1, 3)), {2, 1, 2, 2}, {1, 2, 9, 10, 13, 14, 21, 22});
  check(x[turned](all, 0, 0), {2}, {12, 0});
  CHECK(x[K::zeros({0}, "int32")].shape() == Shape{0, 3, 4});
  // beside an integer: in place
  check(x(1, K::constant({2, 0}, "int32")), {2, 4}, {20, 21, 22, 23, 12, 13, 14, 15});
  check(x(all, rows, 1), {2, 2}, {1, 9, 13, 21});
  // apart from an integer, or a scalar tensor: in front
  check(x(0, all, j), {2, 3}, {1, 5, 9, 0, 4, 8});
  check(x(1, ellipsis, j), {2, 3}, {13, 17, 21, 12, 16, 20});
  check(x(K::constant(1, "int32"), all, j), {2, 3}, {13, 17, 21, 12, 16, 20});
  check(x(turned, slice(1, 2), -1), {2, 1}, {19, 7});
  CHECK(x(all, 0, ellipsis, K::constant({1, -4, 0}, "int32")).shape() == Shape{3, 2});
  CHECK_THROWS_WITH(x[K::constant({0, -3}, "int32")], "index: index -3 is out of range for an axis of size 2");
}

TEST_CASE("indexing by a tensor on placeholders, and its gradients", "[indexing]") {
  Tensor x = counted({2, 3, 4}, 24), j = K::constant({1, -4, 1}, "int32");
  Tensor p = K::placeholder(None, 3), k = K::placeholder(None, 1, "int32");
  Tensor taken = p(1, all, k), loss = K::sum(K::square(taken)), g = K::gradients(loss, {p})[0],
         gg = K::gradients(K::sum(g * g), {p})[0];
  CHECK(K::ndim(taken) == 2);
  Tensors got = K::function({p, k}, {taken, g, gg})({x, j});
  CHECK(values(got[0]) == Doubles{13, 17, 21, 12, 16, 20, 13, 17, 21});
  // An element that is taken n times adds n x^2 to the loss: gradients 2 n x, then 8 n^2 x.
  Doubles first(24), second(24);
  for (int row = 0; row < 3; ++row)
    for (int column : {0, 1}) {
      const int at = 12 + 4 * row + column;
      const double n = column + 1;
      first[at] = 2 * n * at;
      second[at] = 8 * n * n * at;
    }
  CHECK(values(got[1]) == first);
  CHECK(values(got[2]) == second);
  Tensor any = K::placeholder(None, None, "int32");
  CHECK(K::ndim(p[any]) == None);
  CHECK(values(K::function({p, any}, {p[any]})({x, K::constant(-1, "int32")})[0]) == values(x[1]));
  CHECK(values(K::function({p, any}, {p(ellipsis, any)})({x, j})[0]) == values(x(ellipsis, j)));
  CHECK_THROWS_WITH(p(0, all, any),
                    "index: an integer and a tensor with other indices between them; the ranks of both tensors must "
                    "be known");
}

TEST_CASE("indexing placeholders keeps what is known", "[indexing]") {
  Tensor p = K::placeholder({K::None, 3, 4});
  CHECK(K::int_shape(p[0]) == Shape{3, 4});
  CHECK(K::int_shape(p(all, slice(1, None))) == Shape{-1, 2, 4});
  CHECK(K::int_shape(p[slice(0, 2)]) == Shape{-1, 3, 4});
  CHECK(K::int_shape(p(ellipsis, newaxis)) == Shape{-1, 3, 4, 1});
  CHECK(K::int_shape(p[K::placeholder({}, None, "int32")]) == Shape{3, 4});
  CHECK_THROWS_WITH(p(0, 3), "index: 3 is out of range for axis 1 of a tensor of shape (None, 3, 4)");
  CHECK(K::ndim(K::placeholder()[0]) == None);
}
