// tests/nn_backend/losses_test.cpp - softmax, cross-entropies, in_top_k and l2_normalize.
#include <kassette/backend.h>

#include <cmath>
#include <limits>
#include <vector>

#include "ops/engine/expr.h"
#include "tests/catch.h"
#include "tests/ops/levels.h"
#include "tests/results.h"
#include "tests/worst.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::devices;
using namespace kassette::ops;
using namespace kassette::test;

namespace {

using List = std::vector<double>;

void check_close(const Tensor& x, const List& expected, double tolerance = 1e-7) {
  test::check_close(values(x), expected, tolerance);
}
Tensor wide(const Operand& x) { return K::constant(x, "float64"); }

List waves(std::int64_t n, double size = 3) {
  List v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = size * std::sin(1.7 * static_cast<double>(i) + 0.3);
  return v;
}

/// Softmax by plain loops in double over (outer, n, inner).
List slow_softmax(const List& x, std::size_t outer, std::size_t n, std::size_t inner) {
  List y(x.size());
  for (std::size_t o = 0; o < outer; ++o)
    for (std::size_t i = 0; i < inner; ++i) {
      double s = 0;
      for (std::size_t k = 0; k < n; ++k) s += std::exp(x[(o * n + k) * inner + i]);
      for (std::size_t k = 0; k < n; ++k) y[(o * n + k) * inner + i] = std::exp(x[(o * n + k) * inner + i]) / s;
    }
  return y;
}

}  // namespace

TEST_CASE("binary_crossentropy of infinite logits is the limit, 0 or infinite", "[losses][zeros]") {
  const double inf = std::numeric_limits<double>::infinity();
  const List target{1, 0, 0, 1, .5, .5}, logits{inf, -inf, inf, -inf, inf, -inf};
  at_every_level([&](Level) {
    for (const char* dtype : {"float32", "float64", "float16", "bfloat16"}) {
      const Tensor t = K::constant(target, dtype);
      Tensor z = K::variable(K::constant(logits, dtype), dtype);
      const Tensor loss = K::binary_crossentropy(t, z, true);
      CHECK(values(loss) == List{0, 0, inf, inf, inf, inf});
      CHECK(values(K::gradients(loss, {z})[0]) == List{0, 0, 1, -1, .5, -.5});
      const double nan = std::numeric_limits<double>::quiet_NaN();
      for (double own : {0., 1.})
        CHECK(std::isnan(number(K::binary_crossentropy(K::constant({own}, dtype), K::constant({nan}, dtype), true))));
    }
  });
}

TEST_CASE("softmax and logsumexp of 1, 2, 3", "[softmax]") {
  check_close(K::softmax(wide({1, 2, 3})), {.09003057, .24472847, .66524096}, 1e-7);
  check_close(K::logsumexp(wide({1, 2, 3})), {3.40760596});
  check_close(K::softmax(K::constant({1, 2, 3})), {.09003057, .24472847, .66524096}, 1e-6);
  check_close(ops::log_softmax(wide({1, 2, 3})), {-2.40760596, -1.40760596, -.40760596});
}

TEST_CASE("softmax along any axis of any size agrees with plain loops", "[softmax]") {
  for (Shape s :
       {Shape{7}, Shape{4, 10}, Shape{20, 37}, Shape{3, 100}, Shape{4, 5, 3}, Shape{2, 5, 40}, Shape{2, 33, 70}})
    for (int axis = -s.rank(); axis < s.rank(); ++axis) {
      std::size_t outer = 1, n = 1, inner = 1;
      for (int i = 0; i < s.rank(); ++i) {
        int a = axis < 0 ? axis + s.rank() : axis;
        (i < a ? outer : i == a ? n : inner) *= static_cast<std::size_t>(std::int64_t(s[i]));
      }
      INFO(s << " axis " << axis);
      List x = waves(s.numel());
      List expected = slow_softmax(x, outer, n, inner), logs = expected;
      for (double& l : logs) l = std::log(l);
      check_close(K::softmax(K::constant(x, "float64", s), axis), expected, 1e-12);
      check_close(K::softmax(K::constant(x, "float32", s), axis), expected, 1e-6);
      check_close(K::softmax(K::constant(x, "float16", s), axis), expected, 4e-3);
      check_close(ops::log_softmax(K::constant(x, "float64", s), axis), logs, 1e-12);
    }
}

