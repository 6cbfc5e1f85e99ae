// tests/numpy/calculus_test.cpp - np's differences, interpolation and convolution beyond numpy_cases_test.cpp.
#include <kassette/backend.h>
#include <kassette/numpy.h>

#include <vector>

#include "tests/catch.h"
#include "tests/results.h"

using namespace kassette;
using namespace kassette::test;
namespace K = kassette::backend;
namespace np = kassette::numpy;
using Floats = std::vector<float>;

TEST_CASE("interp of one point is constant, and meets its points exactly", "[numpy]") {
  CHECK(values<float>(np::interp({-1, 2, 5}, {2}, {7})) == Floats{7, 7, 7});
  CHECK(values<float>(np::interp({-1, 2, 5}, {2}, {7}, {.left = 0, .right = 9})) == Floats{0, 7, 9});
  const Floats xp{0.1f, 0.3f, 0.7f}, fp{1e8f, 3.3f, -1e-8f};
  CHECK(values<float>(np::interp(xp, xp, fp)) == fp);
}

TEST_CASE("differences, slopes and convolutions follow the sizes of placeholders", "[numpy]") {
  const Tensor x = K::placeholder({K::None}), y = K::placeholder({K::None});
  auto f = K::function({x, y}, {np::diff(x, 2), np::trapezoid(x), np::gradient(x)[0], np::convolve(x, y),
                                np::correlate(x, y, "full"), np::interp(y, np::cumulative_sum(x), x)});
  for (int n : {3, 6}) {
    std::vector<double> a, b;
    for (int i = 0; i < n; ++i) a.push_back(0.5 + i * i % 5), b.push_back(1 + i % 3);
    const Tensor p = K::cast(K::constant(a), "float32"), q = K::cast(K::constant(b), "float32");
    const Tensors got = f({p, q}), eager{np::diff(p, 2),
                                         np::trapezoid(p),
                                         np::gradient(p)[0],
                                         np::convolve(p, q),
                                         np::correlate(p, q, "full"),
                                         np::interp(q, np::cumulative_sum(p), p)};
    for (std::int64_t i = 0; i < got.size(); ++i) CHECK(values<float>(got[i]) == values<float>(eager[i]));
  }
}

TEST_CASE("errors of np's differences and convolutions name what is wrong", "[numpy]") {
  const Tensor x = K::constant({1, 2, 3});
  CHECK_THROWS_WITH(np::diff(x, -1), "diff: n is -1; it must be at least 0");
  CHECK_THROWS_WITH(np::gradient(K::constant({1})), "gradient: f of shape (1,); axis 0 must have at least 2 elements");
  CHECK_THROWS_WITH(np::gradient(x, {1, 2}),
                    "gradient: spacing of shape (2,); it must be a number or the 3 coordinates of axis 0");
  CHECK_THROWS_WITH(np::interp(x, {1, 2}, {1}), "interp: fp has 1 elements; there must be 2, as in xp");
  CHECK_THROWS_WITH(np::interp(x, {1, 2}, {1, 2}, {.period = 0}), "interp: period is 0; it must be above 0");
  CHECK_THROWS_WITH(np::convolve(x, K::constant({{1, 2}})), "convolve: y has shape (1, 2); it must be a vector");
  CHECK_THROWS_WITH(np::correlate(x, x, "half"),
                    "correlate: mode is \"half\"; it must be \"full\", \"same\" or \"valid\"");
  CHECK_THROWS_WITH(np::convolve(x, np::zeros({0})), "convolve: y is empty");
  CHECK_THROWS_WITH(np::convolve(K::placeholder({K::None}), x, "same"),
                    "convolve: x of shape (None,); the size of axis 0 must be known");
}
