// tests/nn_backend/random_test.cpp - random functions and dropout: moments, seeds, gradients, errors.
#include <kassette/backend.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/results.h"
#include "tests/settings.h"

using kassette::Tensor;
using kassette::test::values;
namespace K = kassette::backend;

namespace {

double mean_of(const std::vector<double>& v) {
  double sum = 0;
  for (double x : v) sum += x;
  return sum / static_cast<double>(v.size());
}
double deviation_of(const std::vector<double>& v) {
  double m = mean_of(v), sum = 0;
  for (double x : v) sum += (x - m) * (x - m);
  return std::sqrt(sum / static_cast<double>(v.size()));
}
double low_of(const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); }
double high_of(const std::vector<double>& v) { return *std::max_element(v.begin(), v.end()); }

}  // namespace

TEST_CASE("parameters outside their ranges are refused, as NumPy refuses them, and take no seed", "[random]") {
  K::set_random_seed(3);
  const Tensor next = K::random_normal({2});
  K::set_random_seed(3);
  CHECK_THROWS_WITH(K::random_binomial({3}, 2.0), "random_binomial: p is 2; a probability must be in [0, 1]");
  CHECK_THROWS_WITH(K::random_binomial({3}, -0.1), "random_binomial: p is -0.1; a probability must be in [0, 1]");
  CHECK_THROWS_WITH(K::random_binomial({3}, NAN), "random_binomial: p is nan; a probability must be in [0, 1]");
  CHECK_THROWS_WITH(K::random_normal({3}, 0, -1), "random_normal: stddev is -1; it must be at least 0");
  CHECK_THROWS_WITH(K::random_normal({3}, K::ones({3}), -1), "random_normal: stddev is -1; it must be at least 0");
  CHECK_THROWS_WITH(K::truncated_normal({3}, 0, -2.5), "truncated_normal: stddev is -2.5; it must be at least 0");
  CHECK_THROWS_WITH(K::random_normal_variable({3}, 0, -1),
                    "random_normal_variable: scale is -1; it must be at least 0");
  CHECK(values(K::random_normal({2})) == values(next));
  CHECK(values(K::random_normal({2}, 5, 0)) == std::vector<double>{5, 5});
}

TEST_CASE("a draw that is refused for its mean or stddev leaves the random series as it was", "[random]") {
  K::set_random_seed(3);
  const Tensor next = K::random_normal({2});
  K::set_random_seed(3);
  CHECK_THROWS_WITH(K::random_normal({2}, K::ones({3})),
                    "random_normal: mean of shape (3,) does not broadcast with samples of shape (2,)");
  CHECK_THROWS_WITH(K::truncated_normal({2}, 0, K::ones({3})),
                    "truncated_normal: stddev of shape (3,) does not broadcast with samples of shape (2,)");
  CHECK(values<float>(K::random_normal({2})) == values<float>(next));
}

TEST_CASE("set_random_seed reaches functions and recorded draws that were made before", "[random]") {
  const Tensor p = K::placeholder({40}), ones = K::ones({40}), rows = K::placeholder({K::None, 40});
  auto f = K::function({p}, {K::dropout(p, 0.5)});
  auto steps = K::function({rows}, {K::map_fn([](const Tensor& row) { return K::dropout(row, 0.5); }, rows)});
  const Tensor recorded = K::symbolic([] { return K::random_normal({40}); })();
  auto call = [&] { return values(f({ones})[0]); };
  auto loop = [&] { return values(steps({K::ones({3, 40})})[0]); };
  auto drawn = [&] { return values(recorded); };
  call(), loop(), drawn();
  K::set_random_seed(42);
  const auto a = call(), b = call(), c = loop(), d = loop(), e = drawn(), eager = values(K::random_uniform({40}));
  CHECK(a != b);
  CHECK(c != d);
  for (int i = 0; i < 2; ++i) {
    K::set_random_seed(42);
    CHECK(call() == a);
    CHECK(call() == b);
    CHECK(loop() == c);
    CHECK(loop() == d);
    CHECK(drawn() == e);
    CHECK(values(K::random_uniform({40})) == eager);
  }
  K::set_random_seed(43);
  CHECK(call() != a);
  // Whatever was made and drawn before, also in another order.
  auto g = K::function({p}, {K::dropout(p, 0.5)});
  K::set_random_seed(42);
  CHECK(values(g({ones})[0]) == a);
  CHECK(call() != a);
  CHECK(call() != b);
}

