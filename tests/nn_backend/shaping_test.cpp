// tests/nn_backend/shaping_test.cpp - ops on shapes: values and errors.
#include <kassette/backend.h>

#include <numeric>
#include <vector>

#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

using Doubles = std::vector<double>;

/// 0, 1, 2, ... with that shape.
Tensor counted(const Dims& shape, int n, DType dtype = float32) {
  return K::reshape(K::arange(n, None, 1, dtype), shape);
}

}  // namespace

TEST_CASE("reshape keeps the row-major order", "[shaping]") {
  Tensor x = counted({4, 2}, 8);
  CHECK(K::reshape(x, {8, 1}).shape() == Shape{8, 1});
  CHECK(values(K::reshape(x, {2, 2, 2})) == values(x));
  CHECK(K::reshape(x, {-1, 4}).shape() == Shape{2, 4});
  CHECK(K::reshape(x, {2, K::None}).shape() == Shape{2, 4});
  CHECK(K::reshape(x, -1).shape() == Shape{8});
  CHECK(K::reshape(x, std::vector<int>{2, 4}).shape() == Shape{2, 4});
  CHECK(K::reshape(x, K::constant({2, 4}, "int32")).shape() == Shape{2, 4});
  CHECK(K::reshape(x, {K::shape(x)[1], -1}).shape() == Shape{2, 4});
  CHECK(K::reshape(3.0, {1, 1}).shape() == Shape{1, 1});
  CHECK(K::reshape(K::reshape(3.0, {1, 1}), {}).shape() == Shape{});
  CHECK(K::reshape(counted({0, 3}, 0), {3, 0}).shape() == Shape{3, 0});
  CHECK(K::reshape(counted({0, 3}, 0), {-1, 3}).shape() == Shape{0, 3});
  Tensor y = K::reshape(x, {8});
  CHECK(y.data<float>() == x.data<float>());
}

TEST_CASE("reshape says what does not fit", "[shaping]") {
  Tensor x = counted({2, 3}, 6);
  CHECK_THROWS_WITH(K::reshape(x, {4, 2}), "reshape: shape (4, 2) does not hold the 6 elements of x of shape (2, 3)");
  CHECK_THROWS_WITH(K::reshape(x, {-1, 4}), "reshape: shape (-1, 4) does not hold the 6 elements of x of shape (2, 3)");
  CHECK_THROWS_WITH(K::reshape(x, {-1, -1}), "reshape: shape (-1, -1); only one size can be inferred");
  CHECK_THROWS_WITH(K::reshape(x, {-2, 3}),
                    "reshape: shape (-2, 3); sizes must not be negative, except one -1 to be inferred");
  CHECK_THROWS_WITH(K::reshape(counted({0, 3}, 0), {-1, 0}),
                    "reshape: shape (-1, 0): x of shape (0, 3) has no elements, so any size fits in place of -1");
  CHECK_THROWS_WITH(K::reshape(x, {1L << 40, 1L << 40}),
                    "reshape: shape (1099511627776, 1099511627776) does not hold the 6 elements of x of shape (2, 3)");
  CHECK_THROWS_WITH(K::reshape(x, {1, 1, 1, 1, 1, 1, 1, 2, 3}),
                    "reshape: shape of 9 numbers; a tensor has 0 to 8 axes");
  CHECK_THROWS_WITH(K::reshape(x, K::constant({2.0, 3.0})),
                    "reshape: shape is a tensor of float32; it must be of integers");
  CHECK_THROWS_WITH(K::reshape(x, K::constant({{2, 3}}, "int32")),
                    "reshape: shape is a tensor of shape (1, 2); it must have one axis");
  CHECK_THROWS_WITH(K::reshape(x, None), "reshape: shape is None; its rank must be known here");
  CHECK_THROWS_WITH(K::reshape(Tensor(), {2}),
                    "reshape: x is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK_THROWS_WITH(K::reshape(x, {Tensor(), 2}),
                    "reshape: shape holds an empty Tensor (a gradient that is None, or an uninitialised variable?)");
}

