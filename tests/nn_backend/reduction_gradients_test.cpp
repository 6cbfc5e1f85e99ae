// tests/nn_backend/reduction_gradients_test.cpp - first and second gradients of reductions, scans, softmax and losses
// against central differences in float64, and at ties, zeros and infinities.
#include <kassette/backend.h>
#include <kassette/runtime.h>

#include <cmath>
#include <functional>
#include <limits>
#include <tuple>
#include <vector>

#include "ops/engine/expr.h"
#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::ops;
using namespace kassette::test;

namespace {

using List = std::vector<double>;
using Function1 = std::function<Tensor(const Tensor&)>;

Tensor weights(const Tensor& like, double phase) {
  List w(static_cast<std::size_t>(like.size()));
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = 0.5 + std::cos(phase + 2.3 * static_cast<double>(i));
  return K::constant(w, "float64", like.shape());
}
Tensor weighed(const Tensor& y, double phase) { return K::sum(y * weights(y, phase)); }

/// The gradient of y at x: zeros where y does not depend on x, as third derivatives may not.
Tensor gradient_of(const Tensor& y, const Tensor& x) {
  Tensor g = K::gradients(y, {x})[0];
  return g.defined() ? g : x * 0.0;
}

/// First, second and third order of f, weighed so that no symmetry hides an error.
void check_orders(const char* name, const Function1& f, const List& x, const Shape& shape, int orders = 3) {
  Function1 g = [&](const Tensor& t) { return weighed(f(t), 0.4); };
  for (int order = 1; order <= orders; ++order) {
    INFO(name << " order " << order);
    Tensor v = K::variable(K::constant(x, "float64", shape), "float64");
    auto at = [&](const List& moved) {
      return g(K::variable(K::constant(moved, "float64", shape), "float64")).item<double>();
    };
    check_close(values(gradient_of(g(v), v)), differences(at, x), 1e-5, 1e-6);
    g = [g, order](const Tensor& t) { return weighed(gradient_of(g(t), t), order); };
  }
}

List spread_out(std::size_t n) {
  List v(n);
  for (std::size_t i = 0; i < n; ++i)
    v[i] = 1.3 * std::sin(1.7 * static_cast<double>(i) + 0.3) + 0.05 * static_cast<double>(i);
  return v;
}

Tensor gradient(const Function1& f, const Operand& x) {
  Tensor v = K::variable(x, "float64");
  return K::gradients(f(v), {v})[0];
}

/// Printed by TensorFlow 2.15.1 for these numbers, rows and cotangents.
void check_extremes_of_nan(Device device) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto same = [](const Tensor& gradient, const List& want) {
    const List got = values(K::cast(gradient, "float64"));
    REQUIRE(got.size() == want.size());
    for (std::size_t i = 0; i < got.size(); ++i) CHECK((std::isnan(want[i]) ? std::isnan(got[i]) : got[i] == want[i]));
  };
  DeviceScope scope(device);
  for (auto dtype : {float16, bfloat16, float32, float64}) {
    INFO(device << ' ' << dtype);
    Tensor x = K::variable(K::constant({1., nan, 3., 2., 5., 5., 4., 4., 1.}, dtype, {3, 3}), dtype);
    Tensor weights = K::constant({1, 1, 0}, dtype);
    same(K::gradients(K::sum(K::max(x, 1) * weights), {x})[0], {nan, nan, nan, 0, .5, .5, 0, 0, 0});
    same(K::gradients(K::sum(K::min(x, 1) * weights), {x})[0], {nan, nan, nan, 1, 0, 0, 0, 0, 0});
    same(K::gradients(K::max(x), {x})[0], List(9, nan));
    same(K::gradients(K::min(x), {x})[0], List(9, nan));
  }
}

