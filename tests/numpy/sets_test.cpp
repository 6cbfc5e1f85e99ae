// tests/numpy/sets_test.cpp - sizes that depend on values, gradients of equal elements, and errors.
#include <kassette/numpy.h>

#include <vector>

#include "tests/catch.h"
#include "tests/results.h"

using namespace kassette;
using namespace kassette::test;
namespace K = kassette::backend;
namespace np = kassette::numpy;

TEST_CASE("what depends on values has an unknown size on placeholders", "[numpy]") {
  Tensor x = K::placeholder({2, None});
  CHECK(np::nonzero(x).size() == 2);
  CHECK(np::nonzero(x)[0].shape() == Shape({-1}));
  CHECK(np::argwhere(x).shape() == Shape({-1, 2}));
  CHECK(np::unique(x).shape() == Shape({-1}));
  CHECK(np::unique_inverse(x).inverse_indices.shape() == Shape({2, -1}));
  auto f = K::function({x}, {np::unique_counts(x).counts});
  CHECK(values<std::int64_t>(f({K::constant({{1, 2, 1}, {1, 3, 3}})})[0]) == std::vector<std::int64_t>{3, 1, 2});
  CHECK(values<std::int64_t>(f({K::constant({{4}, {4}})})[0]) == std::vector<std::int64_t>{2});
}

TEST_CASE("the gradient of a value of unique goes to the first of its elements", "[numpy]") {
  Tensor x = K::variable({3, 1, 3, 1, 2});
  Tensor g = K::gradients(K::sum(np::unique(x) * K::constant({10, 20, 30})), {x})[0];
  CHECK(values<float>(g) == std::vector<float>{30, 10, 0, 0, 20});
}

TEST_CASE("sets and conditions name the argument that is wrong", "[numpy]") {
  CHECK_THROWS_WITH(np::nonzero(3), "nonzero: x is a scalar, which has no axis");
  CHECK_THROWS_WITH(np::compress({{true}}, {1, 2}), "compress: condition has shape (1, 1); it must be a vector");
  CHECK_THROWS_WITH(np::trim_zeros({1, 2}, "x"), "trim_zeros: trim is 'x'; it must be 'f', 'b' or 'fb'");
  CHECK_THROWS_WITH(np::lexsort({}), "lexsort: keys is an empty list; there must be a key");
  CHECK_THROWS_WITH(np::lexsort({K::constant({1, 2}), K::constant({1, 2, 3})}),
                    "lexsort: keys have shapes (2,) and (3,); they must be equal");
  CHECK_THROWS_WITH(np::unique({1, 2}, 1), "unique: axis 1 is out of range for (2,) of rank 1");
}