TEST_CASE("softmax and logsumexp do not overflow", "[softmax]") {
  const double inf = std::numeric_limits<double>::infinity();
  check_close(K::softmax(wide({1000, 1000, -1000})), {.5, .5, 0});
  CHECK(K::logsumexp(K::constant({1e4, 1e-4})).item<float>() == 1e4f);
  CHECK(values(K::logsumexp(wide({-inf, -inf})))[0] == -inf);
  CHECK(values(K::logsumexp(wide({1, inf})))[0] == inf);
  CHECK(values(K::logsumexp(wide({-inf, 2})))[0] == 2);
  CHECK(values(K::logsumexp(K::constant(List{}, "float64", {0})))[0] == -inf);
  CHECK(values(K::logsumexp(wide({{1, 2, 3}, {4, 5, 6}}), {0, 1}, true)).size() == 1);
  check_close(K::logsumexp(wide({{1, 2, 3}, {4, 5, 6}}), 0), {4.04858735, 5.04858735, 6.04858735});
  check_close(K::logsumexp(wide({{1, 2, 3}, {4, 5, 6}})), {6.45619331});
}

TEST_CASE("softmax has the same bits for any number of threads", "[softmax]") {
  SettingsScope restore;
  for (Shape s : {Shape{3000, 10}, Shape{300, 200}, Shape{10, 30, 100}}) {
    Tensor x = K::constant(waves(s.numel()), "float32", s);
    for (int axis = 0; axis < s.rank(); ++axis) {
      set_num_threads(1);
      List one = values(K::softmax(x, axis)), lse = values(K::logsumexp(x, axis));
      set_num_threads(2);
      CHECK(values(K::softmax(x, axis)) == one);
      CHECK(values(K::logsumexp(x, axis)) == lse);
    }
  }
}

TEST_CASE("softmax agrees over CPU levels to 4 ulp", "[softmax]") {
  SettingsScope restore;
  Tensor x = K::constant(waves(40 * 37), "float32", {40, 37});
  List reference = slow_softmax(values(x), 40, 37, 1);
  for (Level level : kLevels)
    if (set_cpu_level(level)) check_close(K::softmax(x), reference, 4 * 1.2e-7);
}

TEST_CASE("softmax rejects invalid axes and dtypes", "[softmax]") {
  CHECK_THROWS_WITH(K::softmax(wide(1.0)), "softmax: axis -1 is out of range for () of rank 0");
  CHECK_THROWS_WITH(K::softmax(wide({1, 2}), 1), "softmax: axis 1 is out of range for (2,) of rank 1");
  CHECK_THROWS_AS(K::softmax(K::constant({1, 2}, "int32")), TypeError);
  CHECK_THROWS_AS(K::logsumexp(K::constant({1, 2}, "int32")), TypeError);
  CHECK(K::softmax(K::constant(List{}, "float32", {0, 3})).shape() == Shape{0, 3});
  CHECK(K::softmax(K::constant(List{}, "float32", {3, 0})).shape() == Shape{3, 0});
}

TEST_CASE("categorical cross-entropy of small vectors, probabilities and logits", "[losses]") {
  check_close(K::categorical_crossentropy(wide({0, 1, 0}), wide({.4, .1, .5})), {2.30258509});
  check_close(K::categorical_crossentropy(wide({1, 0, 0}), wide({2, 1, 1})), {.69314718});
  check_close(K::categorical_crossentropy(wide({0, 0, 1}), wide({1, 2, 3}), true), {.40760596});
  check_close(K::categorical_crossentropy(wide({{.4, .6}, {.1, .9}}), wide({{1, 0}, {0, 1}})),
              {.6 * 16.118095651, .1 * 16.118095651}, 1e-6);
  Tensor t = wide({{0, 0, 1}, {1, 0, 0}}), z = wide({{1, 2, 3}, {4, 5, 6}});
  check_close(K::categorical_crossentropy(t, z, true), {.40760596, 2.40760596});
  check_close(K::categorical_crossentropy(K::transpose(t), K::transpose(z), true, 0), {.40760596, 2.40760596});
  check_close(K::categorical_crossentropy(K::transpose(t), K::softmax(K::transpose(z), 0), false, 0),
              {.40760596, 2.40760596});
  check_close(K::categorical_crossentropy(K::cast(t, "float16"), K::cast(z, "float16"), true), {.40760596, 2.40760596},
              1e-3);
}