/// By algebra: in a mean of n numbers each gets the cotangent / n, and a NaN, which is not counted, gets 0.
void check_gradient_of_nanmean(Device device) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  DeviceScope scope(device);
  for (auto dtype : {float16, bfloat16, float32, float64}) {
    INFO(device << ' ' << dtype);
    Tensor x = K::variable(K::constant({1., nan, 3., nan, nan, nan, 5., 4., nan}, dtype, {3, 3}), dtype);
    Tensor y = K::nanmean(x, -1);
    CHECK(values(K::sum(K::cast(K::not_equal(y, y), "int32"))) == List{1});
    CHECK(values(K::gradients(K::sum(y * K::constant({4, 8, 16}, dtype)), {x})[0]) == List{2, 0, 2, 0, 0, 0, 8, 8, 0});
    // Of the square of a mean m of n: d2/dx2 summed over the row is 2 m' = 2 / n for each of its numbers.
    Tensor slope = K::gradients(K::sum(K::square(y)), {x})[0];
    CHECK(values(slope(0)) == List{2, 0, 2});
    CHECK(values(K::gradients(K::sum(slope(0)), {x})[0]) == List{1, 0, 1, 0, 0, 0, 0, 0, 0});
  }
}

}  // namespace

TEST_CASE("reductions have gradients of every order over every kind of axes", "[reduce_grad]") {
  const Shape shape{2, 3, 2};
  const List x = spread_out(12);
  struct Case {
    const char* name;
    Tensor (*f)(const Operand&, const Axes&, bool);
  };
  const Case cases[] = {{"sum", K::sum},        {"mean", K::mean}, {"prod", K::prod}, {"max", K::max},
                        {"min", K::min},        {"var", K::var},   {"std", K::std},   {"logsumexp", K::logsumexp},
                        {"nanmean", K::nanmean}};
  for (const Case& c : cases) {
    check_orders(
        c.name, [&](const Tensor& t) { return c.f(t, None, false); }, x, shape);
    check_orders(
        c.name,
        [&](const Tensor& t) {
          return c.f(t, {0, 2}, false);
        },
        x, shape);
    check_orders(
        c.name, [&](const Tensor& t) { return c.f(t, 1, true); }, x, shape);
    check_orders(
        c.name, [&](const Tensor& t) { return c.f(t * t, -1, false); }, x, shape, 2);
  }
}

TEST_CASE("products with zeros have gradients of every order", "[reduce_grad]") {
  for (const List& x : {List{0, 2, 3, 1.5}, List{0, 2, 0, 1.5}, List{0, 0, 0, 1.5}}) {
    check_orders("prod", [](const Tensor& t) { return K::prod(t); }, x, {4});
    check_orders("cumprod", [](const Tensor& t) { return K::cumprod(t); }, x, {4});
    check_orders("cumprod", [](const Tensor& t) { return K::cumprod(t, 1); }, x, {2, 2});
  }
}

TEST_CASE("a product of halves that does not overflow has a gradient that does not", "[reduce_grad]") {
  // 300 * 300 is beyond float16, 300 * 300 * 0.01 is not.
  Tensor x = K::variable({300, 300, 0.0009765625, 0.015625}, "float16");
  const List want{300 * 0.0009765625 * 0.015625, 300 * 0.0009765625 * 0.015625, 300 * 300 * 0.015625,
                  300 * 300 * 0.0009765625};
  for (const Tensor& y : {K::prod(x), K::cumprod(x)[3]}) {
    List got = values(K::gradients(y, {x})[0]);
    for (std::size_t i = 0; i < 4; ++i) CHECK(got[i] == Approx(want[i]).epsilon(1e-3));
  }
}

TEST_CASE("scans have gradients of every order", "[reduce_grad]") {
  const List x = spread_out(12);
  for (int axis : {0, 1, -1}) {
    check_orders("cumsum", [&](const Tensor& t) { return K::cumsum(t * t, axis); }, x, {2, 3, 2});
    check_orders("cumprod", [&](const Tensor& t) { return K::cumprod(t, axis); }, x, {2, 3, 2});
  }
}

