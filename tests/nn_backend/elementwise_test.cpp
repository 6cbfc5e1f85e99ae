// tests/nn_backend/elementwise_test.cpp - elementwise math, comparisons, activations and cast: values, edges, errors.
#include <kassette/backend.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ops/engine/operand.h"
#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::ops;
using namespace kassette::test;

namespace {

using List = std::vector<double>;
constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor filled(float value, const Shape& shape) {
  TensorSpec spec(float32, {});
  for (std::int64_t d : shape) spec.dims[spec.rank++] = d;
  Tensor t = empty_tensor(spec);
  for (std::int64_t i = 0; i < t.size(); ++i) mutable_data<float>(t)[i] = value;
  return t;
}
Tensor floats(const List& v) { return K::constant(v, "float64"); }
void check_close(const Tensor& x, const List& expected, double tolerance = 1e-12) {
  test::check_close(values(x), expected, 0, tolerance);
}

const List kReluAt{-4, -2.8, -1, 0, 0.5, 0.8, 1, 5, 7};

}  // namespace

TEST_CASE("relu has the values of appendix A.6", "[elementwise]") {
  Tensor x = floats(kReluAt);
  check_close(K::relu(x), {0, 0, 0, 0, .5, .8, 1, 5, 7});
  check_close(K::relu(x, .1), {-.4, -.28, -.1, 0, .5, .8, 1, 5, 7});
  check_close(K::relu(x, 0, 5), {0, 0, 0, 0, .5, .8, 1, 5, 5});
  check_close(K::relu(x, 0, None, .8), {0, 0, 0, 0, 0, .8, 1, 5, 7});
  check_close(K::relu(x, .1, 5), {-.4, -.28, -.1, 0, .5, .8, 1, 5, 5});
  check_close(K::relu(x, .1, None, .8), {-.48, -.36, -.18, -.08, -.03, .8, 1, 5, 7});
  check_close(K::relu(x, .1, 5, .8), {-.48, -.36, -.18, -.08, -.03, .8, 1, 5, 5});
  check_close(K::relu(x, .1, 0.0, .8), {-.48, -.36, -.18, -.08, -.03, 0, 0, 0, 0});
  check_close(K::relu(x, .1, 5, -2.8), {-.12, 0, 0, 0, .5, .8, 1, 5, 5});
  check_close(K::relu(x, .1, None, -2.8), {-.12, -2.8, -1, 0, .5, .8, 1, 5, 7});
}

TEST_CASE("relu keeps the dtype whatever floatx is, and infinities do not meet 0", "[elementwise]") {
  CHECK(K::relu(floats({1}), .1, 5, .8).dtype() == float64);
  CHECK(K::relu(K::constant({1}, "float16"), .1, 5, .8).dtype() == float16);
  check_close(K::relu(floats({kInf, -kInf}), .1, None, .8), {kInf, -kInf});
  check_close(K::relu(floats({kInf, -kInf}), .1), {kInf, -kInf});
  check_close(K::relu(floats({-1, 3}), 0, -2), {0, 0});  // a negative ceiling is 0
  CHECK(values(K::relu(K::constant({-1, 2}, "int32"))) == List{0, 2});
  CHECK(error_of([] { K::relu(K::constant({1}, "int32"), .1); }) ==
        "relu: x is int32, not a float dtype; cast it first (K::cast)");
}

TEST_CASE("NaN stays in relu whatever its options", "[elementwise]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (double alpha : {0.0, 0.1})
    for (Scalar top : {Scalar(None), Scalar(5.0)})
      for (double threshold : {0.0, 0.8, -0.8}) CHECK(std::isnan(K::relu(nan, alpha, top, threshold).item<double>()));
}

TEST_CASE("a NaN threshold or max_value of relu gives NaN, as the formula of the documents", "[elementwise]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (double alpha : {0.0, 0.1}) {
    for (double v : values(K::relu(floats({-1, 0, 2}), alpha, None, nan))) CHECK(std::isnan(v));
    for (double v : values(K::relu(floats({-1, 0, 2}), alpha, nan, 0.5))) CHECK(std::isnan(v));
  }
  CHECK(K::relu(K::constant({1}, "float16"), 0, nan).dtype() == float16);
}