TEST_CASE("sparse categorical cross-entropy of small vectors, probabilities and logits", "[losses]") {
  check_close(K::sparse_categorical_crossentropy(K::constant({0}, "int32"), wide({{0, .3, .7}})), {16.1180958}, 1e-6);
  check_close(K::sparse_categorical_crossentropy(K::constant({1}, "int32"), wide({{0, .3, .7}})), {1.2039729}, 1e-6);
  check_close(K::sparse_categorical_crossentropy({0.0}, wide({{.2, .2}})), {.69314718});
  Tensor z = wide({{1, 2, 3}, {4, 5, 6}});
  Tensor column = K::sparse_categorical_crossentropy(K::constant({{2}, {0}}, "int64"), z, true);
  CHECK(column.shape() == Shape{2});
  check_close(column, {.40760596, 2.40760596});
  Tensor deep = K::constant(waves(24), "float64", {2, 3, 4});
  Tensor ids = K::constant({{0, 1, 2}, {3, 0, 1}}, "int32");
  List expected = values(K::sparse_categorical_crossentropy(ids, deep, true));
  Tensor restored = K::sparse_categorical_crossentropy(K::expand_dims(ids, -1), deep, true);
  CHECK(restored.shape() == Shape{2, 3});
  CHECK(values(restored) == expected);
  CHECK(values(K::sparse_categorical_crossentropy(ids, K::permute_dimensions(deep, {0, 2, 1}), true, 1)) == expected);
}

TEST_CASE("binary cross-entropy of small vectors, probabilities and logits", "[losses]") {
  check_close(K::binary_crossentropy(wide({1, 0, .4, 1, 0}), wide({.6, .6, .3, 0, 1})),
              {.51082562, .91629073, .69559409, 16.118096, 16.118096}, 1e-6);
  check_close(K::binary_crossentropy(wide({1, 0, 1, .3}), wide({0, 2, -2, 1}), true),
              {.69314718, 2.12692801, 2.12692801, 1.01326169});
  check_close(K::binary_crossentropy(K::constant({1.0, 0.0}, "float16"), K::constant({0.0, .6}, "float16")),
              {16.118, .9163}, 2e-3);
  CHECK(K::binary_crossentropy(wide({1}), wide({800}), true).item<double>() == 0);
}

TEST_CASE("losses of what does not fit", "[losses]") {
  Tensor a = wide({{1, 2, 3}, {4, 5, 6}}), b = wide({1, 2, 3});
  CHECK_THROWS_WITH(K::categorical_crossentropy(b, a, true),
                    "categorical_crossentropy: target has shape (3,), output (2, 3); they must be equal");
  CHECK_THROWS_WITH(K::categorical_crossentropy(b, a),
                    "categorical_crossentropy: target has shape (3,), output (2, 3); they must be equal");
  CHECK_THROWS_WITH(K::categorical_crossentropy(a, a, false, 2),
                    "categorical_crossentropy: axis 2 is out of range for (2, 3) of rank 2");
  CHECK_THROWS_WITH(K::binary_crossentropy(b, a),
                    "binary_crossentropy: target has shape (3,), output (2, 3); they must be equal");
  CHECK_THROWS_WITH(
      K::sparse_categorical_crossentropy({0, 3}, a, true),
      "sparse_categorical_crossentropy: target holds class 3 at position 1, which is out of range for 3 classes");
  CHECK_THROWS_AS(K::sparse_categorical_crossentropy({0, -1}, a, true), ValueError);
  CHECK_THROWS_AS(K::sparse_categorical_crossentropy({0, 1, 2}, a, true), ValueError);
  CHECK_THROWS_AS(K::sparse_categorical_crossentropy({{0, 1, 2}}, a, true), ValueError);
  CHECK_THROWS_AS(K::categorical_crossentropy(a, K::constant({1, 2}, "int32")), TypeError);
  for (bool from_logits : {false, true})
    CHECK_THROWS_WITH(K::binary_crossentropy(a, K::cast(a, "float32"), from_logits),
                      "binary_crossentropy: float64 and float32; cast one of them (K::cast), tensors are not promoted");
}

