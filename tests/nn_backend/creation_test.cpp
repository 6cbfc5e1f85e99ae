// tests/nn_backend/creation_test.cpp - variables, placeholders, constants.
#include <kassette/backend.h>

#include <cmath>
#include <vector>

#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

TEST_CASE("a variable has floatx and the value's shape", "[creation]") {
  Tensor v = K::variable({{1, 2, 3}, {4, 5, 6}});
  CHECK(v.dtype() == float32);
  CHECK(v.shape() == Shape{2, 3});
  CHECK(values(v) == std::vector<double>{1, 2, 3, 4, 5, 6});
  CHECK(K::is_variable(v));
  CHECK_FALSE(v.symbolic());
}

TEST_CASE("a variable takes int and bool dtypes, a tensor is cast", "[creation]") {
  CHECK(K::variable(1, "int16").dtype() == int16);
  CHECK(K::variable(false, "bool").dtype() == bool_);
  CHECK(K::dtype(K::variable(1, "float64")) == float64);
  Tensor c = K::constant({1.75, -2.5}, "float64");
  Tensor v = K::variable(c);
  CHECK(v.dtype() == float32);
  CHECK(values(v) == std::vector<double>{1.75, -2.5});
  CHECK(values(K::variable(c, "int32")) == std::vector<double>{1, -2});
  CHECK_THROWS_AS(K::variable(1, "unsupported"), TypeError);
}

TEST_CASE("a constant has no history", "[creation]") {
  Tensor v = K::variable({1, 2});
  Tensor c = K::constant(v);
  CHECK_FALSE(K::is_variable(c));
  CHECK(values(c) == std::vector<double>{1, 2});
  CHECK(K::constant(3).dtype() == float32);
  CHECK(K::constant(3).shape() == Shape{});
}

TEST_CASE("a placeholder has the declared shape", "[creation]") {
  Tensor p = K::placeholder({K::None, 3}, None, "int32", false, "p");
  CHECK(p.symbolic());
  CHECK(p.dtype() == int32);
  CHECK(K::int_shape(p)[0] == None);
  CHECK(K::int_shape(p)[1] == 3);
  CHECK(K::ndim(K::placeholder(None, 2)) == 2);
  CHECK(K::int_shape(K::placeholder({})) == Shape{});
  CHECK(K::ndim(K::placeholder()) == None);
  CHECK_THROWS_WITH(K::placeholder({-1, 2}), "placeholder: shape holds -1; an unknown size is K::None");
  CHECK_THROWS_WITH(K::placeholder(None, 9), "placeholder: ndim is 9; a tensor has 0 to 8 axes");
}

