// tests/nn_backend/conventions_test.cpp - rules that hold for all functions: dtypes, broadcasting, axes, names,
// operators, errors.
#include <kassette/backend.h>

#include <cmath>
#include <string>
#include <vector>

#include "ops/engine/error_attribution.h"
#include "tests/catch.h"
#include "tests/results.h"
#include "tests/settings.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::ops;
using namespace kassette::test;
using Vec = std::vector<double>;

TEST_CASE("a variable is read as it is when the op runs", "[conventions]") {
  Tensor v = K::variable({1, 2}), now = v * 10, later = K::symbolic([&] { return v * 10; })();
  K::set_value(v, {3, 4});
  CHECK(values(now) == Vec{10, 20});
  CHECK(values(later) == Vec{30, 40});
  CHECK(values(v + std::vector<double>{1, 2}) == Vec{4, 6});  // arrays and numbers stand for constants
  CHECK(values(K::sum({{1, 2}, {3, 4}})) == Vec{10});
  CHECK(values(K::constant({v, v + 1})) == Vec{3, 4, 4, 5});
}

TEST_CASE("what is made without a dtype has floatx, integers and bool too", "[conventions]") {
  CHECK(K::variable({1, 2}).dtype() == "float32");
  CHECK(K::constant(3).dtype() == "float32");
  CHECK(K::constant(true).dtype() == "float32");
  CHECK(K::constant(std::vector<int>{1, 2}).dtype() == "float32");
  CHECK(K::placeholder({2}).dtype() == "float32");
  for (const char* name : {"float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16",
                           "uint32", "uint64", "bool"})
    CHECK(K::dtype(K::variable({0, 1}, std::string(name))) == std::string(name));
  CHECK_THROWS_WITH(K::zeros({2}, "complex64"),
                    "dtype 'complex64' is unknown; there are bool, uint8, uint16, uint32, uint64, int8, int16, int32, "
                    "int64, float16, bfloat16, float32, float64");
  CHECK_THROWS_AS(K::placeholder({2}, None, ""), TypeError);
  CHECK_THROWS_AS(K::zeros({2}, "float"), TypeError);
  CHECK_THROWS_AS(K::zeros({2}, "bfloat16x"), TypeError);
  CHECK_THROWS_AS(K::zeros({2}, "none"), TypeError);
  // TensorFlow's dtype for text, in placeholders and identity alone: tensors hold none here.
  CHECK_THROWS_WITH(
      K::placeholder({}, None, "string"),
      "dtype 'string': tensors hold numbers and bools, not text; feed integers instead, ids of words or bytes as uint8");
}

TEST_CASE("tensors are not promoted; numbers and arrays take the dtype of the tensor beside them", "[conventions]") {
  Tensor f = K::variable({1, 2}), d = K::variable({1, 2}, "float64"), i = K::variable({1, 2}, "int32"),
         b = K::variable({true, false}, "bool");
  CHECK_THROWS_WITH(f + d, "add: float32 and float64; cast one of them (K::cast), tensors are not promoted");
  CHECK_THROWS_WITH(K::maximum(f, i),
                    "maximum: float32 and int32; cast one of them (K::cast), tensors are not promoted");
  CHECK_THROWS_AS(K::placeholder({2}) * K::placeholder({2}, None, "float16"), TypeError);
  CHECK_THROWS_AS(K::equal(i, K::cast(i, "int64")), TypeError);
  CHECK((f * 2).dtype() == "float32");
  CHECK((2.5 * d).dtype() == "float64");
  CHECK((K::constant({1, 2}, "float16") + std::vector<double>{0.5, 1}).dtype() == "float16");
  CHECK(values(i + 1.0) == Vec{2, 3});  // a whole number, whatever its type
  CHECK_THROWS_WITH(i + 1.5, "add: y 1.5 is not an integer, and int32 is wanted; convert it with K::cast");
  CHECK_THROWS_AS((i * std::vector<double>{1, 0.5}), TypeError);
  CHECK_THROWS_AS(i < 1.5, TypeError);
  CHECK_THROWS_AS(b + 1, TypeError);
}