TEST_CASE("losses hold shapes that only a replay knows to each other", "[losses]") {
  Tensor t = K::placeholder({None, 3}), o = K::placeholder({None, None}), any = K::placeholder();
  Tensor loss = K::categorical_crossentropy(t, o);
  auto f = K::function({t, o}, {loss});
  CHECK(f({K::ones({2, 3}), K::ones({2, 3})})[0].shape() == Shape{2});
  CHECK_THROWS_WITH(f({K::ones({1, 3}), K::ones({1, 1})}),
                    "categorical_crossentropy: target has shape (1, 3), output (1, 1); they must be equal");
  CHECK_THROWS_AS(f({K::ones({1, 3}), K::ones({2, 3})}), ValueError);
  auto of_any = K::function({any, o}, {K::categorical_crossentropy(any, o)});
  CHECK_THROWS_WITH(of_any({K::ones({3}), K::ones({2, 3})}),
                    "categorical_crossentropy: target has shape (3,), output (2, 3); they must be equal");
  Tensor b = K::binary_crossentropy(t, o);
  CHECK_THROWS_WITH(K::function({t, o}, {b})({K::ones({1, 3}), K::ones({1, 1})}),
                    "binary_crossentropy: target has shape (1, 3), output (1, 1); they must be equal");
  CHECK(K::categorical_crossentropy(K::placeholder({None, None, 4}), K::placeholder({None, 5, None})).shape() ==
        Shape{-1, 5});
}

TEST_CASE("class ids of unknown rank are held to the output when they are there", "[losses]") {
  Tensor ids = K::placeholder(None, None, "int32"), z = K::placeholder({None, None, 3});
  auto f = K::function({ids, z}, {K::sparse_categorical_crossentropy(ids, z, true)});
  Tensor scores = K::ones({2, 4, 3});
  for (const Shape& shape : {Shape{2, 4}, Shape{2, 4, 1}, Shape{8}})
    CHECK(f({K::constant(0, "int32", shape), scores})[0].shape() == Shape{2, 4});
  CHECK_THROWS_WITH(
      f({K::constant(0, "int32", {4, 2}), scores}),
      "sparse_categorical_crossentropy: target has shape (4, 2); it must be that of output without its classes, (2, 4)");
  CHECK_THROWS_AS(f({K::constant(0, "int32", {7}), scores}), ValueError);
}

TEST_CASE("a class id of NaN is no class", "[losses]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Tensor z = K::constant({{1, 2}, {3, 4}}), ids = K::constant({1.0, nan}), in = K::placeholder({None});
  CHECK_THROWS_WITH(
      K::sparse_categorical_crossentropy(ids, z),
      "sparse_categorical_crossentropy: target holds class -1 at position 1, which is out of range for 2 classes");
  CHECK_THROWS_AS(K::function({in}, {K::sparse_categorical_crossentropy(in, z, true)})({ids}), ValueError);
  check_close(K::sparse_categorical_crossentropy(K::constant({1.0, 0.9}), z, true), {.31326169, 1.31326169}, 1e-6);
}

TEST_CASE("losses take the epsilon of the moment", "[losses]") {
  List low;
  {
    SettingsScope restore;
    K::set_epsilon(0.25);
    low = values(K::categorical_crossentropy(wide({1, 0}), wide({0, 1})));
  }
  CHECK(low == List{-std::log(.25)});
  check_close(K::categorical_crossentropy(wide({1, 0}), wide({0, 1})), {16.11809565}, 1e-7);
}