TEST_CASE("a shape that mixes numbers and shape(x)[i] keeps its numbers", "[shaping]") {
  Tensor p = K::placeholder({K::None, 3});
  CHECK(K::int_shape(K::reshape(p, {K::shape(p)[0], 3, 1})) == Shape{-1, 3, 1});
  CHECK(K::int_shape(K::reshape(p, {K::shape(p)[0], K::shape(p)[1], 1})) == Shape{-1, 3, 1});
  CHECK(K::int_shape(K::reshape(p, {K::shape(p)[-1], -1})) == Shape{3, -1});
  CHECK(K::int_shape(K::reshape(p, K::shape(p))) == Shape{-1, 3});
  CHECK(K::int_shape(K::reshape(p, K::shape(p)[slice(None, None, -1)])) == Shape{3, -1});
  Tensor four = K::placeholder({2, 3, K::None, 5});
  CHECK(K::int_shape(K::reshape(four, K::shape(four)[slice(None, None, 2)])) == Shape{2, -1});
  CHECK(K::int_shape(K::reshape(four, K::shape(four)[slice(3, None, -2)])) == Shape{5, 3});
  // A shape of nine sizes is accepted as a placeholder, and refused when the function runs.
  Tensor nine = K::placeholder({9}, None, "int32");
  CHECK(K::int_shape(K::tile(p, nine)) == Shape{-1, -1});
  CHECK_THROWS_WITH(K::function({p, nine}, {K::reshape(p, nine)})({K::ones({1, 3}), {1, 1, 1, 1, 1, 1, 1, 1, 3}}),
                    "reshape: rank 9; a tensor has 0 to 8 axes");
  CHECK(K::int_shape(K::reshape(p, K::stack({K::shape(p)[0], K::shape(p)[1]}))) == Shape{-1, 3});
  CHECK(K::int_shape(K::reshape(p, K::concatenate({K::shape(p), K::constant({1}, "int32")}))) == Shape{-1, 3, 1});
  CHECK(K::int_shape(K::reshape(p, {-1, 6})) == Shape{-1, 6});
  Tensor q = K::placeholder({2, 6});
  CHECK(K::int_shape(K::reshape(q, {-1, 4})) == Shape{3, 4});
  CHECK_THROWS_WITH(K::reshape(q, {5}), "reshape: shape (5,) does not hold the 12 elements of x of shape (2, 6)");
  CHECK(K::ndim(K::reshape(p, K::placeholder({K::None}, None, "int32"))) == None);
}

TEST_CASE("flatten, batch_flatten, expand_dims and squeeze share memory", "[shaping]") {
  Tensor x = counted({4, 3, 2}, 24);
  CHECK(K::flatten(x).shape() == Shape{24});
  CHECK(K::batch_flatten(x).shape() == Shape{4, 6});
  CHECK(K::batch_flatten(counted({4}, 4)).shape() == Shape{4, 1});
  CHECK(K::batch_flatten(3.0).shape() == Shape{1, 1});
  CHECK(K::expand_dims(x).shape() == Shape{4, 3, 2, 1});
  CHECK(K::expand_dims(x, 1).shape() == Shape{4, 1, 3, 2});
  CHECK(K::expand_dims(x, -4).shape() == Shape{1, 4, 3, 2});
  CHECK(K::squeeze(K::expand_dims(x, 1), 1).shape() == Shape{4, 3, 2});
  CHECK(place<float>(K::squeeze(K::expand_dims(x), -1)) == x.data<float>());
  Tensor p = K::placeholder({3, K::None, 4});
  CHECK(K::int_shape(K::batch_flatten(p)) == Shape{3, -1});
  CHECK(K::int_shape(K::flatten(p)) == Shape{-1});
  CHECK(K::int_shape(K::squeeze(p, 1)) == Shape{3, 4});
  CHECK(K::int_shape(K::batch_flatten(K::placeholder())) == Shape{-1, -1});
  CHECK_THROWS_WITH(K::squeeze(x, 1), "squeeze: axis 1 of a tensor of shape (4, 3, 2) has size 3, not 1");
  CHECK_THROWS_WITH(K::squeeze(x, 3), "squeeze: axis 3 is out of range for (4, 3, 2) of rank 3");
  CHECK_THROWS_WITH(K::expand_dims(x, 4),
                    "expand_dims: axis 4 is out of range for (4, 3, 2) of rank 3; it lies between -4 and 3");
  Tensor eight = K::reshape(x, {4, 3, 2, 1, 1, 1, 1, 1});
  CHECK_THROWS_WITH(K::expand_dims(eight), "expand_dims: (4, 3, 2, 1, 1, 1, 1, 1): rank 9; a tensor has 0 to 8 axes");
}