TEST_CASE("a negative max_value of relu is that of 0", "[elementwise]") {
  Tensor x = K::constant({-2, 0, 3});
  for (double threshold : {0.0, 0.5, -3.0}) {
    auto at = [&](double top) { return K::relu(x, .5, top, threshold).to_vector<double>(); };
    std::vector<double> negative = at(-1), zero = at(0);
    CHECK(negative == zero);
  }
}

TEST_CASE("activations have the values of appendix A.7", "[elementwise]") {
  check_close(K::hard_sigmoid(floats({-3, -2.5, -1, 0, 1, 2.5, 3})), {0, 0, .3, .5, .7, 1, 1}, 1e-15);
  check_close(K::softplus(floats({-1, 0, 1})), {.31326169, .69314718, 1.31326169}, 1e-8);
  check_close(K::softsign(floats({-2, 0, 2})), {-2 / 3., 0, 2 / 3.}, 1e-8);
  check_close(K::elu(floats({-1, 0, 2}), .5), {-.31606028, 0, 2}, 1e-8);
  check_close(K::sigmoid(floats({0, -800, 800, 1})), {.5, 0, 1, .7310585786300049});
  check_close(K::tanh(floats({0, 1, -400})), {0, .7615941559557649, -1});
}

TEST_CASE("activations do not overflow far from zero", "[elementwise]") {
  for (DType dtype : {float32, float64}) {
    Tensor x = K::constant({-1e4, 1e4}, dtype);
    check_close(K::softplus(x), {0, 1e4});
    check_close(K::elu(x), {-1, 1e4});
    check_close(K::sigmoid(x), {0, 1});
  }
}

TEST_CASE("sqrt of negative numbers is 0 and NaN stays", "[elementwise]") {
  check_close(K::sqrt(floats({4, 0, -1, kInf, -kInf})), {2, 0, 0, kInf, 0});
  CHECK(std::isnan(K::sqrt(kNan).item<double>()));
}

TEST_CASE("log is -inf at 0 and NaN below", "[elementwise]") {
  List v = values(K::log(floats({1, 0, -1, kInf})));
  CHECK(v[0] == 0);
  CHECK(v[1] == -kInf);
  CHECK(std::isnan(v[2]));
  CHECK(v[3] == kInf);
}

TEST_CASE("log1p keeps its digits near 0, is -inf at -1 and NaN below", "[elementwise]") {
  // np.log1p([1e-10, -1e-10, 0.5, -0.5, 1e10, -1 + 2**-53]) in float64; -0.0 and inf are their own.
  const List x{1e-10, -1e-10, .5, -.5, 1e10, -1 + 0x1p-53};
  test::check_close(values(K::log1p(floats(x))),
                    {9.999999999500001e-11, -1.00000000005e-10, .4054651081081644, -.6931471805599453,
                     23.025850930040455, -36.7368005696771},
                    1e-15, 0);
  List edge = values(K::log1p(floats({0, -0.0, -1, kInf, -2, -kInf, kNan})));
  CHECK((edge[0] == 0 && edge[1] == 0 && std::signbit(edge[1]) && edge[2] == -kInf && edge[3] == kInf));
  for (std::size_t i : {4u, 5u, 6u}) CHECK(std::isnan(edge[i]));
  // np.log1p(np.float32([1e-7, -1e-7, 3e-5, 2, -0.75]))
  test::check_close(values(K::log1p(K::constant({1e-7, -1e-7, 3e-5, 2., -.75}, float32))),
                    {9.9999994e-08, -1.0000001e-07, 2.9999550e-05, 1.0986123, -1.3862944}, 2e-7, 0);
  // np.log1p(x).astype(np.float16) of these numbers of float16: 0.001, -0.5, 3, 6e-5, 65504
  CHECK(values(K::log1p(K::constant({1.00040436e-03, -.5, 3., 6.00218773e-05, 65504.}, float16))) ==
        values(K::constant({9.99450684e-04, -6.93359375e-01, 1.38671875, 6.00218773e-05, 11.09375}, float16)));
  CHECK(error_of([] { K::log1p(K::constant({1}, int32)); }) ==
        "log1p: x is int32, not a float dtype; cast it first (K::cast)");
}

