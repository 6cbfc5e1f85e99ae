// tests/nn_backend/normalization_test.cpp - batch normalisation against plain loops in double.
#include <kassette/backend.h>
#include <kassette/testing.h>

#include <cmath>
#include <vector>

#include <kassette/runtime.h>
#include "ops/engine/op.h"
#include "tests/catch.h"
#include "tests/ops/levels.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::devices;
using namespace kassette::ops;
using kassette::testing::compare;

namespace {

using List = std::vector<double>;
using Sizes = std::vector<std::int64_t>;

List noise(std::int64_t n, double mean = 0, double size = 1) {
  List v(static_cast<std::size_t>(n));
  std::uint64_t seed = 7 + static_cast<std::uint64_t>(n);
  for (double& x : v) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    x = mean + size * (2 * static_cast<double>(seed >> 11) * 0x1p-53 - 1);
  }
  return v;
}
std::int64_t product(const Sizes& s) {
  std::int64_t n = 1;
  for (std::int64_t d : s) n *= d;
  return n;
}
Shape shape_of(const Sizes& s) { return Shape(s.data(), static_cast<int>(s.size())); }

/// The channel of each element: its index along the axes that are not reduced.
struct Channels {
  Sizes sizes;
  std::vector<std::size_t> of;
  std::size_t n = 1;
  Channels(const Sizes& shape, const std::vector<int>& axes) : of(static_cast<std::size_t>(product(shape))) {
    std::vector<bool> reduced(shape.size());
    for (int a : axes) reduced[static_cast<std::size_t>(a)] = true;
    for (std::size_t k = 0; k < shape.size(); ++k)
      if (!reduced[k]) sizes.push_back(shape[k]);
    n = static_cast<std::size_t>(product(sizes));
    for (std::size_t i = 0; i < of.size(); ++i) {
      std::size_t rest = i, stride = 1;
      for (std::size_t k = shape.size(); k-- > 0;) {
        auto d = static_cast<std::size_t>(shape[k]);
        if (!reduced[k]) {
          of[i] += rest % d * stride;
          stride *= d;
        }
        rest /= d;
      }
    }
  }
};

/// The formulas in long double, two passes.
struct Slow {
  List y, mean, var, dx, dgamma, dbeta;
  Slow(const List& x, const Channels& c, const List& gamma, const List& beta, const List& dy, double epsilon) {
    std::vector<long double> m(c.n), v(c.n), s(c.n), p(c.n);
    auto count = static_cast<long double>(x.size()) / static_cast<long double>(c.n);
    for (std::size_t i = 0; i < x.size(); ++i) m[c.of[i]] += x[i] / count;
    for (std::size_t i = 0; i < x.size(); ++i) v[c.of[i]] += (x[i] - m[c.of[i]]) * (x[i] - m[c.of[i]]) / count;
    auto h = [&](std::size_t i) { return (x[i] - m[c.of[i]]) / std::sqrt(v[c.of[i]] + epsilon); };
    for (std::size_t i = 0; i < x.size(); ++i) {
      s[c.of[i]] += dy[i];
      p[c.of[i]] += dy[i] * h(i);
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      std::size_t k = c.of[i];
      y.push_back(static_cast<double>(h(i) * gamma[k] + beta[k]));
      dx.push_back(
          static_cast<double>(gamma[k] / std::sqrt(v[k] + epsilon) * (dy[i] - s[k] / count - h(i) * p[k] / count)));
    }
    mean.assign(m.begin(), m.end());
    var.assign(v.begin(), v.end());
    dgamma.assign(p.begin(), p.end());
    dbeta.assign(s.begin(), s.end());
  }
};

/// The error of `got`, relative to the largest element, or to `most` if that is larger.
std::string off(const Tensor& got, const List& expected, double tolerance, double most = 1e-30) {
  List v = got.to_vector<double>();
  if (v.size() != expected.size()) return "another size";
  double worst = 0;
  for (std::size_t i = 0; i < v.size(); ++i) {
    worst = std::fmax(worst, std::fabs(v[i] - expected[i]));
    most = std::fmax(most, std::fabs(expected[i]));
  }
  return worst <= tolerance * most ? "" : "off by " + std::to_string(worst) + " of " + std::to_string(most);
}