TEST_CASE("permute_dimensions moves axes", "[shaping]") {
  Tensor x = counted({2, 3, 4}, 24, "int64");
  Tensor y = K::permute_dimensions(x, {2, 0, 1});
  CHECK(y.shape() == Shape{4, 2, 3});
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 2; ++b)
      for (int c = 0; c < 3; ++c) CHECK(y(a, b, c).item<int>() == b * 12 + c * 4 + a);
  CHECK(values(K::transpose({{1, 2, 3}, {4, 5, 6}})) == Doubles{1, 4, 2, 5, 3, 6});
  CHECK(K::transpose(x).shape() == Shape{4, 3, 2});
  CHECK(K::transpose(5.0).shape() == Shape{});
  CHECK(values(K::transpose({1, 2, 3})) == Doubles{1, 2, 3});
  CHECK(K::int_shape(K::transpose(K::placeholder({K::None, 3}))) == Shape{3, -1});
  CHECK(K::ndim(K::transpose(K::placeholder())) == None);
  CHECK(K::ndim(K::permute_dimensions(K::placeholder(), {1, 0})) == 2);
  CHECK_THROWS_WITH(K::permute_dimensions(x, {0, 1}),
                    "permute_dimensions: pattern lists 2 axes, x of shape (2, 3, 4) has 3");
  CHECK_THROWS_WITH(K::permute_dimensions(x, {0, 1, 1}),
                    "permute_dimensions: pattern (0, 1, 1) is not a permutation of the axes 0 to 2");
}

TEST_CASE("permute_dimensions is right for every size and pattern", "[shaping]") {
  for (DType dtype : {uint8, int16, float32, float64}) {
    for (auto shape : {std::vector<long>{33, 17}, {130, 70}, {1, 5}, {3, 1, 4}, {2, 9, 16}, {5, 20, 33}, {3, 40, 2}}) {
      std::int64_t n = 1;
      for (long d : shape) n *= d;
      Tensor x = K::reshape(K::constant(std::vector<double>(values(K::arange(n, None, 1, "int64"))), "float64"), shape);
      std::vector<double> small = values(x);
      for (double& v : small) v = static_cast<int>(v) % 120;
      x = K::constant(small, dtype, shape);
      std::vector<int> pattern(shape.size());
      std::iota(pattern.begin(), pattern.end(), 0);
      do {
        Doubles got = values(K::permute_dimensions(x, pattern)), want;
        // The element at each index of the output, by definition.
        std::vector<long> out, stride(shape.size(), 1);
        for (std::size_t i = shape.size() - 1; i-- > 0;) stride[i] = stride[i + 1] * shape[i + 1];
        for (int a : pattern) out.push_back(shape[static_cast<std::size_t>(a)]);
        for (std::int64_t k = 0; k < n; ++k) {
          std::int64_t rest = k, at = 0;
          for (std::size_t i = out.size(); i-- > 0;) {
            at += rest % out[i] * stride[static_cast<std::size_t>(pattern[i])];
            rest /= out[i];
          }
          want.push_back(small[static_cast<std::size_t>(at)]);
        }
        CHECK(got == want);
      } while (std::next_permutation(pattern.begin(), pattern.end()));
    }
  }
}