TEST_CASE("set_random_seed leaves draws with a seed of their own as they are", "[random]") {
  const Tensor p = K::placeholder({40}), ones = K::ones({40});
  auto made = [&] { return K::function({p}, {K::dropout(p, 0.5, K::None, 7)}); };
  auto f = made(), g = made();
  const auto first = values(f({ones})[0]), second = values(f({ones})[0]);
  CHECK(values(g({ones})[0]) == first);
  K::set_random_seed(3);
  CHECK(values(g({ones})[0]) == second);
}

TEST_CASE("a function that throws in its first call after set_random_seed takes no seed", "[random]") {
  const Tensor p = K::placeholder({40}), at = K::placeholder({1}, K::None, "int32"), ones = K::ones({40});
  auto f = K::function({p, at}, {K::dropout(p, 0.5), K::gather(p, at)});
  const Tensor good = K::constant({1}, "int32"), bad = K::constant({99}, "int32");
  K::set_random_seed(5);
  const auto eager = values(K::random_uniform({40}));
  K::set_random_seed(5);
  const auto masked = values(f({ones, good})[0]);
  for (int i = 0; i < 3; ++i) {
    K::set_random_seed(5);
    CHECK_THROWS_AS(f({ones, bad}), kassette::ValueError);
    CHECK(values(K::random_uniform({40})) == eager);
    K::set_random_seed(5);
    CHECK_THROWS_AS(f({ones, bad}), kassette::ValueError);
    CHECK(values(f({ones, good})[0]) == masked);
  }
}

TEST_CASE("threads may seed and call a function at once", "[random]") {
  const Tensor p = K::placeholder({40});
  auto f = K::function({p}, {K::dropout(p, 0.5)});
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        if (t == 0) K::set_random_seed(i);
        f({K::ones({40})});
      }
    });
  for (auto& t : threads) t.join();
  K::set_random_seed(1);
  const auto a = values(f({K::ones({40})})[0]);
  K::set_random_seed(1);
  CHECK(values(f({K::ones({40})})[0]) == a);
}

TEST_CASE("random functions have the moments that are asked for", "[random]") {
  K::set_random_seed(1337);
  for (auto [m, s] : {std::pair(0.0, 1.0), std::pair(-10.0, 5.0)}) {
    auto v = values(K::random_normal({200, 200}, m, s));
    CHECK(v.size() == 40000);
    CHECK(std::fabs(mean_of(v) - m) < 0.015 * s);
    CHECK(std::fabs(deviation_of(v) - s) < 0.015 * s);
  }
  auto u = values(K::random_uniform({200, 200}, -1, 1));
  CHECK(std::fabs(mean_of(u)) < 0.015);
  CHECK(high_of(u) > 0.985);
  CHECK(high_of(u) <= 1);
  CHECK(low_of(u) < -0.985);
  CHECK(low_of(u) >= -1);
  auto b = values(K::random_binomial({200, 200}, 0.5));
  CHECK(std::fabs(mean_of(b) - 0.5) < 0.015);
  CHECK(high_of(b) == 1);
  CHECK(low_of(b) == 0);
  auto t = values(K::truncated_normal({200, 200}, 0.0, 1.0));
  CHECK(std::fabs(mean_of(t)) < 0.016);
  CHECK(std::fabs(deviation_of(t) - 0.87962) < 0.015);
  CHECK(low_of(t) > -2);
  CHECK(high_of(t) < 2);
}

TEST_CASE("samples have floatx unless a dtype is given", "[random]") {
  CHECK(K::random_normal({2}).dtype() == "float32");
  CHECK(K::random_uniform({2, 3}).shape() == kassette::Shape{2, 3});
  CHECK(K::random_binomial({2}, 0.5, "int32").dtype() == "int32");
  CHECK(K::truncated_normal({2}, 0, 1, "float64").dtype() == "float64");
  CHECK(K::random_normal({2}, 0, 1, "bfloat16").dtype() == "bfloat16");
  CHECK(K::random_normal({}).shape() == kassette::Shape{});
}