struct Case {
  Sizes shape;
  std::vector<int> axes;
};
// Every way in which axes fold: rows, columns, both, repeated columns with a tail, blocks and more than one block,
// transposed.
const std::vector<Case> kCases = {{{7}, {0}},
                                  {{7}, {}},
                                  {{5, 1}, {0}},
                                  {{300, 3}, {0}},
                                  {{1037, 3}, {0}},
                                  {{3001, 64}, {0}},
                                  {{129, 200}, {0}},
                                  {{40, 1500}, {0}},
                                  {{6, 33}, {1}},
                                  {{3, 9000}, {1}},
                                  {{70001}, {0}},
                                  {{4, 3, 5}, {0, 2}},
                                  {{4, 3, 100}, {0, 2}},
                                  {{20, 3, 10}, {0, 2}},
                                  {{3, 40, 5}, {1}},
                                  {{3, 300, 2}, {1}},
                                  {{2, 30, 4, 70}, {1, 3}},
                                  {{2, 30, 4, 7}, {1, 3}},
                                  {{3, 4, 5, 6, 2}, {0, 2, 4}},
                                  {{2, 3, 2, 3, 2, 3}, {1, 3, 5}},
                                  {{2, 8, 9, 5}, {0, 1, 2}},
                                  {{2, 5, 8, 9}, {0, 2, 3}},
                                  {{2, 3, 4}, {0, 1, 2}},
                                  {{2, 3, 1, 4}, {2}}};

Tensor floats(const List& v, const Sizes& shape, DType dtype) { return K::constant(v, dtype, shape_of(shape)); }

}  // namespace

TEST_CASE("normalize_batch_in_training of small vectors; the variance is the biased one", "[normalization]") {
  auto [y, mean, var] = K::normalize_batch_in_training(K::constant({{1, 2}, {3, 6}}, "float64"), K::None, K::None, {0});
  CHECK(compare(y, K::constant({{-.99950037, -.99987502}, {.99950037, .99987502}}, "float64"), {.atol = 1e-8}));
  CHECK(compare(mean, K::constant({2, 4}, "float64")));
  CHECK(compare(var, K::constant({1, 4}, "float64")));  // biased, rank 4 too
  auto [y4, mean4, var4] =
      K::normalize_batch_in_training(K::constant({{{{1, 2}}}, {{{3, 6}}}}, "float64"), K::None, K::None, {0, 1, 2});
  CHECK(compare(var4, K::constant({1, 4}, "float64")));
}

TEST_CASE("normalize_batch_in_training and its gradient are the formulas, over any axes", "[normalization]") {
  for (const Case& c : kCases)
    for (DType dtype : {float32, float64})
      for (double center : {0.0, 30.0}) {
        Channels channels(c.shape, c.axes);
        Tensor x = K::variable(floats(noise(product(c.shape), center), c.shape, dtype), dtype);
        auto n = static_cast<std::int64_t>(channels.n);
        Tensor gamma = K::variable(floats(noise(n, 1, 0.5), channels.sizes, dtype), dtype),
               beta = K::variable(floats(noise(n, 0, 0.4), channels.sizes, dtype), dtype);
        Tensor dy = floats(noise(product(c.shape), 0.3), c.shape, dtype);
        Axes axes{};
        axes.size_ = 0;
        for (int a : c.axes) axes.axes_[axes.size_++] = a;
        auto [y, mean, var] = K::normalize_batch_in_training(x, gamma, beta, axes, 1e-2);
        Tensors g = K::gradients(K::sum(y * dy), {x, gamma, beta});
        List gs = gamma.to_vector<double>(), bs = beta.to_vector<double>();
        Slow slow(x.to_vector<double>(), channels, gs, bs, dy.to_vector<double>(), 1e-2);
        INFO(x.shape() << " without " << c.axes.size() << " axes, " << dtype << " around " << center);
        double unit = dtype == float64 ? 1e-14 : 1e-6;
        CHECK(off(y, slow.y, 10 * (1 + center) * unit) == "");
        CHECK(off(mean, slow.mean, 4 * unit) == "");
        CHECK(off(var, slow.var, 4 * (1 + center / 30) * unit) == "");
        CHECK(mean.shape() == shape_of(channels.sizes));
        CHECK(off(g[0], slow.dx, 20 * (1 + center) * unit, 1) == "");  // of one element a channel it is 0
        CHECK(off(g[1], slow.dgamma, 20 * (1 + center) * unit) == "");
        CHECK(off(g[2], slow.dbeta, 20 * unit) == "");
      }
}

