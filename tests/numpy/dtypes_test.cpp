// tests/numpy/dtypes_test.cpp - promotion, as NumPy's tables and those of the array API have it, and shapes that
// broadcast.
#include <kassette/numpy.h>

#include <vector>

#include "tests/catch.h"
#include "tests/results.h"

using namespace kassette;
using namespace kassette::test;
namespace K = kassette::backend;
namespace np = kassette::numpy;

TEST_CASE("dtypes of one kind are promoted to one that holds both", "[numpy]") {
  CHECK(np::promote_types(int8, uint8) == int16);
  CHECK(np::promote_types(uint16, int8) == int32);
  CHECK(np::promote_types(float16, bfloat16) == float32);
  CHECK(np::promote_types(float32, "float64") == float64);
  CHECK_THROWS_AS(np::promote_types(int32, float32), TypeError);
  CHECK(np::result_type({1, 2.5}) == float32);
  CHECK(np::result_type({std::vector<double>{1}, 3, K::constant(1, "float16")}) == float64);
  CHECK(np::result_type({K::constant(1, "int8"), 3, K::constant({1, 2}, "uint8")}) == int16);
}

TEST_CASE("a cast that promotion allows keeps all numbers", "[numpy]") {
  CHECK(np::can_cast(uint8, int16));
  CHECK(np::can_cast(float16, float32));
  CHECK(np::can_cast(int64, int64));
  CHECK(!np::can_cast(int16, uint16));
  CHECK(!np::can_cast(uint16, int16));
  CHECK(!np::can_cast(int8, uint16));
  CHECK(!np::can_cast(float16, bfloat16));
  CHECK(!np::can_cast(int8, float64));
  CHECK(!np::can_cast(bool_, int8));
}

TEST_CASE("isdtype knows the kinds of the array API", "[numpy]") {
  CHECK(np::isdtype(int8, "signed integer"));
  CHECK(!np::isdtype(uint8, "signed integer"));
  CHECK(np::isdtype(uint8, "unsigned integer"));
  CHECK(np::isdtype(uint8, "integral"));
  CHECK(np::isdtype(bfloat16, "real floating"));
  CHECK(np::isdtype(bool_, "bool"));
  CHECK(!np::isdtype(bool_, "numeric"));
  CHECK(np::isdtype(float32, "float32"));
  CHECK(!np::isdtype(float32, "float64"));
  CHECK_THROWS_WITH(np::isdtype(float32, "complex"), Catch::Contains("isdtype: kind is 'complex'; it must be"));
}

TEST_CASE("shapes broadcast from the end", "[numpy]") {
  CHECK(np::broadcast_shapes({{2, 1}, {3}, {}}) == Shape({2, 3}));
  CHECK(np::broadcast_shapes({{0, 1}, {1, 4}}) == Shape({0, 4}));
  CHECK(np::broadcast_shapes({}) == Shape({}));
  CHECK_THROWS_AS(np::broadcast_shapes({{2}, {3}}), ValueError);
}

TEST_CASE("arrays of other shapes are not equal", "[numpy]") {
  CHECK(!np::array_equal({1, 2}, {{1, 2}}).item<bool>());
  CHECK(np::array_equiv({1, 2}, {{1, 2}, {1, 2}}).item<bool>());
  CHECK(!np::array_equiv({1, 2}, {1, 2, 3}).item<bool>());
  CHECK(!np::array_equal(np::nan, np::nan).item<bool>());
  CHECK(np::array_equal({1, np::nan}, {1, np::nan}, true).item<bool>());
}

TEST_CASE("roots of a polynomial and the polynomial of roots belong together", "[numpy]") {
  const auto [real, imaginary] = np::roots({1, 0, 4});
  CHECK(values<float>(np::round(np::abs(imaginary), 5)) == std::vector<float>{2, 2});
  CHECK(np::allclose(real, 0).item<bool>());
  CHECK(np::allclose(np::sort(np::roots(np::poly({-2, 0.5, 3})).real), {-2, 0.5, 3}).item<bool>());
  CHECK(np::roots({3}).real.shape() == Shape({0}));
  CHECK_THROWS_WITH(np::roots(K::constant({1, 2}, "int32")),
                    "roots: p is int32, not a float dtype; cast it first (K::cast)");
  CHECK_THROWS_WITH(np::polyfit({1, 2, 3}, {1, 2}, 1),
                    "polyfit: y has shape (2,) and x (3,); it must be (n) or (n, k) for an x of (n)");
  CHECK_THROWS_WITH(np::polydiv({1, 2}, std::vector<float>{}), "polydiv: v is empty; there must be a coefficient");
}

TEST_CASE("the smallest int64 has one bit", "[numpy]") {
  const Tensor x = K::constant({-9223372036854775807 - 1, 9223372036854775807, -1L, 0L}, "int64");
  CHECK(values<std::int64_t>(K::cast(np::bitwise_count(x), "int64")) == std::vector<std::int64_t>{1, 63, 1, 0});
}