TEST_CASE("NaN in targets or predictions comes through every loss", "[losses]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (bool from_logits : {false, true}) {
    auto isnan = [](const Tensor& x) {
      List v = values(x);
      for (double& e : v) e = std::isnan(e);
      return v;
    };
    CHECK(isnan(K::categorical_crossentropy(wide({{nan, 1}, {0, 1}, {0, 1}}), wide({{.5, .5}, {nan, .5}, {.5, .5}}),
                                            from_logits)) == List{1, 1, 0});
    CHECK(isnan(K::sparse_categorical_crossentropy({0, 1, 1}, wide({{nan, .5}, {nan, .5}, {.5, .5}}), from_logits)) ==
          List{1, 1, 0});
    CHECK(isnan(K::binary_crossentropy(wide({nan, 1, 1}), wide({.5, nan, .5}), from_logits)) == List{1, 1, 0});
  }
}

TEST_CASE("losses of half types are those of float32, rounded once", "[losses]") {
  Tensor ids = K::constant({1, 2}, "int32");
  for (const char* half : {"float16", "bfloat16"}) {
    Tensor t = K::constant({{0, 1, 0}, {.25, .25, .5}}, std::string(half)),
           o = K::constant({{0, 1, 0}, {.25, 0, .75}}, std::string(half));
    Tensor wide_t = K::cast(t, "float32"), wide_o = K::cast(o, "float32");
    for (bool from_logits : {false, true}) {
      auto rounded = [&](const Tensor& loss) { return values(K::cast(loss, std::string(half))); };
      CHECK(values(K::categorical_crossentropy(t, o, from_logits)) ==
            rounded(K::categorical_crossentropy(wide_t, wide_o, from_logits)));
      CHECK(values(K::sparse_categorical_crossentropy(ids, o, from_logits)) ==
            rounded(K::sparse_categorical_crossentropy(ids, wide_o, from_logits)));
      CHECK(values(K::binary_crossentropy(t, o, from_logits)) ==
            rounded(K::binary_crossentropy(wide_t, wide_o, from_logits)));
    }
    CHECK(K::categorical_crossentropy(t, o).dtype() == DType(std::string(half)));
  }
}

TEST_CASE("in_top_k counts ties in and refuses rows that are not finite", "[losses]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Tensor p = K::constant({{.1, .5, .5, .2}, {.1, .5, .5, .2}, {.1, .5, .5, .2}, {.1, .5, .5, .2}});
  auto top = [&](int k) { return values(K::in_top_k(p, {0, 1, 2, 3}, k)); };
  CHECK(top(0) == List{0, 0, 0, 0});
  CHECK(top(1) == List{0, 1, 1, 0});
  CHECK(top(2) == List{0, 1, 1, 0});
  CHECK(top(3) == List{0, 1, 1, 1});
  CHECK(top(4) == List{1, 1, 1, 1});
  CHECK(values(K::in_top_k(p, {4, -1, 0, 0}, 9)) == List{0, 0, 1, 1});
  CHECK(values(K::in_top_k(K::constant({{nan, 1.0}}), {1}, 2)) == List{0});
  CHECK(K::in_top_k(p, {0, 1, 2, 3}, 1).dtype() == bool_);
}

TEST_CASE("l2_normalize makes lengths 1, and divides what is shorter than 1e-6 by 1e-6", "[losses]") {
  check_close(K::l2_normalize(wide({3, 4})), {.6, .8});
  check_close(K::l2_normalize(wide({0, 0})), {0, 0});
  check_close(K::l2_normalize(wide({1e-7})), {.1});
  check_close(K::l2_normalize(wide({{3, 4}, {0, 2}}), 1), {.6, .8, 0, 1});
  check_close(K::l2_normalize(K::constant({0, 0}, "float16")), {0, 0});
  CHECK_THROWS_WITH(K::l2_normalize(wide({3, 4}), 1), "l2_normalize: axis 1 is out of range for (2,) of rank 1");
}