TEST_CASE("the variance of numbers far from zero is that of their deviations", "[normalization]") {
  for (auto [rows, axis] : {std::pair<std::int64_t, int>{100000, 0}, {2, 1}}) {
    Sizes shape = axis == 0 ? Sizes{rows, 2} : Sizes{rows, 50000};
    List v = noise(product(shape), 1000, 0.01);
    v[0] = 5000;  // one outlier, in the rows that the shift is taken from
    Tensor x = floats(v, shape, float32);
    auto [y, mean, var] = K::normalize_batch_in_training(x, K::None, K::None, axis);
    auto [y64, mean64, var64] = K::normalize_batch_in_training(K::cast(x, float64), K::None, K::None, axis);
    CHECK(compare(var, K::cast(var64, float32), {.rtol = 1e-5, .atol = 0}));
    CHECK(compare(mean, K::cast(mean64, float32), {.rtol = 2e-7, .atol = 0}));
  }
}

TEST_CASE("a constant batch has variance 0 and is normalised to beta", "[normalization]") {
  for (double value : {0.1, -3e7, 1e-20}) {
    auto [y, mean, var] =
        K::normalize_batch_in_training(K::constant(value, "float32", {1000, 3}), K::None, K::constant({1, 2, 3}), {0});
    CHECK(compare(var, K::constant({0, 0, 0})));
    CHECK(compare(mean, K::constant(value, "float32", {3})));
    CHECK(compare(y[7], K::constant({1, 2, 3})));
  }
}

TEST_CASE("a batch of nothing has mean and variance nan, one of one element variance 0", "[normalization]") {
  auto [y, mean, var] = K::normalize_batch_in_training(K::constant(0, "float32", {0, 3}), K::None, K::None, {0});
  CHECK(y.shape() == Shape({0, 3}));
  for (float v : mean.to_vector<float>()) CHECK(std::isnan(v));
  for (float v : var.to_vector<float>()) CHECK(std::isnan(v));
  auto one = K::normalize_batch_in_training(K::constant({5.0}), K::None, K::None, {0});
  CHECK(one.normalized.item<float>() == 0);
  CHECK(one.mean.item<float>() == 5);
  CHECK(one.variance.item<float>() == 0);
}

TEST_CASE("batch normalisation has the same bits on every level and number of threads, forward and backward",
          "[normalization]") {
  test::SettingsScope restore;
  for (const Case& c : {Case{{32, 14, 14, 48}, {0, 1, 2}}, Case{{16, 20, 30, 30}, {0, 2, 3}}, Case{{4001, 3}, {0}},
                        Case{{3, 70000}, {1}}, Case{{9, 40, 700}, {1}}}) {
    Channels channels(c.shape, c.axes);
    Axes axes{};
    axes.size_ = 0;
    for (int a : c.axes) axes.axes_[axes.size_++] = a;
    Tensor x = K::variable(floats(noise(product(c.shape), 2), c.shape, float32));
    Tensor gamma = K::variable(floats(noise(static_cast<std::int64_t>(channels.n), 1), channels.sizes, float32));
    Tensors first;
    for (Level level : kLevels)
      for (int threads : {1, 2, 8}) {  // of 8 threads each has no channel of its own
        if (!set_cpu_level(level)) continue;
        set_num_threads(threads);
        auto [y, mean, var] = K::normalize_batch_in_training(x, gamma, K::None, axes);
        Tensors g = K::gradients(K::sum(K::square(y) * K::stop_gradient(x)), {x, gamma}), now{y, mean, var, g[0], g[1]};
        if (first.empty()) first = now;
        for (std::int64_t i = 0; i < now.size(); ++i) {
          List a = now[i].to_vector<double>(), b = first[i].to_vector<double>();
          INFO(x.shape() << " result " << i << " on " << level_name(level) << ", " << threads << " threads");
          CHECK(a == b);
        }
      }
  }
}

