// tests/numpy/placement_test.cpp - values at indices, choices and indices: what is refused, and in which words.
#include <kassette/numpy.h>

#include <vector>

#include "tests/catch.h"
#include "tests/results.h"

using namespace kassette;
using namespace kassette::test;
namespace K = kassette::backend;
namespace np = kassette::numpy;

TEST_CASE("places out of range are refused, and negative ones where they do not count from the end", "[numpy]") {
  const Tensor x = K::constant({{1, 2, 3}, {4, 5, 6}});
  CHECK_THROWS_WITH(np::slice_update(x, {1, 2}, {{1, 2}}),
                    "slice_update: indices hold 3, which is out of range for an axis of size 3");
  CHECK_THROWS_AS(np::slice_update(x, {-1, 0}, {{1, 2}}), ValueError);
  CHECK_THROWS_AS(np::unravel_index({0, 6}, {2, 3}), ValueError);
  CHECK_THROWS_AS(np::unravel_index(-1, {2, 3}), ValueError);
  CHECK_THROWS_AS(np::unravel_index(0, {2, 0}), ValueError);
  CHECK_THROWS_AS(np::ravel_multi_index({K::constant({0}, "int32"), K::constant({3}, "int32")}, {2, 3}), ValueError);
  CHECK_THROWS_AS(np::choose({0, 2}, {x[0], x[1]}), ValueError);
  CHECK_THROWS_AS(np::put_along_axis(x, {{3}}, 0, 1), ValueError);
  CHECK_THROWS_AS(np::scatter_add(x, {{2}}, 1), ValueError);
}

TEST_CASE("values at indices and choices name the argument that is wrong", "[numpy]") {
  const Tensor x = K::constant({{1, 2, 3}, {4, 5, 6}});
  CHECK_THROWS_WITH(np::put_along_axis(x, {0}, 0, 1),
                    "put_along_axis: indices have shape (1,) and x (2, 3); the ranks must be the same");
  CHECK_THROWS_WITH(np::put_along_axis(x, {{0.5}}, 0, 1), Catch::Contains("put_along_axis: indices"));
  CHECK_THROWS_WITH(np::scatter_update(x, 1, 0),
                    "scatter_update: indices is a number; the last axis must hold an integer for each axis");
  CHECK_THROWS_WITH(np::scatter_update(x, {{0, 0, 0}}, 0), "scatter_update: indices has shape (1, 3); x has 2 axes");
  CHECK_THROWS_WITH(np::select({x > 1}, {}),
                    "select: choices are 0 and there are 1 conditions; there must be one "
                    "for each condition");
  CHECK_THROWS_WITH(np::diag_indices(2, 0), "diag_indices: ndim is 0; it must be in [1, 8]");
}

TEST_CASE("a function of piecewise sees only its elements", "[numpy]") {
  Tensor x = K::variable({-1, 4});
  Tensor y = np::piecewise(x, {x > 0}, {[](const Tensor& t) {
                             CHECK(t.shape() == Shape({1}));
                             return np::sqrt(t);
                           }});
  CHECK(values<float>(y) == std::vector<float>{0, 2});
  CHECK(values<float>(K::gradients(K::sum(y), {x})[0]) == std::vector<float>{0, 0.25f});
}
