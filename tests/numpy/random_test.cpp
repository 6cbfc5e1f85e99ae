// tests/numpy/random_test.cpp - np::random: distributions against their moments and distribution functions, series that
// are saved and restored, permutations and choices.
#include <kassette/backend.h>
#include <kassette/numpy.h>
#include <kassette/runtime.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "tests/catch.h"
#include "tests/results.h"
#include "tests/settings.h"

using namespace kassette;
using namespace kassette::test;
namespace K = kassette::backend;
namespace np = kassette::numpy;
namespace rnd = kassette::numpy::random;

namespace {

constexpr std::int64_t kMany = 20000;

/// The largest distance between the distribution of samples and a distribution function, a function of a tensor.
template <class F>
double distance(const Tensor& samples, F cdf) {
  const Tensor sorted = np::sort(K::cast(samples, "float64"));
  const auto p = values<double>(cdf(sorted));
  double most = 0;
  const auto n = static_cast<double>(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) {
    const auto at = static_cast<double>(i);
    most = std::max({most, std::fabs(p[i] - at / n), std::fabs(p[i] - (at + 1) / n)});
  }
  return most;
}
/// The bound of Kolmogorov and Smirnov's test at a level of 1 in 10,000.
double bound(std::int64_t n) { return 2.23 / std::sqrt(static_cast<double>(n)); }

/// Pearson's statistic of integer samples against the probabilities of 0, 1, ..., and of all larger numbers.
double chi_square(const Tensor& samples, const std::vector<double>& p) {
  std::vector<double> count(p.size() + 1);
  for (std::int64_t k : values<std::int64_t>(K::flatten(samples)))
    ++count[std::min(static_cast<std::size_t>(k), p.size())];
  double rest = 1, sum = 0;
  const auto n = static_cast<double>(samples.size());
  for (std::size_t i = 0; i < p.size(); ++i) {
    rest -= p[i];
    sum += (count[i] - n * p[i]) * (count[i] - n * p[i]) / (n * p[i]);
  }
  return sum + (count.back() - n * rest) * (count.back() - n * rest) / (n * rest);
}

}  // namespace

TEST_CASE("samples of np::random follow their distribution functions", "[numpy][random]") {
  const auto g = rnd::default_rng(5);
  const Dims n = kMany;
  CHECK(distance(g.random(n), [](const Tensor& x) { return x; }) < bound(kMany));
  CHECK(distance(g.uniform(-3, 5, n), [](const Tensor& x) { return (x + 3) / 8; }) < bound(kMany));
  CHECK(distance(g.normal(1, 2, n), [](const Tensor& x) { return np::erfc((1 - x) / (2 * std::sqrt(2))) / 2; }) <
        bound(kMany));
  CHECK(distance(g.exponential(3, n), [](const Tensor& x) { return -np::expm1(-x / 3); }) < bound(kMany));
  CHECK(distance(g.laplace(1, 2, n), [](const Tensor& x) {
          const Tensor z = (x - 1) / 2;
          return 0.5 + 0.5 * np::sign(z) * -np::expm1(-np::abs(z));
        }) < bound(kMany));
  CHECK(distance(g.gumbel(1, 2, n), [](const Tensor& x) { return np::exp(-np::exp((1 - x) / 2)); }) < bound(kMany));
  CHECK(distance(g.lognormal(1, 2, n),
                 [](const Tensor& x) { return np::erfc((1 - np::log(x)) / (2 * std::sqrt(2))) / 2; }) < bound(kMany));
  CHECK(distance(g.logistic(1, 2, n), [](const Tensor& x) { return 1 / (1 + np::exp((1 - x) / 2)); }) < bound(kMany));
  CHECK(distance(g.rayleigh(3, n), [](const Tensor& x) { return -np::expm1(-x * x / 18); }) < bound(kMany));
  CHECK(distance(g.weibull(1.5, n), [](const Tensor& x) { return -np::expm1(-np::power(x, 1.5)); }) < bound(kMany));
  CHECK(distance(g.pareto(3, n), [](const Tensor& x) { return 1 - np::power(1 + x, -3.0); }) < bound(kMany));
  CHECK(distance(g.standard_cauchy(n), [](const Tensor& x) { return 0.5 + np::atan(x) / np::pi; }) < bound(kMany));
  for (double df : {0.5, 3.0, 40.0})
    CHECK(distance(g.chisquare(df, n, "float64"), [&](const Tensor& x) { return np::gammainc(df / 2, x / 2); }) <
          bound(kMany));
  for (double shape : {0.2, 1.0, 3.5, 80.0})
    CHECK(distance(g.gamma(shape, 2, n, "float64"), [&](const Tensor& x) { return np::gammainc(shape, x / 2); }) <
          bound(kMany));
  for (auto [a, b] : {std::pair(0.5, 0.5), std::pair(2.0, 5.0)})
    CHECK(distance(g.beta(a, b, n, "float64"), [&](const Tensor& x) { return np::betainc(a, b, x); }) < bound(kMany));
  // The first of three classes against the others.
  const Tensor d = g.dirichlet({0.5, 1, 2.5}, n, "float64");
  CHECK(d.shape() == Shape({kMany, 3}));
  CHECK(distance(d(all, 0), [](const Tensor& x) { return np::betainc(0.5, 3.5, x); }) < bound(kMany));
  CHECK(std::fabs(values<double>(np::max(np::abs(np::sum(d, -1) - 1)))[0]) < 1e-12);
}