TEST_CASE("round takes ties to even and leaves integers alone", "[elementwise]") {
  CHECK(values(K::round(floats({-2.5, -1.5, -.5, .5, 1.5, 2.5}))) == List{-2, -2, 0, 0, 2, 2});
  CHECK(std::signbit(K::round(floats({-.5})).item<double>()));
  Tensor i = K::constant({3, -4}, "int64");
  CHECK(values(K::round(i)) == List{3, -4});
  CHECK(K::round(i).dtype() == int64);
}

TEST_CASE("sign of zero is zero", "[elementwise]") {
  CHECK(values(K::sign(floats({-3, 0, 2}))) == List{-1, 0, 1});
  CHECK(values(K::sign(K::constant({-3, 0, 2}, "int8"))) == List{-1, 0, 1});
  CHECK(values(K::sign(K::constant({0, 2}, "uint8"))) == List{0, 1});
}

TEST_CASE("pow follows IEEE, and integers stay integers", "[elementwise]") {
  check_close(K::pow(floats({2, 0, -2, 4}), 3), {8, 0, -8, 64});
  check_close(K::pow(floats({2, 0}), 0), {1, 1});
  check_close(K::pow(floats({-3, 4}), 2), {9, 16});
  CHECK(std::isnan(K::pow(floats({-8}), 1. / 3).item<double>()));
  check_close(K::pow(2.0, floats({3, -1})), {8, .5});
  Tensor i = K::constant({-3, 2}, "int32");
  CHECK(values(K::pow(i, 3)) == List{-27, 8});
  CHECK(K::pow(i, 3).dtype() == int32);
  CHECK(error_of([&] { K::pow(i, -1); }) == "pow: a holds a negative integer; cast x to a float dtype (K::cast)");
  CHECK(error_of([&] { K::pow(i, .5); }) ==
        "pow: a 0.5 is not an integer, and int32 is wanted; convert it with K::cast");
}

TEST_CASE("clip lets the lower of two crossing bounds win", "[elementwise]") {
  Tensor x = floats({-1, 0, .5, 1, 2});
  check_close(K::clip(x, 0, 1), {0, 0, .5, 1, 1});
  check_close(K::clip(x, 1, 0), {1, 1, 1, 1, 1});
  check_close(K::clip(x, None, .25), {-1, 0, .25, .25, .25});
  check_close(K::clip(x, .25, None), {.25, .25, .5, 1, 2});
  check_close(K::clip(x, floats({0, 0, 0, 0, 3}), 1), {0, 0, .5, 1, 3});
  check_close(K::clip(x, floats({1}), floats({0})), {1, 1, 1, 1, 1});
  CHECK(std::isnan(K::clip(floats({kNan}), 0, 1).item<double>()));
  CHECK(std::isnan(K::clip(floats({.5}), kNan, 1).item<double>()));  // a bound of NaN too, as in NumPy
  CHECK(std::isnan(K::clip(floats({.5}), 0, kNan).item<double>()));
  CHECK(values(K::clip(K::constant({-3, 5, 9}, "int64"), 0, 6)) == List{0, 5, 6});
  CHECK(values(K::clip(K::constant({3}, "int32"), 5, 1)) == List{5});
  CHECK(K::clip(K::constant({1}, "float16"), 0, 1).dtype() == float16);
}

TEST_CASE("bounds of clip do not broadcast x", "[elementwise]") {
  CHECK(error_of([] {
          K::clip(floats({1}), floats({0, 0}), 1);
        }) == "clip: min_value of shape (2,) does not broadcast to x of shape (1,)");
  CHECK(error_of([] { K::clip(K::constant(1.0), K::constant({{0.0}}), None); }) ==
        "clip: min_value of shape (1, 1) does not broadcast to x of shape ()");
  CHECK(error_of([] { K::clip(K::constant({1}, "int32"), .5, 2); }) ==
        "clip: min_value 0.5 is not an integer, and int32 is wanted; convert it with K::cast");
}

