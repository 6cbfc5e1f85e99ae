// tests/numpy/statistics_test.cpp - quantiles beyond the cases from NumPy: infinities, NaN, the slope in q, errors.
#include <kassette/numpy.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/results.h"

using namespace kassette;
using namespace kassette::test;
namespace K = kassette::backend;
namespace np = kassette::numpy;

TEST_CASE("quantiles at the places of infinite elements are these elements", "[numpy]") {
  const double inf = np::inf;
  CHECK(values<double>(np::quantile({-inf, 1, inf, inf}, {0, 1 / 3.0, 2 / 3.0, 0.9, 1})) ==
        std::vector<double>{-inf, 1, inf, inf, inf});
  CHECK(np::median({inf, inf}).item<double>() == inf);
  CHECK(std::isnan(np::median({-inf, inf}).item<double>()));
}

TEST_CASE("a NaN makes the quantiles of its group NaN, by every method", "[numpy]") {
  const Tensor x = K::constant({{1, np::nan, 3}, {4, 6, 5}});
  for (const char* method :
       {"inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull",
        "linear", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest"}) {
    const std::vector<double> y = values<double>(np::quantile(x, 0.5, {.axis = 1, .method = method}));
    CHECK(std::isnan(y[0]));
    CHECK((y[1] >= 4 && y[1] <= 6));
  }
  CHECK(std::isnan(values<double>(np::median(x, 1))[0]));
}

TEST_CASE("the slope of a quantile in q is the distance of the neighbours times their number", "[numpy]") {
  const Tensor x = K::constant({5, 1, 2, 9}, float64), q = K::variable({0.2, 0.8}, float64);
  CHECK(values<double>(K::gradients(K::sum(np::quantile(x, q)), q)[0]) == std::vector<double>{3, 12});
}

TEST_CASE("quantiles refuse a part out of range, an empty group and an unknown method in one line", "[numpy]") {
  CHECK_THROWS_WITH(np::quantile({1, 2}, 1.5), "quantile: q has 1.5; it must be in [0, 1]");
  CHECK_THROWS_WITH(np::percentile({1, 2}, {50, -3}), "percentile: q has -3; it must be in [0, 100]");
  CHECK_THROWS_WITH(np::median(K::zeros({2, 0, 3}), 1),
                    "median: x has shape (2, 0, 3); there must be elements along axis 1");
  CHECK_THROWS_WITH(np::quantile({1, 2}, 0.5, {.method = "best"}),
                    Catch::Contains("quantile: method is 'best'; there are inverted_cdf, "));
}

TEST_CASE("digitize puts NaN behind all edges, and ascending and descending edges mirror one another", "[numpy]") {
  CHECK(values<double>(np::digitize({np::nan, 0.5, 1}, {0, 1, 2})) == std::vector<double>{3, 1, 2});
  CHECK(values<double>(np::digitize({0.5, 1, 3, -1}, {2, 1, 0})) == std::vector<double>{2, 1, 0, 3});
}