TEST_CASE("softmax and its losses have gradients of every order", "[reduce_grad]") {
  const List x = spread_out(12);
  const Shape shape{2, 3, 2};
  Tensor w = K::constant(List{.2, .3, .5, .1, .9, .4, .7, .3, .2, .2, .6, .8}, "float64", shape);
  Tensor ids = K::constant({{0, 1, 1}, {1, 0, 0}}, "int64");
  for (int axis : {0, 1, 2}) {
    check_orders(
        "softmax", [&](const Tensor& t) { return K::softmax(t, axis); }, x, shape);
    check_orders(
        "log_softmax", [&](const Tensor& t) { return ops::log_softmax(t, axis); }, x, shape);
    check_orders(
        "categorical to logits", [&](const Tensor& t) { return K::categorical_crossentropy(w, t, true, axis); }, x,
        shape);
    check_orders(
        "categorical to target", [&](const Tensor& t) { return K::categorical_crossentropy(t * t, w, true, axis); }, x,
        shape);
    check_orders(
        "categorical to both",
        [&](const Tensor& t) { return K::categorical_crossentropy(K::sigmoid(t), t, true, axis); }, x, shape);
    check_orders(
        "categorical", [&](const Tensor& t) { return K::categorical_crossentropy(w, K::sigmoid(t), false, axis); }, x,
        shape, 2);
  }
  check_orders(
      "sparse", [&](const Tensor& t) { return K::sparse_categorical_crossentropy(ids, t, true); }, x, shape);
  check_orders(
      "sparse", [&](const Tensor& t) { return K::sparse_categorical_crossentropy(ids, K::sigmoid(t)); }, x, shape, 2);
  check_orders(
      "binary to logits", [&](const Tensor& t) { return K::binary_crossentropy(w, t, true); }, x, shape);
  check_orders(
      "binary to target", [&](const Tensor& t) { return K::binary_crossentropy(t * t, w * t, true); }, x, shape);
  check_orders(
      "binary", [&](const Tensor& t) { return K::binary_crossentropy(w, K::sigmoid(t)); }, x, shape, 2);
  check_orders(
      "pick", [&](const Tensor& t) { return ops::take_along_axis(t * t, ids); }, x, shape);
  check_orders(
      "l2_normalize", [&](const Tensor& t) { return K::l2_normalize(t, 1); }, x, shape, 2);
}

TEST_CASE("gradients of reductions and losses at ties, zeros and infinities", "[reduce_grad]") {
  auto max = [](const Tensor& t) { return K::max(t); };
  CHECK(values(gradient(max, {1, 3, 3})) == List{0, .5, .5});
  CHECK(values(gradient([](const Tensor& t) { return K::prod(t); }, {0, 2, 3})) == List{6, 0, 0});
  CHECK(values(gradient([](const Tensor& t) { return K::cumsum(t); }, {5, 6, 7})) == List{3, 2, 1});
  CHECK(values(gradient([](const Tensor& t) { return K::cumprod(t); }, {2, 3, 4})) == List{16, 10, 6});
  check_close(values(gradient(
                  [](const Tensor& t) {
                    return K::categorical_crossentropy(K::constant({0, 0, 1}, "float64"), t, true);
                  },
                  {1, 2, 3})),
              {.09003057, .24472847, -.33475904}, 1e-5, 1e-6);
  CHECK(values(gradient([](const Tensor& t) { return K::binary_crossentropy(K::constant({1}, "float64"), t, true); },
                        {0})) == List{-.5});
  CHECK(values(gradient([](const Tensor& t) { return K::std(t); }, {2, 2, 2})) == List{0, 0, 0});
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(values(gradient([](const Tensor& t) { return K::logsumexp(t); }, {-inf, -inf})) == List{0, 0});
  check_close(values(gradient([](const Tensor& t) { return K::l2_normalize(t); }, {1e-8, 0.0})), {1e6, 1e6}, 1e-5,
              1e-6);
}