TEST_CASE("a variable of a symbolic tensor is refused", "[creation]") {
  CHECK_THROWS_AS(K::variable(K::placeholder({2})), ValueError);
  CHECK_THROWS_WITH(K::variable(Tensor()),
                    "variable: value is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
}

TEST_CASE("constant takes a shape", "[creation]") {
  CHECK(values(K::constant(2.5, None, {2, 2})) == std::vector<double>{2.5, 2.5, 2.5, 2.5});
  CHECK(K::constant({1, 2, 3, 4, 5, 6}, "int32", {2, 3}).shape() == Shape{2, 3});
  CHECK(K::constant(1, None, {}).shape() == Shape{});
  CHECK(K::constant(std::vector<float>{1, 2}, "float32", {2, 1}).shape() == Shape{2, 1});
  CHECK_THROWS_WITH(K::constant({1, 2, 3}, None, {2, 2}), "constant: value of shape (3,) does not fill (2, 2)");
  CHECK_THROWS_WITH(
      K::constant(1, None, {K::None, 2}),
      "constant: shape (-1, 2); sizes must be known and not negative (None is shown as -1); use K::shape(x)[i] for an unknown one");
  CHECK_THROWS_WITH(K::constant(1, None, {K::shape(K::placeholder({K::None}))[0]}),
                    "constant: shape depends on a placeholder; K::zeros and K::ones take such a shape");
  CHECK_THROWS_WITH(
      K::constant({{1, 2}, {3}}),
      "constant: value is a ragged list: along axis 1 the sizes differ from (2, 2) of its first elements");
  CHECK_THROWS_WITH(K::constant({K::constant({1, 2}), K::constant({3})}),
                    "constant: tensor 0 has shape (2,), tensor 1 has (1,); they must be equal");
  CHECK_THROWS_WITH(K::sum({Tensor(), Tensor()}),
                    "sum: x holds an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK_THROWS_WITH(K::variable({{1, Tensor()}}),
                    "variable: value holds an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK_THROWS_WITH(K::variable({1.5, 2}, "int32"),
                    "variable: value 1.5 is not an integer, and int32 is wanted; convert it with K::cast");
  CHECK(K::constant({}).shape() == Shape{0});
}

TEST_CASE("zeros and ones are variables, of a symbolic shape tensors", "[creation]") {
  Tensor z = K::zeros({3, 5}), o = K::ones({2, 3}, "int32");
  CHECK(K::is_variable(z));
  CHECK(z.dtype() == float32);
  CHECK(values(z) == std::vector<double>(15, 0));
  CHECK(o.dtype() == int32);
  CHECK(values(o) == std::vector<double>(6, 1));
  CHECK(K::is_variable(K::zeros({})));
  CHECK(K::zeros({0, 3}).shape() == Shape{0, 3});
  CHECK(values(K::ones(K::shape(o))) == std::vector<double>(6, 1));
  Tensor p = K::placeholder({K::None, 3});
  Tensor dynamic = K::ones({K::shape(p)[0], 2});
  CHECK_FALSE(K::is_variable(dynamic));
  CHECK(K::int_shape(dynamic) == Shape{-1, 2});
  CHECK(values(K::function({p}, {dynamic})({K::zeros({2, 3})})[0]) == std::vector<double>(4, 1));
  CHECK_THROWS_WITH(
      K::zeros({2, -3}),
      "zeros: shape (2, -3); sizes must be known and not negative (None is shown as -1); use K::shape(x)[i] for an unknown one");
  CHECK_THROWS_WITH(
      K::zeros({1L << 40, 1L << 40}),
      "zeros: a result of shape (1099511627776, 1099511627776) and dtype float32 is too large to address");
}

TEST_CASE("eye is a variable with ones on the diagonal", "[creation]") {
  CHECK(values(K::eye(3)) == std::vector<double>{1, 0, 0, 0, 1, 0, 0, 0, 1});
  CHECK(values(K::eye({3, 2})) == std::vector<double>{1, 0, 0, 1, 0, 0});
  CHECK(values(K::eye({2, 3}, "int64")) == std::vector<double>{1, 0, 0, 0, 1, 0});
  CHECK(K::is_variable(K::eye(3)));
  CHECK(K::eye(0).shape() == Shape{0, 0});
  CHECK_THROWS_WITH(K::eye({1, 2, 3}), "eye: size holds 3 sizes; there must be one or two");
}

TEST_CASE("zeros_like and ones_like have floatx and the run-time shape", "[creation]") {
  Tensor x = K::constant({{1, 2, 3}, {4, 5, 6}}, "int32");
  CHECK(K::zeros_like(x).dtype() == float32);
  CHECK(K::zeros_like(x, "int32").dtype() == int32);
  CHECK(values(K::ones_like(x)) == std::vector<double>(6, 1));
  CHECK_FALSE(K::is_variable(K::zeros_like(K::variable(x))));
  Tensor p = K::placeholder({K::None, 2});
  CHECK(K::int_shape(K::ones_like(p)) == Shape{-1, 2});
  CHECK(values(K::function({p}, {K::ones_like(p)})({{{1, 2}}})[0]) == std::vector<double>{1, 1});
  CHECK(K::zeros_like(3.0).shape() == Shape{});
}

TEST_CASE("identity is a new tensor that the gradient passes", "[creation]") {
  Tensor v = K::variable({1, 2, 3});
  Tensor i = K::identity(v);
  CHECK_FALSE(K::is_variable(i));
  CHECK(values(i) == std::vector<double>{1, 2, 3});
  CHECK(values(K::gradients(K::sum(K::square(i)), {v})[0]) == std::vector<double>{2, 4, 6});
}

TEST_CASE("arange ends before stop where decimals are not exact in binary", "[creation]") {
  CHECK(K::arange(1, 1.6, 0.1).shape() == Shape{6});  // 1.6 - 1 is 6.000000000000001 times 0.1
  CHECK(K::arange(1, 1.6, 0.1, "float64").shape() == Shape{6});
  CHECK(K::arange(1.6, 1, -0.1).shape() == Shape{6});
  // All multiples of 1 / scale, which count as integers do.
  for (int scale : {10, 100, 1000})
    for (int start = -13; start <= 30; start += 4)
      for (int stop = start - 25; stop <= start + 1500; stop += 1 + (stop - start) / 7 * (stop > start + 20))
        for (int step : {1, 2, 3, 7, 10, 23, -1, -3}) {
          const int span = stop - start, count = span * step > 0 ? (std::abs(span) - 1) / std::abs(step) + 1 : 0;
          const double a = double(start) / scale, b = double(stop) / scale, by = double(step) / scale;
          if (K::arange(a, b, by).size() != count)
            FAIL_CHECK("arange(" << a << ", " << b << ", " << by << ") has " << K::arange(a, b, by).size()
                                 << " elements, not " << count);
          auto single = [](double v) { return K::constant(v, "float32"); };
          if (K::arange(single(a), single(b), single(by)).size() != count)
            FAIL_CHECK("arange of float32(" << a << ", " << b << ", " << by << ") has not " << count << " elements");
        }
  // A stop that is clearly beyond an element leaves that in.
  CHECK(K::arange(0, 1.000001, 0.25).shape() == Shape{5});
  CHECK(K::arange(1e9, 1e9 + 1, 0.3).shape() == Shape{4});
}

TEST_CASE("arange counts", "[creation]") {
  CHECK(values(K::arange(5)) == std::vector<double>{0, 1, 2, 3, 4});
  CHECK(K::arange(5).dtype() == int32);
  CHECK(K::arange(-3).shape() == Shape{0});
  CHECK(values(K::arange(-5, 5, 2)) == std::vector<double>{-5, -3, -1, 1, 3});
  CHECK(values(K::arange(0, 1, 2)) == std::vector<double>{0});
  CHECK(values(K::arange(5, 0, -2)) == std::vector<double>{5, 3, 1});
  CHECK(K::arange(0, 5, -1).shape() == Shape{0});
  for (DType d : {int32, int64, float32, float64}) CHECK(K::arange(0, 5, 1, d).dtype() == d);
  CHECK(K::arange(0, 1, 0.25).dtype() == float32);
  CHECK(values(K::arange(0, 1, 0.25)) == std::vector<double>{0, 0.25, 0.5, 0.75});
  CHECK(values(K::arange(0.5, 3, 1, "int32")) == std::vector<double>{0, 1, 2});
  CHECK(values(K::arange(K::variable(1, "int32"))) == std::vector<double>{0});
  CHECK(K::arange(K::variable(-1, "int32")).shape() == Shape{0});
  Tensor n = K::placeholder({}, None, "int32");
  CHECK(K::int_shape(K::arange(n)) == Shape{-1});
  auto f = K::function({n}, {K::arange(n)});
  CHECK(values(f({3})[0]) == std::vector<double>{0, 1, 2});
  CHECK(f({-1})[0].shape() == Shape{0});
  CHECK_THROWS_WITH(K::arange(0, 5, 0), "arange: step is 0; it must be another number");
  CHECK_THROWS_WITH(K::arange(K::constant({1.0, 2.0})), "arange: start has shape (2,); it must be a scalar");
  CHECK_THROWS_WITH(K::arange(3000000000, 3000000002),
                    "arange: dtype is int32, which 3000000000 does not fit; ask for int64");
  CHECK_THROWS_WITH(K::arange(300, None, 1, "uint8"), "arange: dtype is uint8, which 299 does not fit; ask for int64");
  CHECK_THROWS_WITH(K::arange(2, None, 1, "bool"), "arange: dtype is bool; it must be a number");
  CHECK(K::arange(3000000000, 3000000002, 1, "int64").shape() == Shape{2});
  CHECK_THROWS_AS(K::arange(0, 1.0 / 0.0), ValueError);
  CHECK_THROWS_AS(K::arange(INT64_MIN, INT64_MAX, 1, "int64"), ValueError);
}

TEST_CASE("eye, ones, zeros and their likes, on four axes and in every dtype", "[creation]") {
  CHECK(values(K::eye({3, 4})) == std::vector<double>{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0});
  for (const Tensor& t : {K::zeros({3, 5, 10, 8}), K::zeros_like(K::ones({3, 5, 10, 8}))}) {
    CHECK(t.shape() == Shape{3, 5, 10, 8});
    CHECK(values(t) == std::vector<double>(1200, 0));
  }
  for (const Tensor& t : {K::ones({3, 5, 10, 8}), K::ones_like(K::zeros({3, 5, 10, 8}))})
    CHECK(values(t) == std::vector<double>(1200, 1));
  for (DType d : {float16, bfloat16, float64, int8, uint16, uint64, int64, bool_}) {
    CHECK(values(K::ones({2}, d)) == std::vector<double>{1, 1});
    CHECK(values(K::eye(2, d)) == std::vector<double>{1, 0, 0, 1});
    CHECK(K::ones_like(K::placeholder({2}), d).dtype() == d);
  }
  CHECK(K::ones({1, 1, 1, 1, 1, 1, 1, 1}).ndim() == 8);
  CHECK_THROWS_AS(K::ones({1, 1, 1, 1, 1, 1, 1, 1, 1}), ValueError);
}

TEST_CASE("likes and identities are tensors of what x has at run time, and likes pass no gradient", "[creation]") {
  Tensor p = K::placeholder(), v = K::variable({{1, 2, 3}}, "int32");
  auto f = K::function({p}, {K::zeros_like(p, "int8"), K::ones_like(p), K::identity(p)});
  for (const Tensor& in : {K::constant(5), K::constant({1, 2}), K::zeros({0, 2})}) {
    Tensors o = f({in});
    for (const Tensor& t : o) CHECK(t.shape() == in.shape());
    CHECK(o[0].dtype() == int8);
    CHECK(values(o[2]) == values(in));
  }
  CHECK(K::identity(v).dtype() == int32);
  CHECK(K::identity(K::constant({true}, "bool")).dtype() == bool_);
  Tensor snapshot = K::identity(v);
  K::set_value(v, {{4, 5, 6}});
  CHECK(values(snapshot) == std::vector<double>{1, 2, 3});
  CHECK_THROWS_WITH(K::zeros_like(Tensor()),
                    "zeros_like: x is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK_THROWS_AS(K::identity(Tensor()), ValueError);
}

TEST_CASE("a constant does not follow what it was made of", "[creation]") {
  std::vector<float> numbers{1, 2};
  Tensor c = K::constant(numbers), v = K::variable({1, 2}), copy = K::constant(v);
  numbers[0] = 9;
  K::set_value(v, {7, 8});
  CHECK(values(c) == std::vector<double>{1, 2});
  CHECK(values(copy) == std::vector<double>{1, 2});
  CHECK(std::isnan(values(K::constant({NAN}))[0]));
  CHECK(values(K::constant(INT64_MAX, "int64", {2}))[0] == 9223372036854775807.0);
  CHECK_THROWS_WITH(K::constant(-1, "uint8"), "constant: value -1 does not fit uint8");
  CHECK_THROWS_WITH(K::constant({5}, None, {2, 2}), "constant: value of shape (1,) does not fill (2, 2)");
}

TEST_CASE("a placeholder's shape wins over ndim, and ndim is an integer", "[creation]") {
  CHECK(K::int_shape(K::placeholder({2, 3}, 5)) == Shape{2, 3});
  CHECK(K::int_shape(K::placeholder({}, 3)) == Shape{});
  CHECK(K::int_shape(K::placeholder(None, 8)).rank() == 8);
  CHECK_THROWS_WITH(K::placeholder(None, 1.5), "placeholder: ndim is 1.5; it must be an integer or None");
  CHECK_THROWS_WITH(K::placeholder(K::shape(K::placeholder({2}))),
                    "placeholder: shape is a tensor; it must be numbers and None");
}

TEST_CASE("shape and size are int32 tensors", "[introspection]") {
  Tensor x = K::constant(0, None, {2, 3, 4});
  CHECK(K::shape(x).dtype() == int32);
  CHECK(values(K::shape(x)) == std::vector<double>{2, 3, 4});
  CHECK(K::size(x).dtype() == int32);
  CHECK(K::size(x).item<int>() == 24);
  CHECK(K::size(3.0).item<int>() == 1);
  CHECK(K::shape(3.0).shape() == Shape{0});
  Tensor p = K::placeholder();
  auto f = K::function({p}, {K::shape(p), K::size(p)});
  CHECK(values(f({x})[0]) == std::vector<double>{2, 3, 4});
  CHECK(f({x})[1].item<int>() == 24);
  CHECK(K::int_shape(K::shape(p)) == Shape{-1});
}