namespace {

/// -sum(t * log(clip(p / sum(p)))) over the middle of (outer, n, inner), and its gradient with respect to p, term by
/// term.
struct Plain {
  List loss, dp;
  Plain(const List& t, const List& p, int outer, int n, int inner, double e)
      : loss(static_cast<std::size_t>(outer * inner)), dp(p.size()) {
    for (int o = 0; o < outer; ++o)
      for (int i = 0; i < inner; ++i) {
        auto at = [&](int k) { return static_cast<std::size_t>((o * n + k) * inner + i); };
        double sum = 0, inside = 0, cost = 0;
        for (int k = 0; k < n; ++k) sum += p[at(k)];
        for (int k = 0; k < n; ++k) {
          double q = p[at(k)] / sum;
          cost -= t[at(k)] * std::log(std::min(std::max(q, e), 1 - e));
          if (q >= e && q <= 1 - e) inside += t[at(k)];
        }
        loss[static_cast<std::size_t>(o * inner + i)] = cost;
        for (int k = 0; k < n; ++k) {
          double q = p[at(k)] / sum;
          dp[at(k)] = inside / sum - (q >= e && q <= 1 - e ? t[at(k)] / p[at(k)] : 0);
        }
      }
  }
};

/// Of each number beside 1 and the expected one; NaN belongs where NaN is expected, as for scores that are all 0.
double largest_gap(const List& got, const List& expected) {
  double gap = got.size() == expected.size() ? 0 : 1;
  for (std::size_t i = 0; i < expected.size() && i < got.size(); ++i)
    if (!std::isnan(expected[i]) || !std::isnan(got[i]))
      gap = worst_of(gap, std::abs(got[i] - expected[i]) / (1 + std::abs(expected[i])));
  return gap;
}

}  // namespace

TEST_CASE("categorical_crossentropy of scores along any axis is what its formula says, clipped ones too", "[losses]") {
  SettingsScope restore;
  for (DType dtype : {kassette::float64, kassette::float32})
    for (auto [outer, n, inner] : {std::array{5, 3, 1}, {7, 40, 1}, {2, 7, 3}, {1, 5, 130}, {3, 1, 2}, {70, 100, 1}})
      at_every_level([&, outer = outer, n = n, inner = inner](Level) {
        INFO(dtype << " (" << outer << ", " << n << ", " << inner << ")");
        List t, p;
        for (int i = 0; i < outer * n * inner; ++i) {
          t.push_back(i * 7 % 11 / 10.);
          p.push_back(i % 5 == 2 ? 0 : i % 17 == 3 ? 1e9 : 0.1 + i * 13 % 23);  // none, nearly all, some
        }
        Plain plain(t, p, outer, n, inner, 1e-7);
        Tensor x = K::cast(K::constant(p, "float64", {outer, n, inner}), dtype),
               y = K::cast(K::constant(t, "float64", {outer, n, inner}), dtype);
        Tensor w = K::variable(x, dtype), loss = K::categorical_crossentropy(y, w, false, 1);
        CHECK(loss.shape() == Shape{outer, inner});
        const double close = dtype == kassette::float64 ? 1e-9 : 2e-5;
        CHECK(largest_gap(values(loss), plain.loss) < close);
        CHECK(largest_gap(values(K::gradients(loss, {w})[0]), plain.dp) < close);
      });
}

namespace {

/// Numbers below epsilon, above 1 - epsilon and between.
List some_probabilities(int n) {
  List p;
  for (int i = 0; i < n; ++i)
    p.push_back(i % 5 == 2 ? 0 : i % 17 == 3 ? 1 : i % 19 == 4 ? -2 : 0.01 + i * 13 % 23 / 25.);
  return p;
}

}  // namespace

TEST_CASE("sparse_categorical_crossentropy of probabilities is what its formula says, clipped ones too", "[losses]") {
  SettingsScope restore;
  const double e = 1e-7;
  for (DType dtype : {kassette::float64, kassette::float32})
    for (auto [rows, n] : {std::array{5, 3}, {7, 40}, {3, 1}, {70, 100}, {400, 33}})
      at_every_level([&, rows = rows, n = n](Level) {
        INFO(dtype << " (" << rows << ", " << n << ")");
        List p = some_probabilities(rows * n), loss, slope, ids;
        for (int r = 0; r < rows; ++r) {
          auto q = [&](int k) { return std::min(std::max(p[static_cast<std::size_t>(r * n + k)], e), 1 - e); };
          double sum = 0;
          for (int k = 0; k < n; ++k) sum += q(k);
          int id = r * 5 % n;
          ids.push_back(id);
          loss.push_back(std::log(sum) - std::log(q(id)));
          for (int k = 0; k < n; ++k) {
            double own = p[static_cast<std::size_t>(r * n + k)];
            slope.push_back(own < e || own > 1 - e ? 0 : 1 / sum - (k == id ? 1 / own : 0));
          }
        }
        Tensor w = K::variable(K::cast(K::constant(p, "float64", {rows, n}), dtype), dtype);
        Tensor made = K::sparse_categorical_crossentropy(K::cast(K::constant(ids, "float64"), "int32"), w);
        const double close = dtype == kassette::float64 ? 1e-9 : 2e-5;
        CHECK(largest_gap(values(made), loss) < close);
        CHECK(largest_gap(values(K::gradients(made, {w})[0]), slope) < close);
      });
}