TEST_CASE("results have the dtype of x; truths, places, sizes and means have one of their own", "[conventions]") {
  Tensor h = K::constant({{1, 2}, {3, 4}}, "float16"), i = K::constant({{1, 2}, {3, 4}}, "int16");
  CHECK(K::exp(h).dtype() == "float16");
  CHECK(K::square(i).dtype() == "int16");
  CHECK(K::sum(i).dtype() == "int16");
  CHECK(K::greater(h, h).dtype() == "bool");
  CHECK(K::any(i).dtype() == "bool");
  CHECK(K::argmax(h).dtype() == "int64");
  CHECK(K::shape(h).dtype() == "int32");
  CHECK(K::size(h).dtype() == "int32");
  CHECK(K::arange(2).dtype() == "int32");
  CHECK(K::in_top_k(h, K::constant({0, 1}, "int32"), 1).dtype() == "bool");
  CHECK(K::mean(i).dtype() == "float32");
  {
    kassette::test::SettingsScope restore;
    K::set_floatx("float64");
    CHECK(K::one_hot(i, 5).dtype() == "float32");  // always
    CHECK(K::mean(i).dtype() == "float64");
    CHECK(K::zeros_like(i).dtype() == "float64");
  }
  for (const Tensor& bad : {i, K::constant({true}, "bool")}) {
    CHECK_THROWS_AS(K::exp(bad), TypeError);
    CHECK_THROWS_AS(K::sqrt(bad), TypeError);
    CHECK_THROWS_AS(K::tanh(bad), TypeError);
    CHECK_THROWS_AS(K::sigmoid(bad), TypeError);
    CHECK_THROWS_AS(K::softmax(bad), TypeError);
    CHECK_THROWS_AS(K::log(K::placeholder({2}, None, bad.dtype())), TypeError);
  }
}

TEST_CASE("shapes broadcast from the back; static ones that do not are refused when the op is built", "[conventions]") {
  Tensor x = K::placeholder({K::None, 3}), y = K::placeholder({K::None, 2}), n = K::placeholder({K::None});
  CHECK(K::int_shape(x + K::ones({4, 1, 3})) == Shape{4, -1, 3});
  CHECK_THROWS_WITH(x + y, "add: shapes (None, 3) and (None, 2) do not broadcast: 3 against 2");
  CHECK_THROWS_WITH(K::ones({2, 3}) * K::ones({2}), "multiply: shapes (2, 3) and (2,) do not broadcast: 3 against 2");
  CHECK_THROWS_WITH(K::ones({2}, "bool") & K::ones({3}, "bool"),
                    "logical_and: shapes (2,) and (3,) do not broadcast: 2 against 3");
  auto f = K::function({x, n}, {x + n});
  CHECK(values(f({{{1, 2, 3}}, {1}})[0]) == Vec{2, 3, 4});
  CHECK_THROWS_WITH(f({{{1, 2, 3}}, {1, 2}}), "add: shapes (1, 3) and (2,) do not broadcast: 3 against 2");
  CHECK((K::zeros({0, 3}) + K::ones({3})).shape() == Shape{0, 3});
  CHECK((K::ones({}) + K::ones({1, 1, 1, 1, 1, 1, 1, 2})).ndim() == 8);
}

TEST_CASE("axes count from either end; twice the same or out of range is a ValueError; none reduces nothing",
          "[conventions]") {
  Tensor x = K::constant({{1, 2, 3}, {4, 5, 6}});
  CHECK(values(K::sum(x, -1)) == Vec{6, 15});
  CHECK(values(K::sum(x, {0, -1})) == Vec{21});
  CHECK(K::sum(x, {0, 1}).shape() == Shape{});
  CHECK(K::sum(x, {0, 1}, true).shape() == Shape{1, 1});
  CHECK(values(K::sum(x, {})) == values(x));
  for (const Axes& axis : {Axes(2), Axes(-3), Axes({0, -2}), Axes({1, 1})}) {
    CHECK_THROWS_AS(K::sum(x, axis), ValueError);
    CHECK_THROWS_AS(K::max(K::placeholder({K::None, 3}), axis), ValueError);
  }
}