TEST_CASE(
    "large and wide batches are normalised by the formulas, in the same bits on every level and number of threads",
    "[normalization]") {
  test::SettingsScope restore;
  struct Large {
    Sizes shape;
    DType dtype;
  };
  // From 16 MiB on outputs are written past the caches; rows of no whole lines; wide ones, of whole pieces and a rest.
  for (const Large& c : {Large{{65535, 64}, float32}, Large{{65536, 64}, float32}, Large{{32771, 65}, float64},
                         Large{{1037, 320}, float32}, Large{{300, 1300}, float32}, Large{{300, 1300}, float64},
                         Large{{515, 320}, float16}}) {
    Channels channels(c.shape, {0});
    Tensor x = K::variable(floats(noise(product(c.shape), 0.5), c.shape, c.dtype), c.dtype),
           dy = floats(noise(product(c.shape), 0.3), c.shape, c.dtype);
    Tensor gamma = K::variable(floats(noise(c.shape[1], 1, 0.5), channels.sizes, c.dtype), c.dtype),
           beta = K::variable(floats(noise(c.shape[1], 0, 0.4), channels.sizes, c.dtype), c.dtype);
    Tensors first;
    for (Level level : kLevels)
      for (int threads : {1, 2, 3}) {
        if (!set_cpu_level(level)) continue;
        set_num_threads(threads);
        auto [y, mean, var] = K::normalize_batch_in_training(x, gamma, beta, {0}, 1e-2);
        Tensors g = K::gradients(K::sum(y * dy), {x, gamma, beta}),
                now{y.detach(), mean.detach(), var.detach(), g[0].detach(), g[1].detach(), g[2].detach()};
        INFO(x.shape() << " of " << c.dtype << " on " << level_name(level) << ", " << threads << " threads");
        if (first.empty()) {
          first = now;
          Slow slow(x.to_vector<double>(), channels, gamma.to_vector<double>(), beta.to_vector<double>(),
                    dy.to_vector<double>(), 1e-2);
          double unit = c.dtype == float64 ? 1e-14 : c.dtype == float32 ? 1e-6 : 0x1p-11;
          CHECK(off(y, slow.y, 10 * unit) == "");
          CHECK(off(mean, slow.mean, 4 * unit) == "");
          CHECK(off(var, slow.var, 4 * unit) == "");
          CHECK(off(g[0], slow.dx, 20 * unit) == "");
          CHECK(off(g[1], slow.dgamma, 20 * unit) == "");
          CHECK(off(g[2], slow.dbeta, 20 * unit) == "");
        }
        for (std::int64_t i = 0; i < now.size(); ++i) CHECK(compare(now[i], first[i], {.rtol = 0, .atol = 0}));
      }
  }
}

TEST_CASE("batch normalisation of float16 and bfloat16 accumulates in float32", "[normalization]") {
  for (DType dtype : {float16, bfloat16}) {
    Tensor x = K::variable(K::constant(noise(40000, 8, 2), dtype, {10000, 4}), dtype),
           exact = K::variable(K::cast(x, float64), float64);
    auto [y, mean, var] = K::normalize_batch_in_training(x, K::constant({1, 2, 0.5, 1}, dtype), K::None, {0});
    auto [y64, mean64, var64] =
        K::normalize_batch_in_training(exact, K::constant({1, 2, 0.5, 1}, "float64"), K::None, {0});
    double half_ulp = dtype == float16 ? 0x1p-11 : 0x1p-8;
    CHECK(mean.dtype() == dtype);
    CHECK(compare(mean, K::cast(mean64, dtype), {.rtol = 0, .atol = 0}));
    CHECK(compare(var, K::cast(var64, dtype), {.rtol = 2 * half_ulp, .atol = 0}));
    CHECK(compare(y, K::cast(y64, dtype), {.rtol = 2 * half_ulp, .atol = 1e-6}));
    Tensor w = K::constant(noise(40000), dtype, {10000, 4});
    Tensor g = K::gradients(K::sum(y * w), {x})[0], g64 = K::gradients(K::sum(y64 * K::cast(w, float64)), {exact})[0];
    CHECK(g.dtype() == dtype);
    CHECK(compare(g, K::cast(g64, dtype), {.rtol = 2 * half_ulp, .atol = 1e-4}));
  }
  Tensor x = K::constant({{1, 300}, {2, 200}}, "float16");
  CHECK(K::batch_normalization(x, {1.5, 250}, {0.25, 2500}, {0, 1}, {1, 2}, -1, 0.0).to_vector<float>()[3] == -1);
}