TEST_CASE("binary_crossentropy of probabilities is what its formula says, clipped ones too", "[losses]") {
  SettingsScope restore;
  const double e = 1e-7;
  for (DType dtype : {kassette::float64, kassette::float32})
    for (int n : {1, 5, 16, 47, 40000})
      at_every_level([&](Level) {
        INFO(dtype << " " << n);
        List p = some_probabilities(n), t, loss, by_p, by_t;
        for (int i = 0; i < n; ++i) {
          // In float32 the bound above is not 1 - epsilon to the digit, but 1 - p is what the loss is made of.
          double own = p[static_cast<std::size_t>(i)],
                 high = dtype == kassette::float64 ? 1 - e : static_cast<double>(static_cast<float>(1 - e));
          double q = std::min(std::max(own, e), high);
          t.push_back(i * 7 % 11 / 10.);
          loss.push_back(-t.back() * std::log(q) - (1 - t.back()) * std::log1p(-q));
          by_p.push_back(own < e || own > high ? 0 : (1 - t.back()) / (1 - q) - t.back() / q);
          by_t.push_back(std::log1p(-q) - std::log(q));
        }
        auto as = [&](const List& v) { return K::variable(K::cast(K::constant(v, "float64"), dtype), dtype); };
        Tensor w = as(p), target = as(t), made = K::binary_crossentropy(target, w);
        Tensors g = K::gradients(made, {w, target});
        const double close = dtype == kassette::float64 ? 1e-9 : 2e-5;
        CHECK(largest_gap(values(made), loss) < close);
        CHECK(largest_gap(values(g[0]), by_p) < close);
        CHECK(largest_gap(values(g[1]), by_t) < close);
      });
}

TEST_CASE("second gradients of losses of probabilities stop where these are clipped", "[losses]") {
  auto second = [](const Tensor& loss, const Tensor& w) {
    return values(K::gradients(K::sum(K::square(K::gradients(loss, {w})[0])), {w})[0]);
  };
  Tensor w = K::variable(wide({0, .25, 1}), "float64");
  // The square of -1 / q + 1 / (1 - q), targets being 1 and 0: its derivative where q is free, 0 elsewhere.
  check_close(second(K::binary_crossentropy(wide({1, 1, 1}), w), w), {0, 2 * -4 * 16, 0}, 1e-9);
  check_close(second(K::binary_crossentropy(wide({0, 0, 0}), w), w), {0, 2 / (.75 * .75 * .75), 0}, 1e-9);
  // Of log(a + 1e-7 + 1) - log(a), class a: (1 / s - 1 / a)^2.
  Tensor row = K::variable(wide({{.25, 0, 1}}), "float64");
  double s = .25 + 1e-7 + (1 - 1e-7), gap = 1 / s - 4;
  check_close(second(K::sparse_categorical_crossentropy({0}, row), row), {2 * gap * (16 - 1 / (s * s)), 0, 0}, 1e-9);
}

TEST_CASE("losses of probabilities are one op each", "[losses]") {
  Tensor w = K::variable({{0.2, 0.8}, {0.5, 0.5}}), t = K::constant({{0, 1}, {1, 0}}),
         ids = K::constant({0, 1}, "int64");
  auto nodes = [&](auto loss) {
    std::int64_t before = kassette::live_nodes();
    Tensor made = loss();
    return kassette::live_nodes() - before;
  };
  CHECK(nodes([&] { return K::categorical_crossentropy(t, w); }) == 1);
  CHECK(nodes([&] { return K::sparse_categorical_crossentropy(ids, w); }) == 1);
  CHECK(nodes([&] { return K::binary_crossentropy(t, w); }) == 1);
}