TEST_CASE("an extreme that is NaN has NaN as the gradient of its whole group", "[reduce_grad]") {
  check_extremes_of_nan(cpu);
}
TEST_CASE("an extreme that is NaN has that gradient on a device, too", "[reduce_grad][device]") {
  if (has_device("cuda:0")) check_extremes_of_nan("cuda:0");
}

TEST_CASE("the gradient of nanmean goes to what is not NaN", "[reduce_grad]") { check_gradient_of_nanmean(cpu); }
TEST_CASE("the gradient of nanmean goes there on a device, too", "[reduce_grad][device]") {
  if (has_device("cuda:0")) check_gradient_of_nanmean("cuda:0");
}

TEST_CASE("the gradients of var and std of halves are those of the unrounded mean", "[reduce_grad]") {
  // NumPy in float64: 2 (x - 1000.25) / 2 and that by 2 std. 1000.25 is no float16, nor is 128.5 a bfloat16.
  for (auto [dtype, low, high] : {std::tuple{kassette::float16, 1000., 1000.5}, {kassette::bfloat16, 128., 129.}}) {
    Tensor x = K::variable({low, high}, dtype);
    double half = (high - low) / 2;
    CHECK(values(K::cast(K::gradients(K::var(x), {x})[0], "float64")) == List{-half, half});
    CHECK(values(K::cast(K::gradients(K::std(x), {x})[0], "float64")) == List{-.5, .5});
  }
}

TEST_CASE("a shared bias gets its cotangent summed", "[reduce_grad]") {
  Tensor b = K::variable({1, 2, 3}, "float64"), s = K::variable(2.0, "float64");
  Tensor x = K::constant({{1, 2, 3}, {4, 5, 6}}, "float64");
  Tensors g = K::gradients(K::sum((x + b) * s), {b, s});
  CHECK(values(g[0]) == List{4, 4, 4});
  CHECK(values(g[1]) == List{33});
  CHECK(g[1].shape() == Shape{});
}

TEST_CASE("reductions of placeholders with unknown sizes and ranks", "[reduce_grad]") {
  Tensor x = K::placeholder({None, None}, None, "float64");
  Tensor y = K::sum(K::square(K::mean(x, -1, true) - K::max(x, 0)));
  auto f = K::function({x}, {y, K::gradients(y, {x})[0], K::softmax(x), K::logsumexp(x, {0, -1}), K::var(x, 0),
                             K::argmax(x), K::cumprod(x, 1), K::all(x)});
  for (std::int64_t n : {2, 5}) {
    List v = spread_out(static_cast<std::size_t>(3 * n));
    Tensor c = K::variable(K::constant(v, "float64", {static_cast<int>(n), 3}), "float64");
    Tensor z = K::sum(K::square(K::mean(c, -1, true) - K::max(c, 0)));
    Tensors out = f({c});
    CHECK(values(out[0]) == values(z));
    CHECK(values(out[1]) == values(K::gradients(z, {c})[0]));
    CHECK(values(out[2]) == values(K::softmax(c)));
    CHECK(values(out[3]) == values(K::logsumexp(c)));
    CHECK(values(out[4]) == values(K::var(c, 0)));
    CHECK(values(out[5]) == values(K::argmax(c)));
    CHECK(values(out[6]) == values(K::cumprod(c, 1)));
    CHECK(values(out[7]) == values(K::all(c)));
  }
  Tensor any = K::placeholder(None, None, "float64");
  CHECK(K::sum(any).ndim() == 0);
  CHECK(K::sum(any, -1).ndim() == -1);
  auto g = K::function({any}, {K::sum(any, -1), K::gradients(K::sum(K::prod(any, -1)), {any})[0]});
  CHECK(values(g({K::constant({{1, 2}, {3, 4}}, "float64")})[0]) == List{3, 7});
  CHECK(values(g({K::constant({{1, 2}, {3, 4}}, "float64")})[1]) == List{2, 1, 4, 3});
  CHECK_THROWS_WITH(g({K::constant(1.0, "float64")}), "sum: axis -1 is out of range for () of rank 0");
}