TEST_CASE("gradients pass through mean and variance, to second order, for every way to fold axes", "[normalization]") {
  for (const Case& c : {Case{{4, 3}, {0}}, Case{{2, 3, 3}, {0, 2}}, Case{{2, 3, 2}, {1}},
                        Case{{2, 2, 2, 2, 2}, {0, 2, 4}}, Case{{3, 2}, {}}}) {
    Axes axes{};
    axes.size_ = 0;
    for (int a : c.axes) axes.axes_[axes.size_++] = a;
    auto all = [&](const Tensors& in) {
      auto [y, mean, var] = K::normalize_batch_in_training(in[0], in[1], K::None, axes, 0.1);
      return Tensors{y, mean, var};
    };
    Tensors in{floats(noise(product(c.shape)), c.shape, float64), K::constant(1.3, "float64")};
    CHECK(kassette::testing::gradcheck(all, in).message == "");
    CHECK(kassette::testing::gradgradcheck(all, in).message == "");
  }
}

TEST_CASE("batch_normalization is Keras' formula for broadcastable and for rank-1 parameters, along any axis",
          "[normalization]") {
  for (const Sizes& shape : {Sizes{3, 2, 4, 5}, Sizes{3, 2, 4}, Sizes{4, 2}})
    for (int axis : {1, -1}) {
      std::size_t at = axis < 0 ? shape.size() - 1 : 1;
      std::vector<int> others;
      Sizes broad(shape.size(), 1);
      broad[at] = shape[at];
      for (std::size_t k = 0; k < shape.size(); ++k)
        if (k != at) others.push_back(static_cast<int>(k));
      Channels channels(shape, others);
      List x = noise(product(shape)), mean = noise(shape[at], 0.1, 0.3), var = noise(shape[at], 0.6, 0.4),
           beta = noise(shape[at], 2), gamma = noise(shape[at], -1), expected;
      for (std::size_t i = 0; i < x.size(); ++i) {
        std::size_t k = channels.of[i];
        expected.push_back((x[i] - mean[k]) / std::sqrt(var[k] + 1e-3) * gamma[k] + beta[k]);
      }
      for (const Sizes& of : {broad, Sizes{shape[at]}}) {
        auto p = [&](const List& v) { return floats(v, of, float64); };
        Tensor y = K::batch_normalization(floats(x, shape, float64), p(mean), p(var), p(beta), p(gamma), axis);
        CHECK(off(y, expected, 1e-14) == "");
      }
    }
}

TEST_CASE("batch_normalization takes parameters that vary along several axes", "[normalization]") {
  Tensor x = floats(noise(2 * 3 * 4 * 5), {2, 3, 4, 5}, float64), m = floats(noise(8), {2, 1, 4, 1}, float64),
         v = floats(noise(15, 2), {3, 1, 5}, float64), b = floats(noise(4), {4, 1}, float64);
  Tensor expected = (x - m) / K::sqrt(v + 1e-3) + b;
  CHECK(compare(K::batch_normalization(x, m, v, b, K::None), expected, {.rtol = 1e-13, .atol = 1e-13}));
  CHECK(
      compare(K::batch_normalization(x, 0.5, 4, K::None, 3, -1, 0), (x - 0.5) / 2 * 3, {.rtol = 1e-13, .atol = 1e-13}));
}

TEST_CASE("normalisation over all axes keeps the shape of x", "[normalization]") {
  for (const Sizes& shape : {Sizes{1, 4, 2, 3}, Sizes{1, 2, 3, 4}}) {
    Tensor x = floats(noise(24), shape, float32);
    CHECK(K::normalize_batch_in_training(x, K::None, K::None, {0, 1, 2, 3}).normalized.shape() == x.shape());
    CHECK(K::normalize_batch_in_training(x, K::None, K::None, K::None).mean.shape() == Shape({}));
  }
}