// The bounds are the quantiles of chi square at 1 - 1e-4 (scipy.stats.chi2.isf), for the degrees of freedom.
TEST_CASE("integer samples of np::random have the probabilities of their numbers", "[numpy][random]") {
  const auto g = rnd::default_rng(6);
  auto poisson = [&](double mean, int up_to) {
    std::vector<double> p;
    for (int k = 0; k < up_to; ++k) p.push_back(std::exp(k * std::log(mean) - mean - std::lgamma(k + 1.0)));
    return chi_square(g.poisson(mean, kMany), p);
  };
  CHECK(poisson(0.7, 5) < 25.75);       // 5
  CHECK(poisson(9, 20) < 52.39);        // 20
  CHECK(poisson(12, 25) < 59.71 + 30);  // 25, of which the first are rare
  auto binomial = [&](int n, double p, int up_to) {
    std::vector<double> each;
    for (int k = 0; k < up_to; ++k)
      each.push_back(std::exp(std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0) + k * std::log(p) +
                              (n - k) * std::log1p(-p)));
    return chi_square(g.binomial(n, p, kMany), each);
  };
  CHECK(binomial(7, 0.4, 7) < 29.88);
  CHECK(binomial(7, 0.9, 7) < 29.88 + 30);
  CHECK(binomial(60, 0.3, 35) < 73.0 + 30);
  CHECK(chi_square(g.integers(8, None, kMany), {.125, .125, .125, .125, .125, .125, .125}) < 29.88);
  CHECK(chi_square(g.integers(0, 7, kMany, {.dtype = np::int8, .endpoint = true}),
                   {.125, .125, .125, .125, .125, .125, .125}) < 29.88);
  CHECK(chi_square(g.categorical(np::log({0.5, 0.3, 0.2}), kMany), {0.5, 0.3}) < 18.42);
  CHECK(chi_square(g.choice(3, kMany, {.p = {0.5, 0.3, 0.2}}), {0.5, 0.3}) < 18.42);
  CHECK(chi_square(K::cast(g.bernoulli(0.3, kMany), "int64"), {0.7}) < 15.14);
  CHECK(chi_square(g.geometric(0.4, kMany) - 1, {.4, .24, .144, .0864, .05184}) < 25.75);
  CHECK(values<std::int64_t>(g.geometric(1, 3)) == std::vector<std::int64_t>{1, 1, 1});
  const Tensor three = g.multinomial(5, {0.5, 0.2, 0.3}, kMany);  // each class is binomial
  CHECK(chi_square(three(all, 0), {1 / 32., 5 / 32., 10 / 32., 10 / 32., 5 / 32.}) < 25.75);
  CHECK(chi_square(three(all, 1), {.32768, .4096, .2048, .0512, .0064}) < 25.75);
  CHECK(values<std::int64_t>(np::unique(np::sum(three, -1))) == std::vector<std::int64_t>{5});
  CHECK(g.multinomial(4, {1, 0}, {2, 3}).shape() == Shape({2, 3, 2}));
  // Large parameters: mean and variance.
  for (const Tensor& x : {g.poisson(1e6, kMany), g.binomial(4e6, 0.5, kMany)}) {
    const Tensor y = K::cast(x, "float64");
    const double mean = values<double>(np::mean(y))[0], var = values<double>(np::var(y))[0];
    const bool binomial_one = mean > 1.5e6;
    CHECK(std::fabs(mean - (binomial_one ? 2e6 : 1e6)) < 4 * std::sqrt(1e6 / kMany));
    CHECK(std::fabs(var / 1e6 - 1) < 4 * std::sqrt(2.0 / kMany));
  }
}