TEST_CASE("a seed replays its sequence, no seed goes on", "[random]") {
  CHECK(values(K::random_normal({5}, 0, 1, K::None, 7)) == values(K::random_normal({5}, 0, 1, K::None, 7)));
  CHECK(values(K::random_normal({5}, 0, 1, K::None, 7)) != values(K::random_normal({5}, 0, 1, K::None, 8)));
  CHECK(values(K::random_normal({5}, 0, 1, K::None, -1)) == values(K::random_normal({5}, 0, 1, K::None, -1)));
  CHECK(values(K::random_uniform({5})) != values(K::random_uniform({5})));
  K::set_random_seed(3);
  auto a = values(K::random_uniform({5})), b = values(K::random_normal({5}));
  K::set_random_seed(3);
  CHECK(values(K::random_uniform({5})) == a);
  CHECK(values(K::random_normal({5})) == b);
  CHECK(values(K::random_uniform({5})) != a);
}

TEST_CASE("integer samples need integer bounds", "[random]") {
  auto v = values(K::random_uniform({1000}, 2, 5, "int32", 1));
  CHECK(low_of(v) == 2);
  CHECK(high_of(v) == 4);
  CHECK(high_of(values(K::random_uniform({1000}, 0, 256, "uint8", 1))) == 255);
  CHECK_THROWS_WITH(K::random_uniform({2}, 0, 257, "uint8"),
                    "random_uniform: maxval is 257; uint8 holds 0 to 255, and samples are below maxval");
  CHECK_THROWS_WITH(
      K::random_uniform({2}, 0.0, 1.0, "int32"),
      "random_uniform: maxval is 1 and the samples are int32; bounds must be integers, as in random_uniform(shape, 0, 10, \"int32\")");
  CHECK_THROWS_WITH(
      K::random_uniform({2}, 0, 1.5, "int32"),
      "random_uniform: maxval is 1.5 and the samples are int32; bounds must be integers, as in random_uniform(shape, 0, 10, \"int32\")");
  CHECK_THROWS_WITH(K::random_uniform({2}, 3, 3, "int64"), "random_uniform: minval 3 is not below maxval 3");
  CHECK_THROWS_WITH(K::random_uniform({2}, 0, 1, "bool"), "random_uniform: dtype is bool; it must be a float dtype");
}

