// tests/nn_backend/elementwise_gradient_test.cpp - gradients at kinks, ties and infinities. The sweeps cover the smooth
// rest.
#include <kassette/backend.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "ops/elementwise/arithmetic.h"
#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::ops;
using namespace kassette::test;

namespace {

using List = std::vector<double>;
constexpr double kInf = std::numeric_limits<double>::infinity();

/// The gradient of the sum of f(x).
List gradient(const std::function<Tensor(const Tensor&)>& f, const List& at) {
  Tensor x = K::variable(at, "float64");
  return values(K::gradients(f(x), {x})[0]);
}
bool has_gradient(const std::function<Tensor(const Tensor&)>& f) {
  Tensor x = K::variable({0.3, 1.7}, "float64");
  return K::gradients(f(x), {x})[0].defined();
}

}  // namespace

TEST_CASE("a tie of maximum, minimum and clip belongs to the first operand", "[elementwise][gradients]") {
  Tensor a = K::variable({2, 1, 3}, "float64"), b = K::variable({2, 2, 2}, "float64");
  Tensors high = K::gradients(K::maximum(a, b), {a, b}), low = K::gradients(K::minimum(a, b), {a, b});
  CHECK(values(high[0]) == List{1, 0, 1});
  CHECK(values(high[1]) == List{0, 1, 0});
  CHECK(values(low[0]) == List{1, 1, 0});
  CHECK(values(low[1]) == List{0, 0, 1});
  CHECK(gradient([](const Tensor& x) { return K::clip(x, 0, 1); }, {-1, 0, .5, 1, 2}) == List{0, 1, 1, 1, 0});
  Tensor x = K::variable({-1, 0, .5, 1, 2}, "float64"), bottom = K::variable({0., 0., 0., 0., 0.}, "float64"),
         top = K::variable(1.0, "float64");
  Tensors g = K::gradients(K::clip(x, bottom, top), {x, bottom, top});
  CHECK(values(g[0]) == List{0, 1, 1, 1, 0});
  CHECK(values(g[1]) == List{1, 0, 0, 0, 0});
  CHECK(values(g[2]) == List{1});
}

TEST_CASE("sqrt, abs and log at their singular points", "[elementwise][gradients]") {
  CHECK(gradient([](const Tensor& x) { return K::sqrt(x); }, {4, -1, 0, -0.0}) == List{.25, 0, kInf, kInf});
  CHECK(gradient(
            [](const Tensor& x) {
              return K::sqrt(x) * K::constant({0.0, 1.0}, "float64");
            },
            {0, 1}) == List{0, .5});
  CHECK(gradient([](const Tensor& x) { return K::abs(x); }, {-2, 0, 3}) == List{-1, 0, 1});
  CHECK(gradient([](const Tensor& x) { return K::log(x); }, {0, 2}) == List{kInf, .5});
}

TEST_CASE("the derivatives of log1p are 1 / (1 + x) and -1 / (1 + x)^2, in a function as well",
          "[elementwise][gradients]") {
  const List at{0, 1e-10, .5, -.5, 3};
  List first, second;
  for (double x : at) {
    first.push_back(1 / (1 + x));
    second.push_back(-1 / ((1 + x) * (1 + x)));
  }
  Tensor x = K::variable(at, "float64");
  Tensor slope = K::gradients(K::log1p(x), {x})[0], bend = K::gradients(slope, {x})[0];
  check_close(values(slope), first, 4e-15, 0);
  check_close(values(bend), second, 4e-15, 0);
  // A chain of elementwise ops, fused where a function runs: exp(log1p(x)) is 1 + x.
  Tensor in = K::placeholder({None}, None, "float64");
  Tensor y = K::exp(K::log1p(in));
  Tensors out = K::function({in}, {y, K::gradients(y, {in})[0]})({x});
  check_close(values(out[0]), {1, 1 + 1e-10, 1.5, .5, 4}, 4e-15, 0);
  check_close(values(out[1]), {1, 1, 1, 1, 1}, 4e-15, 0);
  CHECK(gradient([](const Tensor& t) { return K::log1p(t); }, {-1, kInf}) == List{kInf, 0});
}