TEST_CASE("error categories can be told apart and are all errors of ours", "[conventions]") {
  Tensor x = K::variable({1, 2, 3});
  CHECK_THROWS_AS(K::reshape(x, {2, 2}), ValueError);
  CHECK_THROWS_AS(K::cast(x, "float8"), TypeError);
  CHECK_THROWS_AS(K::repeat(x, 2), AssertionError);
  CHECK_THROWS_AS(K::tile(x, {1, 2}), NotImplementedError);
  CHECK_THROWS_AS(K::gather(x, K::constant(3, "int32")), ValueError);  // seen when it runs
  CHECK_THROWS_AS(K::repeat(x, 2), Error);
}

TEST_CASE("names change nothing", "[conventions]") {
  CHECK(values(K::identity(K::constant({1}, None, None, "a"), "b")) == Vec{1});
  CHECK(K::size({1, 2}, "n").item<int>() == 2);
  CHECK(values(K::ones({2}, None, "w")) == Vec{1, 1});
}

TEST_CASE("operators: true division, floors and remainders with the divisor's sign", "[conventions]") {
  Tensor i = K::constant({-7, 7}, "int32"), f = K::constant({-7.5, 7.5});
  CHECK((i / 2).dtype() == "float64");
  CHECK(values(i / 2) == Vec{-3.5, 3.5});
  for (const char* small : {"int8", "uint8", "int16", "uint16"})
    CHECK((K::cast(i, std::string(small)) / 2).dtype() == "float32");
  for (const char* large : {"int64", "uint32", "uint64"})
    CHECK((K::cast(i, std::string(large)) / 2).dtype() == "float64");
  CHECK(values(floor_divide(i, 2)) == Vec{-4, 3});
  CHECK(values(i % 2) == Vec{1, 1});
  CHECK(values(i % -2) == Vec{-1, -1});
  CHECK(values(floor_divide(f, 2)) == Vec{-4, 3});
  CHECK(values(f % 2) == Vec{0.5, 1.5});
  CHECK(values(f % -2) == Vec{-1.5, -0.5});
  CHECK(values(K::constant({1, -1, 0}) / 0)[0] == INFINITY);
  CHECK(values(floor_divide(K::constant({-5, 5, 0, -1e-30}), K::constant({INFINITY, INFINITY, INFINITY, 5}))) ==
        Vec{-1, 0, 0, -1});  // NumPy's
  CHECK(values(floor_divide(K::constant({-5, 5}, "float64"), -INFINITY)) == Vec{0, -1});
  CHECK_THROWS_WITH(floor_divide(i, 0), "floor_divide: integer division by zero");
  CHECK_THROWS_WITH(i % 0, "remainder: integer division by zero");
  Tensor n = K::placeholder({2}, None, "int32");
  CHECK_THROWS_AS(K::function({n}, {floor_divide(i, n)})({{1, 0}}), ValueError);
  Tensor t = K::constant({true, false}, "bool"), u = K::constant({true, true}, "bool");
  CHECK(values(t & u) == Vec{1, 0});
  CHECK(values(t | u) == Vec{1, 1});
  CHECK(values(~t) == Vec{0, 1});
  CHECK_THROWS_AS(i & i, TypeError);
  CHECK_THROWS_AS(~i, TypeError);
  CHECK(values(-i) == Vec{7, -7});
  CHECK(values(i <= 7) == Vec{1, 1});
  CHECK(values(2 - i) == Vec{9, -5});
}