TEST_CASE("concatenate joins along an axis", "[shaping]") {
  Tensor a = K::constant({{1, 2}, {3, 4}}), b = K::constant({{5}, {6}});
  CHECK(values(K::concatenate({a, b})) == Doubles{1, 2, 5, 3, 4, 6});
  CHECK(values(K::concatenate({a, a}, 0)) == Doubles{1, 2, 3, 4, 1, 2, 3, 4});
  CHECK(K::concatenate({counted({5, 4, 6, 3}, 360), counted({5, 4, 6, 2}, 240)}, -1).shape() == Shape{5, 4, 6, 5});
  CHECK(K::concatenate({a}).shape() == Shape{2, 2});
  Tensor p = K::placeholder({K::None, 3}), q = K::placeholder({4, K::None});
  CHECK(K::int_shape(K::concatenate({p, q})) == Shape{4, -1});
  CHECK(K::int_shape(K::concatenate({p, q}, 0)) == Shape{-1, 3});
  CHECK(K::int_shape(K::concatenate({K::placeholder(), q}, 0)) == Shape{-1, -1});
  CHECK_THROWS_WITH(K::concatenate({}), "concatenate: tensors is an empty list; at least one tensor is needed");
  CHECK_THROWS_WITH(
      K::concatenate({a, b}, 0),
      "concatenate: tensor 0 has shape (2, 2), tensor 1 has (2, 1); they must be equal elsewhere than along axis 0");
  CHECK_THROWS_WITH(K::concatenate({a, a}, 2), "concatenate: axis 2 is out of range for (2, 2) of rank 2");
  CHECK_THROWS_WITH(
      K::concatenate({a, K::constant({{1}, {2}}, "int32")}),
      "concatenate: tensor 0 is float32, tensor 1 is int32; cast one of them (K::cast), tensors are not promoted");
  CHECK_THROWS_WITH(K::concatenate({K::constant(1), K::constant(2)}),
                    "concatenate: tensors are scalars, which have no axis to join along; K::stack makes one");
}