TEST_CASE("a zero cotangent stays zero beside inf", "[elementwise][gradients]") {
  Tensor off = K::constant({0.0, 1.0}, "float64");
  CHECK(gradient([&](const Tensor& x) { return K::exp(x) * off; }, {1000, 0}) == List{0, 1});
  CHECK(gradient([&](const Tensor& x) { return K::square(x) * off; }, {kInf, 2}) == List{0, 4});
  CHECK(gradient([&](const Tensor& x) { return K::log(x) * off; }, {0, 2}) == List{0, .5});
  CHECK(gradient([&](const Tensor& x) { return (1.0 / x) * off; }, {0, 1}) == List{0, -1});
  CHECK(gradient(
            [&](const Tensor& x) {
              return (x / K::constant({0.0, 2.0}, "float64")) * off;
            },
            {1, 1}) == List{0, .5});
  CHECK(gradient(
            [&](const Tensor& x) {
              return (x * K::constant({kInf, 2.0}, "float64")) * off;
            },
            {1, 1}) == List{0, 2});
  CHECK(gradient([](const Tensor& x) { return where(K::less(x, 700.0), K::exp(x), 1.0); }, {1000, 0}) == List{0, 1});
}

TEST_CASE("pow at zero and below", "[elementwise][gradients]") {
  CHECK(gradient([](const Tensor& x) { return K::pow(x, 2); }, {0, 3}) == List{0, 6});
  CHECK(gradient([](const Tensor& x) { return K::pow(x, 3); }, {0, -2}) == List{0, 12});
  CHECK(gradient([](const Tensor& x) { return K::pow(x, 1); }, {0, 3}) == List{1, 1});
  CHECK(gradient([](const Tensor& x) { return K::pow(x, .5); }, {0, 4}) == List{kInf, .25});
  CHECK(gradient([](const Tensor& x) { return K::pow(x, 0); }, {0, 3}) == List{0, 0});
  Tensor base = K::constant({0.0, -2.0, 1.0}, "float64");
  CHECK(gradient([&](const Tensor& a) { return K::pow(base, a); }, {2, 2, 2}) == List{0, 0, 0});
}

TEST_CASE("activations at their kinks", "[elementwise][gradients]") {
  CHECK(gradient([](const Tensor& x) { return K::relu(x); }, {-1, 0, 2}) == List{0, 0, 1});
  CHECK(gradient([](const Tensor& x) { return K::relu(x, .1); }, {-1, 0, 2}) == List{.1, .1, 1});
  CHECK(gradient([](const Tensor& x) { return K::relu(x, 0, 5); }, {-1, 0, 2, 5, 6}) == List{0, 0, 1, 1, 0});
  CHECK(gradient([](const Tensor& x) { return K::relu(x, 0, 6); }, {0, 6, 7}) == List{0, 1, 0});
  CHECK(gradient([](const Tensor& x) { return K::relu(x, .1, 5); }, {-1, 0, 2, 6}) == List{.1, 0, 1, 0});
  CHECK(gradient([](const Tensor& x) { return K::relu(x, .1, None, .5); }, {0, .5, 1}) == List{.1, 1, 1});
  CHECK(gradient([](const Tensor& x) { return K::elu(x, .5); }, {0, 1}) == List{.5, 1});
  CHECK(gradient([](const Tensor& x) { return K::elu(x); }, {0, 1, 1000}) == List{1, 1, 1});
  // TensorFlow's curvature: that of the exponential below 0 alone.
  CHECK(gradient([](const Tensor& x) { return K::gradients(K::elu(x, .5), {x})[0]; }, {-1, 0, 1}) ==
        List{.5 * std::exp(-1.0), 0, 0});
  CHECK(gradient([](const Tensor& x) { return K::gradients(K::elu(x), {x})[0]; }, {-0.0, 0, kInf}) == List{0, 0, 0});
  CHECK(gradient([](const Tensor& x) { return K::hard_sigmoid(x); }, {-2.6, -2.5, 0, 2.5, 2.6}) ==
        List{0, .2, .2, .2, 0});
}

TEST_CASE("round, comparisons and casts to integers cut the path, sign gives zeros", "[elementwise][gradients]") {
  CHECK_FALSE(has_gradient([](const Tensor& x) { return K::round(x); }));
  CHECK_FALSE(has_gradient([](const Tensor& x) { return K::cast(K::greater(x, 1.0), "float64"); }));
  CHECK_FALSE(has_gradient([](const Tensor& x) { return K::cast(K::cast(x, "int32"), "float64"); }));
  CHECK(gradient([](const Tensor& x) { return K::sign(x); }, {-1, 0, kInf}) == List{0, 0, 0});
  CHECK(gradient([](const Tensor& x) { return K::cast(K::cast(x, "float32"), "float64") * 3.0; }, {1, 2}) ==
        List{3, 3});
}