TEST_CASE("a bound of clip that only a replay knows does not broadcast x either", "[elementwise]") {
  Tensor x = K::placeholder({None, 3}), bound = K::placeholder({None, None});
  auto f = K::function({x, bound}, {K::clip(x, 0, bound)});
  CHECK(f({K::ones({2, 3}), K::constant({{0.5}})})[0].shape() == Shape{2, 3});
  CHECK_THROWS_WITH(f({K::ones({1, 3}), K::ones({2, 3})}),
                    "clip: max_value of shape (2, 3) does not broadcast to x of shape (1, 3)");
  CHECK_THROWS_WITH(f({K::ones({2, 3}), K::ones({2, 2})}),
                    "clip: max_value of shape (2, 2) does not broadcast to x of shape (2, 3)");
}

TEST_CASE("comparisons give bool, and NaN equals nothing", "[elementwise]") {
  Tensor a = floats({1, 2, kNan}), b = floats({2, 2, kNan});
  CHECK(K::equal(a, b).dtype() == bool_);
  CHECK(values(K::equal(a, b)) == List{0, 1, 0});
  CHECK(values(K::not_equal(a, b)) == List{1, 0, 1});
  CHECK(values(K::greater(a, 1)) == List{0, 1, 0});
  CHECK(values(K::greater_equal(a, b)) == List{0, 1, 0});
  CHECK(values(K::less(a, b)) == List{1, 0, 0});
  CHECK(values(K::less_equal(a, b)) == List{1, 1, 0});
  CHECK(values(K::equal(K::constant({true, false}, "bool"), true)) == List{1, 0});
  CHECK(error_of([] { K::less(K::constant({true}, "bool"), true); }) ==
        "less: bool is not a number; cast it first (K::cast)");
}

TEST_CASE("cast to its own dtype gives the tensor itself", "[elementwise]") {
  Tensor x = floats({1, 2});
  CHECK(place<double>(K::cast(x, "float64")) == x.data<double>());
  CHECK(K::cast(x, "int32").dtype() == int32);
  CHECK(values(K::cast({-1.5, 1.5}, "int32")) == List{-1, 1});
  CHECK_THROWS_AS(K::cast(x, "int31"), TypeError);
}

TEST_CASE("math on integers and bool is refused by name", "[elementwise]") {
  Tensor i = K::constant({1}, "int32"), p = K::constant({true}, "bool");
  for (auto f : {K::exp, K::log, K::sqrt, K::sin, K::cos, K::sigmoid, K::tanh, K::softplus, K::hard_sigmoid}) {
    CHECK_THROWS_AS(f(i), TypeError);
    CHECK_THROWS_AS(f(p), TypeError);
    CHECK_THROWS_AS(f(Tensor()), ValueError);
  }
  CHECK(error_of([&] { K::cos(i); }) == "cos: x is int32, not a float dtype; cast it first (K::cast)");
  CHECK(error_of([&] { K::square(p); }) == "square: x is bool, not a number; cast it first (K::cast)");
  CHECK(error_of([&] { K::maximum(p, p); }) == "maximum: bool is not a number; cast it first (K::cast)");
}

TEST_CASE("elementwise ops take rank 0, rank 8 and empty tensors", "[elementwise]") {
  CHECK(K::exp(0.0).shape() == Shape{});
  CHECK(K::exp(0.0).item<double>() == 1);
  Tensor deep = filled(2.f, {1, 2, 1, 1, 2, 1, 3, 1});
  CHECK(K::square(deep).shape() == Shape{1, 2, 1, 1, 2, 1, 3, 1});
  CHECK((deep + filled(1.f, {5, 1, 1, 1, 1, 1, 1, 2})).shape() == Shape{5, 2, 1, 1, 2, 1, 3, 2});
  Tensor none = filled(0.f, {0, 3});
  CHECK(K::exp(none).shape() == Shape{0, 3});
  CHECK((none * K::constant({1, 2, 3})).shape() == Shape{0, 3});
  CHECK(K::equal(none, 1.0).shape() == Shape{0, 3});
}