TEST_CASE("stack joins along a new axis, unstack is its inverse", "[shaping]") {
  Tensor a = K::constant({{1, 2, 3}, {4, 5, 6}}), b = K::constant({{7, 8, 9}, {10, 11, 12}});
  CHECK(values(K::stack({a, b})) == Doubles{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  CHECK(values(K::stack({a, b}, 1)) == Doubles{1, 2, 3, 7, 8, 9, 4, 5, 6, 10, 11, 12});
  CHECK(values(K::stack({a, b}, -1)) == Doubles{1, 7, 2, 8, 3, 9, 4, 10, 5, 11, 6, 12});
  CHECK(K::stack({a, b}, 2).shape() == Shape{2, 3, 2});
  CHECK(values(K::stack({1, 2, 3})) == Doubles{1, 2, 3});
  CHECK_THROWS_WITH(K::stack({a, K::transpose(b)}),
                    "stack: tensor 0 has shape (2, 3), tensor 1 has (3, 2); they must be equal");
  CHECK_THROWS_WITH(K::stack({a, b}, 3),
                    "stack: axis 3 is out of range for (2, 3) of rank 2; it lies between -3 and 2");
  CHECK_THROWS_WITH(K::stack({}), "stack: x is an empty list; at least one tensor is needed");
}

TEST_CASE("repeat_elements, repeat and tile", "[shaping]") {
  CHECK(values(K::repeat_elements({1, 2}, 3, 0)) == Doubles{1, 1, 1, 2, 2, 2});
  CHECK(values(K::repeat_elements({{1, 2}, {3, 4}}, 2, -1)) == Doubles{1, 1, 2, 2, 3, 3, 4, 4});
  CHECK(values(K::repeat_elements({{1, 2}, {3, 4}}, 2, 0)) == Doubles{1, 2, 1, 2, 3, 4, 3, 4});
  CHECK(values(K::tile({1, 2}, 3)) == Doubles{1, 2, 1, 2, 1, 2});
  CHECK(K::tile(counted({3, 4}, 12), 2).shape() == Shape{3, 8});
  CHECK(K::tile(counted({3, 4, 5}, 60), {1, 2}).shape() == Shape{3, 4, 10});
  CHECK(values(K::tile({{1, 2, 3}, {4, 5, 6}}, {2, 2})) ==
        Doubles{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6, 1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6});
  Tensor r = K::repeat(counted({4, 1}, 4), 3);
  CHECK(r.shape() == Shape{4, 3, 1});
  CHECK(values(r) == Doubles{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3});
  Tensor p = K::placeholder({K::None, 4});
  CHECK(K::int_shape(K::tile(p, 2)) == Shape{-1, 8});
  CHECK(K::int_shape(K::tile(p, {4, 3})) == Shape{-1, 12});
  CHECK(K::int_shape(K::repeat_elements(p, 3, 0)) == Shape{-1, 4});
  CHECK(K::int_shape(K::repeat_elements(p, 3, 1)) == Shape{-1, 12});
  CHECK(K::tile(counted({3, 4}, 12), {0, 2}).shape() == Shape{0, 8});
  CHECK_THROWS_WITH(K::tile({1, 2}, {2, 3}),
                    "tile: n is (2, 3), more factors than x of shape (2,) has axes; K::expand_dims makes axes");
  CHECK_THROWS_WITH(K::tile({1, 2}, -1), "tile: n is (-1,); factors must not be negative");
  CHECK_THROWS_WITH(K::repeat({1, 2}, 3), "repeat: x of shape (2,); the rank must be 2: (samples, features)");
  CHECK_THROWS_AS(K::repeat({1, 2}, 3), AssertionError);
  CHECK_THROWS_WITH(K::repeat_elements({1, 2}, 0, 0), "repeat_elements: rep is 0; it must be at least 1");
  CHECK_THROWS_WITH(K::repeat_elements({1, 2}, 2, 1), "repeat_elements: axis 1 is out of range for (2,) of rank 1");
  CHECK_THROWS_WITH(K::tile({1, 2}, {1L << 62}),
                    "tile: 2 elements of (2,) 4611686018427387904 times are too many to address");
}

TEST_CASE("reverse", "[shaping]") {
  CHECK(values(K::reverse({{1, 2}, {3, 4}}, {0, -1})) == Doubles{4, 3, 2, 1});
  CHECK(values(K::reverse({{1, 2, 3}, {4, 5, 6}}, 1)) == Doubles{3, 2, 1, 6, 5, 4});
  CHECK(values(K::reverse({{1, 2, 3}, {4, 5, 6}}, 0)) == Doubles{4, 5, 6, 1, 2, 3});
  CHECK(values(K::reverse({1, 2, 3}, {})) == Doubles{1, 2, 3});
  CHECK_THROWS_WITH(K::reverse({{1, 2}}, {0, -2}), "reverse: axes hold 0 twice for (1, 2)");
  CHECK_THROWS_WITH(K::reverse({{1, 2}}, 2), "reverse: axes hold 2, which is out of range for (1, 2) of rank 2");
}

TEST_CASE("slice takes a window", "[shaping]") {
  Tensor x = K::reshape(K::arange(1, 17, 1, "float32"), {4, 4});
  CHECK(values(K::slice(x, {1, 2}, {2, 2})) == Doubles{7, 8, 11, 12});
  CHECK(values(K::slice(x, {2, 1}, {-1, 1})) == Doubles{10, 14});
  Tensor rows = K::slice(x, {1, 0}, {2, 4});
  CHECK(rows.data<float>() == x.data<float>() + 4);
  CHECK(K::slice(counted({3, 2, 3}, 18), {1, 0, 0}, {2, 1, 3}).shape() == Shape{2, 1, 3});
  CHECK(values(K::slice(x, {K::constant(1, "int32"), 2}, {2, 2})) == Doubles{7, 8, 11, 12});
  CHECK(K::slice(x, {4, 0}, {0, 4}).shape() == Shape{0, 4});
  Tensor p = K::placeholder({K::None, 5});
  CHECK(K::int_shape(K::slice(p, {0, 1}, {2, 3})) == Shape{2, 3});
  CHECK(K::int_shape(K::slice(p, {0, 1}, {-1, -1})) == Shape{-1, 4});
  CHECK(K::int_shape(K::slice(p, {0, 1}, {K::shape(p)[0], 3})) == Shape{-1, 3});
  CHECK_THROWS_WITH(
      K::slice(x, {1, 2, 3, 0}, {2, 2, 1, 1}),
      "slice: start (1, 2, 3, 0) and size (2, 2, 1, 1) of a tensor of shape (4, 4); they must have an entry for each axis");
  CHECK_THROWS_WITH(
      K::slice(x, {3, 0}, {2, 4}),
      "slice: start (3, 0) and size (2, 4) of a tensor of shape (4, 4); the slice must end within the axis");
  CHECK_THROWS_WITH(K::slice(x, {-1, 0}, {1, 4}),
                    "slice: start (-1, 0) and size (1, 4) of a tensor of shape (4, 4); a start must not be negative");
  CHECK_THROWS_AS(K::slice(x, {1, 0}, {INT64_MAX, 4}), ValueError);
}

TEST_CASE("one_hot is float32 and ignores indices out of range", "[shaping]") {
  Tensor h = K::one_hot({0, 2, -1}, 3);
  CHECK(h.dtype() == float32);
  CHECK(values(h) == Doubles{1, 0, 0, 0, 0, 1, 0, 0, 0});
  CHECK(K::one_hot(K::constant({{1}, {3}}, "uint8"), 2).shape() == Shape{2, 1, 2});
  CHECK(K::int_shape(K::one_hot(K::placeholder({K::None}, None, "int32"), 4)) == Shape{-1, 4});
  CHECK_THROWS_WITH(K::one_hot(K::constant({1.0}), 2),
                    "one_hot: indices are float32; they must be integers; cast them (K::cast)");
  CHECK_THROWS_WITH(K::one_hot({1}, -2), "one_hot: num_classes is -2; it must not be negative");
}

TEST_CASE("gather selects rows", "[shaping]") {
  Tensor x = counted({10, 2, 3}, 60);
  Tensor y = K::gather(x, {1, 3, 7, 9});
  CHECK(y.shape() == Shape{4, 2, 3});
  CHECK(values(y(2)) == Doubles{42, 43, 44, 45, 46, 47});
  Tensor rows = K::constant({{0, 1}, {10, 11}, {20, 21}});
  CHECK(values(K::gather(rows, {{2, 0}, {1, 1}})) == Doubles{20, 21, 0, 1, 10, 11, 10, 11});
  CHECK(values(K::gather(rows, 1)) == Doubles{10, 11});
  CHECK(K::gather(rows, K::constant(std::vector<int>{}, "int32")).shape() == Shape{0, 2});
  CHECK(K::int_shape(K::gather(K::placeholder({K::None, 5}), K::placeholder({K::None, 2}, None, "int64"))) ==
        Shape{-1, 2, 5});
  CHECK_THROWS_WITH(K::gather(rows, {0, 3}), "gather: indices hold 3, which is out of range for an axis of size 3");
  CHECK_THROWS_WITH(K::gather(rows, {-1}), "gather: indices hold -1, which is out of range for an axis of size 3");
  CHECK_THROWS_WITH(K::gather(rows, K::constant({1.0})),
                    "gather: indices are float32; they must be int32 or int64; cast them (K::cast)");
  CHECK_THROWS_WITH(K::gather(1.0, {0}), "gather: reference is a scalar, which has no axis to select along");
}