TEST_CASE("indices are NumPy's basic ones: ints out of range are refused, slices are clipped", "[conventions]") {
  Tensor x = K::reshape(K::arange(24), {2, 3, 4});
  CHECK(values(x(1, 2, 3)) == Vec{23});
  CHECK(x(1, 2, 3).shape() == Shape{});
  CHECK(values(x[-1](0)) == Vec{12, 13, 14, 15});
  CHECK(values(x(0, all, slice(1, 3))) == Vec{1, 2, 5, 6, 9, 10});
  CHECK(values(x(ellipsis, 0)) == Vec{0, 4, 8, 12, 16, 20});
  CHECK(values(x(0, 0, slice(None, None, -1))) == Vec{3, 2, 1, 0});
  CHECK(x(all, None).shape() == Shape{2, 1, 3, 4});
  CHECK(x(slice(1, 99)).shape() == Shape{1, 3, 4});
  CHECK(x(slice(5, 9)).shape() == Shape{0, 3, 4});
  CHECK(values(x(K::constant(1, "int32"), 0, 0)) == Vec{12});
  CHECK_THROWS_WITH(x[2], "index: 2 is out of range for axis 0 of a tensor of shape (2, 3, 4)");
  CHECK_THROWS_WITH(x(0, -4), "index: -4 is out of range for axis 1 of a tensor of shape (2, 3, 4)");
  CHECK_THROWS_WITH(x(0, 0, 0, 0), "index: 4 indices for a tensor of shape (2, 3, 4)");
  Tensor p = K::placeholder({K::None, 3}), i = K::placeholder({}, None, "int32");
  CHECK(K::int_shape(p[5]) == Shape{3});
  CHECK(K::int_shape(p(slice(0, 2))) == Shape{-1, 3});
  CHECK_THROWS_AS(p(0, 3), ValueError);
  auto f = K::function({p, i}, {p[i], p[-1], K::gradients(K::sum(p[i]), {p})[0]});
  Tensors o = f({{{1, 2, 3}, {4, 5, 6}}, 0});
  CHECK(values(o[0]) == Vec{1, 2, 3});
  CHECK(values(o[1]) == Vec{4, 5, 6});
  CHECK(values(o[2]) == Vec{1, 1, 1, 0, 0, 0});
  CHECK_THROWS_AS(f({{{1, 2, 3}}, 1}), ValueError);
}

TEST_CASE("what is eager runs at the call, what hangs on a placeholder or is symbolic waits", "[conventions]") {
  Tensor x = K::constant({1, 2}), p = K::placeholder({2}), v = K::variable({0, 0});
  CHECK_FALSE((x + 1).symbolic());
  CHECK((p + x).symbolic());
  CHECK_THROWS_AS(K::gather(x, K::constant(9, "int32")), ValueError);  // at the call
  Tensor late = K::symbolic([&] { return K::gather(v, K::constant(9, "int32")); })();
  CHECK_THROWS_AS(K::eval(late), ValueError);
  Tensor draw = K::random_normal({3}), from_draw = draw * 2;
  auto f = K::function({p}, {draw, from_draw, K::sum(p)});
  Tensors a = f({{1, 2}}), b = f({{1, 2}});
  CHECK(values(a[0]) != values(b[0]));  // a draw stays a draw
  CHECK(values(a[1]) == values(b[1]));  // what was computed from one is a value
}

TEST_CASE("errors inside a composition take its name, a device keeps its own", "[conventions]") {
  auto said = [](const DeviceError& error) {
    return error_of([&] { attribute_errors("random_uniform", [&]() -> Tensor { throw DeviceError(error); }); });
  };
  CHECK(said(DeviceError("uniform", "", "no room")) == "random_uniform: no room");
  CHECK(said(DeviceError("cuda:0 is not available: there is no driver")) ==
        "cuda:0 is not available: there is no driver");
  CHECK(said(DeviceError("uniform: a text of the user's own")) == "uniform: a text of the user's own");
}