TEST_CASE("bad arguments of random functions are errors in one line", "[random]") {
  CHECK_THROWS_WITH(K::random_normal({2}, 0, 1, "int32"), "random_normal: dtype is int32; it must be a float dtype");
  CHECK_THROWS_WITH(K::random_normal({2}, 0, 1, K::None, 1.5),
                    "random_normal: seed is 1.5; it must be an integer or None");
  CHECK_THROWS_AS(K::random_normal({2, -3}), kassette::ValueError);
  CHECK_THROWS_AS(K::random_normal({2, K::None}), kassette::ValueError);
  CHECK_THROWS_AS(K::random_normal(K::None), kassette::ValueError);
  CHECK_THROWS_AS(K::random_normal({1L << 40, 1L << 40}), kassette::ValueError);
  CHECK_THROWS_WITH(K::random_normal({2}, K::constant(1, "float64")),
                    "random_normal: mean is float64 and the samples are float32; cast it (K::cast) or give dtype");
  CHECK_THROWS_WITH(
      K::random_uniform({2}, Tensor()),
      "random_uniform: minval is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK_THROWS_WITH(K::random_uniform({2}, 0, INFINITY), "random_uniform: maxval is inf; it must be finite");
  CHECK_THROWS_WITH(K::random_uniform({2}, NAN, 1), "random_uniform: minval is nan; it must be finite");
  CHECK_THROWS_AS(K::random_uniform({2}, 0, 70000, "float16"), kassette::ValueError);
  CHECK_THROWS_AS(K::random_uniform({2}, 0, 1e39, "bfloat16"), kassette::ValueError);
  CHECK_THROWS_AS(K::random_uniform({2}, -1e308, 1e308, "float64"), kassette::ValueError);
  CHECK_THROWS_AS(K::random_uniform_variable({2}, 0, INFINITY), kassette::ValueError);
  CHECK_THROWS_WITH(K::random_normal({2}, K::constant({1, 2, 3})),
                    "random_normal: mean of shape (3,) does not broadcast with samples of shape (2,)");
  CHECK_THROWS_WITH(K::set_random_seed(0.5), "set_random_seed: seed is 0.5; it must be an integer");
}

TEST_CASE("a throwing call takes no seed", "[random]") {
  K::set_random_seed(3);
  auto a = values(K::random_uniform({5}));
  K::set_random_seed(3);
  CHECK_THROWS_AS(K::random_normal({2}, 0, 1, "int32"), kassette::TypeError);
  CHECK_THROWS_AS(K::dropout(K::constant({1}), 1.0), kassette::ValueError);
  CHECK_THROWS_AS(K::random_uniform({2}, 0, INFINITY), kassette::ValueError);
  CHECK(values(K::random_uniform({5})) == a);
  // Nor does one that fails when it has taken it already.
  const auto next = values(K::random_uniform({5}));
  K::set_random_seed(3);
  CHECK(values(K::random_uniform({5})) == a);
  {
    kassette::test::MemoryLimit small(1 << 16);
    for (int i = 0; i < 2; ++i) CHECK_THROWS_AS(K::random_uniform({1 << 20}), kassette::MemoryError);
  }
  CHECK(values(K::random_uniform({5})) == next);
}

TEST_CASE("mean, stddev and bounds may be tensors", "[random]") {
  Tensor mean = K::constant({{10}, {20}}), scale = K::constant({{1}, {0}});
  auto v = values(K::random_normal({2, 1000}, mean, scale));
  CHECK(std::fabs(mean_of({v.begin(), v.begin() + 1000}) - 10) < 0.2);
  CHECK(v[1500] == 20);
  auto u = values(K::random_uniform({1000}, K::constant(2), 3));
  CHECK(low_of(u) >= 2);
  CHECK(high_of(u) <= 3);
  auto b = values(K::random_binomial({2, 1000}, K::constant({{0}, {1}}), "int32"));
  CHECK(high_of({b.begin(), b.begin() + 1000}) == 0);
  CHECK(low_of({b.begin() + 1000, b.end()}) == 1);
}

TEST_CASE("gradients flow to mean, stddev and bounds", "[random]") {
  Tensor mean = K::variable(1), scale = K::variable(2);
  Tensor y = K::random_normal({4}, mean, scale, K::None, 5);
  auto z = values(K::random_normal({4}, 0, 1, K::None, 5));
  auto g = K::gradients(K::sum(y), {mean, scale});
  CHECK(g[0].item<float>() == 4);
  CHECK(g[1].item<float>() == Approx(z[0] + z[1] + z[2] + z[3]));
  Tensor low = K::variable(0), high = K::variable(1);
  auto u = values(K::random_uniform({4}, 0, 1, K::None, 5));
  g = K::gradients(K::sum(K::random_uniform({4}, low, high, K::None, 5)), {low, high});
  double sum = u[0] + u[1] + u[2] + u[3];
  CHECK(g[0].item<float>() == Approx(4 - sum));
  CHECK(g[1].item<float>() == Approx(sum));
}

TEST_CASE("random variables are drawn once", "[random]") {
  Tensor a = K::random_uniform_variable({2, 3}, 0, 1), b = K::random_normal_variable({2, 3}, 0, 1);
  CHECK(a.shape() == kassette::Shape{2, 3});
  CHECK(b.shape() == kassette::Shape{2, 3});
  CHECK(K::is_variable(a));
  CHECK(values(K::eval(a)) == values(K::eval(a)));
  CHECK(values(K::random_normal_variable({3}, 0, 1, "float64", "w", 4)) ==
        values(K::random_normal_variable({3}, 0, 1, "float64", "w", 4)));
  CHECK(K::random_normal_variable({3}, 0, 1, "float64").dtype() == "float64");
  CHECK_THROWS_AS(K::random_uniform_variable({K::None}, 0, 1), kassette::ValueError);
  auto n = values(K::random_uniform_variable({1000}, 2, 5, "int32", K::None, 1));
  CHECK(low_of(n) == 2);
  CHECK(high_of(n) == 4);
  CHECK_THROWS_AS(K::random_uniform_variable({2}, 0.5, 5, "int32"), kassette::TypeError);
}

TEST_CASE("dropout keeps the mean", "[dropout]") {
  Tensor x = K::random_uniform({100, 100});
  for (const Tensor& y : {K::dropout(x, 0.2), K::dropout(x, 0.2, {100, 100})})
    CHECK(std::fabs(mean_of(values(y)) - mean_of(values(x))) < 0.05);
  CHECK(values(K::dropout(x, 0)) == values(x));
  CHECK(values(K::dropout(x, 0.5, K::None, 3)) == values(K::dropout(x, 0.5, K::None, 3)));
  CHECK(values(K::dropout(x, 0.5)) != values(K::dropout(x, 0.5)));
}

TEST_CASE("dropout refuses what it cannot do", "[dropout]") {
  Tensor x = K::constant({{1, 2, 3}, {4, 5, 6}});
  CHECK_THROWS_WITH(K::dropout(x, -0.5), "dropout: level is -0.5; it must be at least 0 and below 1");
  CHECK_THROWS_WITH(K::dropout(x, 1), "dropout: level is 1; it must be at least 0 and below 1");
  CHECK_THROWS_WITH(K::dropout(x, NAN), "dropout: level is nan; it must be at least 0 and below 1");
  CHECK_THROWS_WITH(K::dropout(K::constant({1}, "int32"), 0.5), "dropout: x is int32; it must be a float dtype");
  CHECK_THROWS_AS(K::dropout(K::constant({true}, "bool"), 0.5), kassette::ValueError);
  CHECK_THROWS_AS(K::dropout(K::placeholder({2}, K::None, "int64"), 0.5), kassette::ValueError);
  CHECK_THROWS_WITH(K::dropout(Tensor(), 0.5),
                    "dropout: x is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK_THROWS_WITH(K::dropout(x, 0.5, {3, 3}), "dropout: noise_shape (3, 3) does not broadcast to x of shape (2, 3)");
}

TEST_CASE("dropout selects: what is dropped is 0, NaN and infinity too; level 0 gives x itself", "[dropout]") {
  Tensor x = K::concatenate({K::constant(NAN, K::None, {50}), K::constant(INFINITY, K::None, {50})}, 0);
  int zeros = 0, kept = 0;
  for (double v : values(K::dropout(x, 0.5, K::None, 3))) (v == 0 ? zeros : kept) += 1;
  CHECK(zeros > 20);
  CHECK(kept > 20);
  Tensor v = K::variable({1, NAN});
  CHECK(K::is_variable(K::dropout(v, 0)));
  // Without dropout the noise shape is not validated.
  CHECK(values(K::dropout(K::constant({1, 2}), 0, {5, 5, 5})) == std::vector<double>{1, 2});
}

TEST_CASE("dropout takes scalars, nothing, eight axes and half precision, in the dtype of x", "[dropout]") {
  CHECK(K::dropout(3.0, 0.5).shape() == kassette::Shape{});
  CHECK(K::dropout(K::zeros({0, 3}), 0.5).shape() == kassette::Shape{0, 3});
  Tensor deep = K::dropout(K::ones({1, 2, 1, 2, 1, 2, 1, 2}), 0.5, {K::None, 1, 1, 1, 1, 1, 1, 2});
  CHECK(deep.ndim() == 8);
  auto d = values(deep);
  for (std::size_t i = 2; i < d.size(); ++i) CHECK(d[i] == d[i - 2]);
  for (const char* name : {"float16", "bfloat16", "float64"}) {
    Tensor y = K::dropout(K::ones({400}, std::string(name)), 0.75, K::None, 1);
    CHECK(y.dtype() == std::string(name));
    for (double v : values(y)) CHECK((v == 0 || v == 4));
    CHECK(std::fabs(mean_of(values(y)) - 1) < 0.3);
  }
}

TEST_CASE("dropout does not look at the learning phase", "[dropout]") {
  K::LearningPhaseScope test(0);
  CHECK(low_of(values(K::dropout(K::ones({100}), 0.5))) == 0);
}

TEST_CASE("fresh samples at each evaluation have the right moments together", "[random]") {
  K::set_random_seed(5);
  Tensor u = K::symbolic([] { return K::random_normal({5}, 2.0, 3.0); })();
  std::vector<double> pooled;
  for (int i = 0; i < 2000; ++i)
    for (double v : values(K::eval(u))) pooled.push_back(v);
  CHECK(std::fabs(mean_of(pooled) - 2) < 0.1);
  CHECK(std::fabs(deviation_of(pooled) - 3) < 0.1);
}

TEST_CASE("bounds are half-open and a probability of 0 gives no ones", "[random]") {
  auto u = values(K::random_uniform({100000}, 0, 1, "float16", 1));
  CHECK(high_of(u) < 1);
  CHECK(low_of(u) >= 0);
  CHECK(high_of(values(K::random_uniform({1000}, 1, 1 + 1e-12, K::None, 1))) == 1);  // nothing lies between in float32
  CHECK(high_of(values(K::random_binomial({10000}, 0.0))) == 0);
  CHECK(low_of(values(K::random_binomial({10000}, 1.0))) == 1);
  CHECK(values(K::random_binomial({3})) == std::vector<double>{0, 0, 0});  // p is 0 unless given
  auto t = values(K::truncated_normal({10000}, 10.0, 2.0, "float64", 1));
  CHECK(low_of(t) > 6);
  CHECK(high_of(t) < 14);
  CHECK(std::fabs(deviation_of(t) - 2 * 0.8796256610) < 0.05);
}

TEST_CASE("samples stay below a bound that is a tensor, in every float dtype", "[random]") {
  for (std::string dtype : {"float16", "bfloat16", "float32", "float64"})
    for (auto [low, high] : {std::pair(10, 11), std::pair(-1, 0), std::pair(-3, -2), std::pair(0, 1)}) {
      auto u = values(K::random_uniform({100000}, K::constant(low, dtype), K::constant(high, dtype), dtype, 1));
      CHECK(low_of(u) >= low);
      CHECK(high_of(u) < high);
      CHECK(std::fabs(mean_of(u) - (low + 0.5)) < 0.02);
    }
  // Nothing lies between.
  CHECK(values(K::random_uniform({2}, K::constant(3), K::constant(3))) == std::vector<double>{3, 3});
}

TEST_CASE("between tensors lie the uniform numbers of the same seed, in the shape that all broadcast to", "[random]") {
  // low + (high - low) u, rounded to the dtype once; where that is high or above, what is a step below it.
  const auto check = [](const Tensor& y, const Tensor& u, const Tensor& low, const Tensor& high, double of_one,
                        double least) {
    const Tensor a = K::cast(low, u.dtype()), b = K::cast(high, u.dtype()),
                 placed = K::cast(a + (b - a) * u, low.dtype());
    const Tensor last = K::maximum(high - K::maximum(K::abs(high) * of_one, least), low) + placed * 0;
    const auto got = values(K::cast(y, "float64")), at = values(K::cast(placed, "float64")),
               below = values(K::cast(last, "float64"));
    const auto top = values(K::cast(high + placed * 0, "float64"));
    REQUIRE(y.shape() == placed.shape());
    int wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i)
      wrong += got[i] != (at[i] < top[i] ? at[i] : below[i]) || !(got[i] < top[i]);
    CHECK(wrong == 0);
  };
  struct Spacing {
    kassette::DType dtype;
    double of_one, least;
  };
  for (auto [dtype, of_one, least] :
       {Spacing{kassette::float16, 0x1p-10, 0x1p-14}, Spacing{kassette::bfloat16, 0x1p-7, 0x1p-126},
        Spacing{kassette::float32, 0x1p-23, 0x1p-126}, Spacing{kassette::float64, 0x1p-52, 0x1p-1022}}) {
    const kassette::DType u_dtype = dtype == kassette::float64 ? dtype : kassette::float32;
    const Tensor zero = K::constant(0, dtype), three = K::constant(3, dtype), column = K::constant({{-2}, {10}}, dtype),
                 row = K::constant({20, 11, 30}, dtype);
    INFO(dtype);
    check(K::random_uniform({1003}, zero, three, dtype, 7), K::random_uniform({1003}, 0, 1, u_dtype, 7), zero, three,
          of_one, least);
    check(K::random_uniform({2, 3}, column, row, dtype, 7), K::random_uniform({2, 3}, 0, 1, u_dtype, 7), column, row,
          of_one, least);
    check(K::random_uniform({2, 700, 3}, zero, row, dtype, 7), K::random_uniform({2, 700, 3}, 0, 1, u_dtype, 7), zero,
          row, of_one, least);
    check(K::random_uniform({3}, column, row, dtype, 7), K::random_uniform({3}, 0, 1, u_dtype, 7), column, row, of_one,
          least);
    check(K::random_uniform({}, column, three + 10, dtype, 7), K::random_uniform({}, 0, 1, u_dtype, 7), column,
          three + 10, of_one, least);
    CHECK(K::random_uniform({0, 3}, zero, row, dtype).shape() == kassette::Shape{0, 3});
  }
  Tensor x = K::placeholder({K::None, 3}), low = K::placeholder({K::None, 1}), high = K::placeholder();
  Tensor y = K::random_uniform(K::shape(x), low, high);
  CHECK(y.dtype() == kassette::float32);
  auto f = K::function({x, low, high}, {y, K::gradients(K::sum(y), {low})[0] + K::gradients(K::sum(y), {high})[0]});
  const kassette::Tensors out = f({K::ones({2, 3}), K::constant({{1}, {5}}), K::constant(9.)});
  for (double v : values(out[0][0])) CHECK((v >= 1 && v < 9));
  for (double v : values(out[0][1])) CHECK((v >= 5 && v < 9));
  CHECK_THROWS_WITH(K::random_uniform({4}, K::zeros({3}), 1),
                    "random_uniform: shapes (4,) and (3,) do not broadcast: 4 against 3");
}

TEST_CASE("integer bounds may be scalar tensors, also of sizes that only a call knows", "[random]") {
  auto v = values(K::random_uniform({1000}, K::constant(2, "int32"), 5, "int32", 1));
  CHECK(v == values(K::random_uniform({1000}, 2, 5, "int32", 1)));
  Tensor x = K::placeholder({K::None, 2});
  auto f = K::function({x}, {K::random_uniform({1000}, 0, K::shape(x)[0], "int32")});
  for (int n : {1, 3}) {
    auto rows = values(f({K::ones({n, 2})})[0]);
    CHECK(low_of(rows) == 0);
    CHECK(high_of(rows) == n - 1);
  }
  CHECK_THROWS_WITH(f({K::ones({0, 2})}), "random_uniform: minval 0 is not below maxval 0");
  CHECK_THROWS_WITH(K::random_uniform({2}, K::constant(5, "int32"), 5, "int32"),
                    "random_uniform: minval 5 is not below maxval 5");
  CHECK_THROWS_WITH(K::random_uniform({2}, K::constant({1, 2}, "int32"), 5, "int32"),
                    "random_uniform: minval has shape (2,); integer bounds must be scalars");
  CHECK_THROWS_WITH(K::random_uniform({2}, 0, K::constant(5, "int64"), "int32"),
                    "random_uniform: maxval is int64 and the samples are int32; cast it (K::cast) or give dtype");
}

TEST_CASE("a probability in half precision is the probability that there is", "[random]") {
  for (std::string dtype : {"float16", "bfloat16"}) {
    Tensor p = K::constant({{0.5}, {0.99}}, dtype);
    auto b = values(K::random_binomial({2, 1000000}, p, "float32", 1));
    CHECK(std::fabs(mean_of({b.begin(), b.begin() + 1000000}) - values(p)[0]) < 0.0015);  // three standard deviations
    CHECK(std::fabs(mean_of({b.begin() + 1000000, b.end()}) - values(p)[1]) < 0.0003);
  }
}

TEST_CASE("random functions give nothing and eight axes, and samples that are no variables", "[random]") {
  CHECK(K::random_normal({0, 3}).shape() == kassette::Shape{0, 3});
  CHECK(K::random_uniform({1, 2, 1, 2, 1, 2, 1, 2}).shape() == kassette::Shape{1, 2, 1, 2, 1, 2, 1, 2});
  CHECK(K::truncated_normal(K::constant({2, 3}, "int32")).shape() == kassette::Shape{2, 3});
  CHECK(K::random_binomial(std::vector<int>{2, 3}, 0.5, "bool").dtype() == "bool");
  for (const Tensor& t :
       {K::random_normal({2}), K::random_uniform({2}), K::random_binomial({2}), K::truncated_normal({2})})
    CHECK_FALSE(K::is_variable(t));
}

TEST_CASE("samples have no gradient for a shape or a probability, and stddev of truncated samples has one",
          "[random]") {
  Tensor p = K::variable(0.5), s = K::variable(2), m = K::variable(1);
  CHECK_FALSE(K::gradients(K::sum(K::random_binomial({4}, p)), {p})[0].defined());
  auto z = values(K::truncated_normal({4}, 0, 1, K::None, 5));
  auto g = K::gradients(K::sum(K::truncated_normal({4}, m, s, K::None, 5)), {m, s});
  CHECK(g[0].item<float>() == 4);
  CHECK(g[1].item<float>() == Approx(z[0] + z[1] + z[2] + z[3]));
}

TEST_CASE("the gradient of dropout has the mask of its value", "[dropout]") {
  Tensor x = K::variable(K::random_uniform({10, 10}, 1, 2));
  Tensor y = K::dropout(x, 0.4);
  auto v = values(y), in = values(K::eval(x));
  Tensor g = K::gradients(K::sum(y * y), {x})[0];
  auto dx = values(g);
  int wrong = 0;
  for (std::size_t i = 0; i < v.size(); ++i)
    wrong += v[i] == 0 ? dx[i] != 0 : std::fabs(dx[i] - 2 * in[i] / 0.36) > 1e-4;
  CHECK(wrong == 0);
  auto d2 = values(K::gradients(K::sum(g), {x})[0]);
  for (std::size_t i = 0; i < v.size(); ++i) wrong += v[i] == 0 ? d2[i] != 0 : std::fabs(d2[i] - 2 / 0.36) > 1e-4;
  CHECK(wrong == 0);
}

TEST_CASE("a function draws anew at each call", "[random]") {
  Tensor x = K::placeholder({K::None, 3});
  auto f = K::function({x}, {x + K::random_normal({K::shape(x)[0], 3}), K::random_uniform({2})});
  auto a = f({K::constant({{0, 0, 0}})}), b = f({K::constant({{0, 0, 0}})}), c = f({K::zeros({4, 3})});
  CHECK(a[0].shape() == kassette::Shape{1, 3});
  CHECK(c[0].shape() == kassette::Shape{4, 3});
  CHECK(values(a[0]) != values(b[0]));
  CHECK(values(a[1]) != values(b[1]));
}

TEST_CASE("a tensor parameter does not fix the draw", "[random]") {
  Tensor x = K::placeholder({1});
  Tensor mean = K::constant({5}), share = K::constant({0.5});
  auto f = K::function({x}, {K::random_normal({20}, mean, 1), K::random_binomial({64}, share), x});
  auto a = f({K::constant({0})}), b = f({K::constant({0})});
  CHECK(values(a[0]) != values(b[0]));
  CHECK(values(a[1]) != values(b[1]));
}

TEST_CASE("a seed replays the sequence of a function's calls", "[random]") {
  Tensor x = K::placeholder({1});
  auto make = [&] { return K::function({x}, {x + K::random_normal({3}, 0, 1, K::None, 11)}); };
  auto f = make(), g = make();
  for (int i = 0; i < 3; ++i) CHECK(values(f({K::constant({0})})[0]) == values(g({K::constant({0})})[0]));
  auto one = values(f({K::constant({0})})[0]), two = values(f({K::constant({0})})[0]);
  CHECK(one != two);
}

TEST_CASE("value and gradient of one call share the mask", "[dropout]") {
  Tensor x = K::placeholder({K::None, 4});
  Tensor y = K::dropout(x, 0.5);
  auto f = K::function({x}, {y, K::gradients(K::sum(y), {x})[0]});
  std::vector<double> last;
  for (int n : {8, 16, 16}) {
    auto out = f({K::ones({n, 4})});
    CHECK(values(out[0]) == values(out[1]));
    CHECK(values(out[0]) != last);
    last = values(out[0]);
  }
}

TEST_CASE("masks with noise_shape follow placeholders", "[dropout]") {
  Tensor x = K::placeholder({K::None, K::None, 2});
  Tensor y = K::dropout(x, 0.5, {K::None, 1, 2});
  CHECK(y.ndim() == 3);
  auto f = K::function({x}, {y, K::dropout(x, 0.5, {K::shape(x)[0], 1, 2})});
  for (const Tensor& out : f({K::ones({20, 3, 2})})) {
    auto v = values(out);
    int wrong = 0;
    for (std::size_t i = 0; i < 20; ++i)
      for (std::size_t k = 0; k < 2; ++k) wrong += v[i * 6 + k] != v[i * 6 + 2 + k] || v[i * 6 + k] != v[i * 6 + 4 + k];
    CHECK(wrong == 0);
  }
}

TEST_CASE("an eager draw is drawn anew where it is recorded", "[random]") {
  Tensor x = K::placeholder({3});
  Tensor u = K::random_uniform({3});
  auto f = K::function({x}, {x + u});
  CHECK(values(f({K::zeros({3})})[0]) != values(f({K::zeros({3})})[0]));
  CHECK(values(u) == values(u));
}