TEST_CASE("batch normalisation infers shapes, and a function of placeholders takes any batch", "[normalization]") {
  Tensor in = K::placeholder({K::None, 3}), any = K::placeholder();
  auto [y, mean, var] = K::normalize_batch_in_training(in, K::None, K::None, {0});
  CHECK(y.shape() == Shape({-1, 3}));
  CHECK(mean.shape() == Shape({3}));
  CHECK(K::normalize_batch_in_training(any, K::None, K::None, {0}).normalized.ndim() == -1);
  CHECK(K::batch_normalization(in, mean, var, K::None, K::None).shape() == Shape({-1, 3}));
  auto f = K::function({in}, {y, var, K::gradients(K::sum(y * in), {in})[0]});
  for (std::int64_t rows : {2, 1000}) {
    Tensor x = K::variable(floats(noise(3 * rows), {rows, 3}, float32));
    auto eager = K::normalize_batch_in_training(x, K::None, K::None, {0});
    Tensors out = f({x});
    CHECK(out[0].to_vector<double>().size() == static_cast<std::size_t>(3 * rows));
    CHECK(compare(out[0], eager.normalized.detach(), {.rtol = 0, .atol = 0}));
    CHECK(compare(out[1], eager.variance.detach(), {.rtol = 0, .atol = 0}));
    CHECK(compare(out[2], K::gradients(K::sum(eager.normalized * x), {x})[0].detach(), {.rtol = 0, .atol = 0}));
  }
}

TEST_CASE("batch normalisation refuses what does not fit", "[normalization]") {
  Tensor x = K::ones({4, 3});
  CHECK_THROWS_WITH(
      K::normalize_batch_in_training(x, K::ones({4}), K::None, {0}),
      "normalize_batch_in_training: gamma (4,) does not broadcast to (3,), the shape of x (4, 3) without the reduced axes");
  CHECK_THROWS_WITH(K::normalize_batch_in_training(x, K::None, K::ones({3}, "float64"), {0}),
                    "normalize_batch_in_training: x is float32, beta is float64; cast one of them (K::cast)");
  CHECK_THROWS_WITH(K::normalize_batch_in_training(x, K::None, K::None, {0, 2}),
                    "normalize_batch_in_training: reduction_axes hold 2, which is out of range for (4, 3) of rank 2");
  CHECK_THROWS_WITH(K::normalize_batch_in_training(x, K::None, K::None, {0, -2}),
                    "normalize_batch_in_training: reduction_axes hold -2 twice for (4, 3)");
  CHECK_THROWS_WITH(K::normalize_batch_in_training(K::ones({4, 3}, "int32"), K::None, K::None, {0}),
                    "normalize_batch_in_training: x is int32, not a float dtype; cast it first (K::cast)");
  CHECK_THROWS_WITH(K::batch_normalization(x, K::ones({4}), 1, K::None, K::None),
                    "batch_normalization: mean (4,) does not broadcast to (4, 3), the shape of x");
  CHECK_THROWS_WITH(K::batch_normalization(x, 0, K::ones({3}, "float64"), K::None, K::None),
                    "batch_normalization: x is float32, var is float64; cast one of them (K::cast)");
  CHECK_THROWS_WITH(K::batch_normalization(x, 0, K::None, K::None, K::None),
                    "batch_normalization: var is None; it must be a number or a tensor");
  CHECK_THROWS_WITH(K::batch_normalization(x, 0, 1, K::None, K::None, 2),
                    "batch_normalization: axis 2 is out of range for (4, 3) of rank 2");
  CHECK_THROWS_WITH(
      K::batch_normalization(K::placeholder(), K::ones({3}), 1, K::None, K::None, 1),
      "batch_normalization: the rank of x is unknown, so mean (3,) cannot be put along axis 1; declare it in the placeholder");
  // -2 is the rank of nothing: not the last axis of (3, 3), where it would go unnoticed.
  CHECK_THROWS_WITH(
      K::batch_normalization(K::placeholder(), K::ones({3}), 1, K::None, K::None, -2),
      "batch_normalization: the rank of x is unknown, so mean (3,) cannot be put along axis -2; declare it in the placeholder");
  CHECK_THROWS_WITH(
      K::batch_normalization(K::ones({2, 3, 4}), K::placeholder(K::None, K::None), 1, K::None, K::None, 1),
      "batch_normalization: the rank of mean is unknown, so mean (...) cannot be put along axis 1; declare it in the placeholder");
}

TEST_CASE("a normalised batch prints its three tensors", "[normalization]") {
  CHECK(test::printed(K::NormalizedBatch{}) ==
        "NormalizedBatch(normalized=Tensor(), mean=Tensor(), variance=Tensor())");
}