TEST_CASE("choices without replacement have the probabilities of draws one after another", "[numpy][random]") {
  const auto g = rnd::default_rng(7);
  std::vector<double> first(3), second(3);
  const int n = 3000;
  for (int i = 0; i < n; ++i) {
    const auto two = values<std::int64_t>(g.choice(3, 2, {.replace = false, .p = {0.5, 0.3, 0.2}}));
    REQUIRE(two[0] != two[1]);
    ++first[static_cast<std::size_t>(two[0])];
    ++second[static_cast<std::size_t>(two[1])];
  }
  CHECK(std::fabs(first[0] / n - 0.5) < 0.04);
  // P(second = 0) = 0.3 * 0.5 / 0.7 + 0.2 * 0.5 / 0.8
  CHECK(std::fabs(second[0] / n - (0.3 * 0.5 / 0.7 + 0.2 * 0.5 / 0.8)) < 0.04);
  auto order = values<std::int64_t>(g.permutation(1000));
  CHECK(!std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (std::int64_t i = 0; i < 1000; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
  const Tensor x = np::reshape(np::arange(12), {3, 4});
  const Tensor rows = g.shuffle(x), columns = g.shuffle(x, 1);
  CHECK(values<float>(np::sort(rows(all, 0))) == std::vector<float>{0, 4, 8});
  CHECK(values<float>(np::sum(columns, 0)).size() == 4);
  CHECK(values<float>(np::sort(columns(0))) == std::vector<float>{0, 1, 2, 3});
  CHECK(g.choice(x, {2, 5}, {.axis = 1}).shape() == Shape({3, 2, 5}));
}

TEST_CASE("normal vectors have the covariances that are asked for", "[numpy][random]") {
  const auto g = rnd::default_rng(8);
  const std::vector<double> cov{4, 1, 0, 1, 3, 1, 0, 1, 2};
  const Tensor c = np::reshape(cov, {3, 3}), mean = K::constant({1, -2, 5}, "float64");
  const Tensor x = g.multivariate_normal(mean, c, kMany);
  CHECK(x.shape() == Shape({kMany, 3}));
  const Tensor off = x - mean, found = np::matmul(np::transpose(off), off) / kMany;
  CHECK(values<double>(np::max(np::abs(found - c)))[0] < 0.2);
  CHECK(values<double>(np::max(np::abs(np::mean(x, 0) - mean)))[0] < 0.06);
}

TEST_CASE("a generator goes on from a saved state with the same bits, in functions too", "[numpy][random]") {
  auto g = rnd::default_rng(11);
  const Tensor x = K::placeholder({K::None});
  auto step = K::function({x}, {x + g.normal(0, 1, K::shape(x)), g.gamma(2.5, 1, K::shape(x))});
  const Tensor in = K::zeros({5});
  (void)step({in}), (void)g.random(3);
  const Tensor state = g.state();
  CHECK(values<std::int64_t>(state) == std::vector<std::int64_t>{11, 3});
  const Tensors next = step({in});
  const Tensor later = g.integers(1000000, None, 4);

  auto resumed = rnd::default_rng(0);
  resumed.set_state(state);
  auto again = K::function({x}, {x + resumed.normal(0, 1, K::shape(x)), resumed.gamma(2.5, 1, K::shape(x))});
  const Tensors repeated = again({in});
  for (std::int64_t i = 0; i < 2; ++i) CHECK(values<float>(repeated[i]) == values<float>(next[i]));
  CHECK(values<std::int64_t>(resumed.integers(1000000, None, 4)) == values<std::int64_t>(later));
  CHECK(values<float>(step({in})[0]) != values<float>(next[0]));
  CHECK_THROWS_WITH(g.set_state(in), "set_state: state is no state of a generator; it must hold two int64");
}

TEST_CASE("samples of np::random are the same for any number of threads", "[numpy][random]") {
  SettingsScope restore;
  std::vector<std::vector<double>> all_runs;
  for (int threads : {1, 3}) {
    set_num_threads(threads);
    const auto g = rnd::default_rng(13);
    std::vector<double> run;
    for (const Tensor& t : {g.gamma(0.7, 1, 70000), g.beta(2, 3, 70000), K::cast(g.poisson(30, 70000), "float32"),
                            K::cast(g.binomial(90, 0.4, 70000), "float32"), g.gumbel(0, 1, 70000)})
      for (double v : values<double>(K::cast(t, "float64"))) run.push_back(v);
    all_runs.push_back(run);
  }
  CHECK(all_runs[0] == all_runs[1]);
}

TEST_CASE("draws of a generator in a traced loop differ from step to step and from one another", "[numpy][random]") {
  const auto g = rnd::default_rng(17);
  const Tensor x = K::placeholder({4});
  const Tensor y = K::map_fn([&](const Tensor& v) { return v * 0 + g.random() - g.random(); }, x);
  const auto v = values<float>(K::function({x}, {y})({K::zeros({4})})[0]);
  CHECK(std::set<float>(v.begin(), v.end()).size() == 4);
  CHECK(std::count(v.begin(), v.end(), 0.f) == 0);
}

TEST_CASE("seed of np::random repeats the series of the functions", "[numpy][random]") {
  rnd::seed(3);
  const auto a = values<float>(rnd::normal(0, 1, 5));
  const auto b = values<float>(rnd::normal(0, 1, 5));
  rnd::seed(3);
  CHECK(values<float>(rnd::normal(0, 1, 5)) == a);
  CHECK(a != b);
  CHECK(values<float>(rnd::default_rng(1).random(5)) != values<float>(rnd::default_rng(2).random(5)));
}

TEST_CASE("bad parameters of np::random are errors in one line", "[numpy][random]") {
  const auto g = rnd::default_rng(1);
  CHECK_THROWS_WITH(g.normal(0, -1), "normal: scale is -1; it must be at least 0");
  CHECK_THROWS_WITH(g.integers(5, 5), "integers: low 5 is not below high 5");
  CHECK_THROWS_WITH(g.poisson(-1), "poisson: lam is -1; it must be at least 0");
  CHECK_THROWS_WITH(g.choice(3, 5, {.replace = false}), "choice: size asks for 5 of 3 elements; give .replace = true");
  CHECK_THROWS_WITH(g.choice(2, 5, {.p = {0.5, 0.6}}), "choice: p adds up to 1.1; probabilities add up to 1");
  CHECK_THROWS_WITH(g.random(3, "int32"), "random: dtype is int32; it must be a float dtype");
  CHECK_THROWS_WITH(g.normal(K::zeros({3}), 1, 2), Catch::Contains("normal: "));
}
