// tests/numpy/mathematics_test.cpp - np's elementwise functions beyond what numpy_cases_test.cpp compares with NumPy.
#include <kassette/backend.h>
#include <kassette/numpy.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/catch.h"
#include "tests/results.h"

using namespace kassette;
using namespace kassette::test;
namespace K = kassette::backend;
namespace np = kassette::numpy;

namespace {

/// All numbers >= 0 of a format with `digits` binary digits, from 0 up to infinity.
std::vector<double> all_of(int digits, int lowest, int highest) {
  std::vector<double> v;
  const int half = 1 << (digits - 1);
  for (int k = 0; k < half; ++k) v.push_back(std::ldexp(k, lowest));
  for (int e = lowest; e + digits <= highest; ++e)
    for (int k = half; k < 2 * half; ++k) v.push_back(std::ldexp(k, e));
  v.push_back(std::numeric_limits<double>::infinity());
  return v;
}

}  // namespace

TEST_CASE("nextafter of half types goes from each number to the next", "[numpy]") {
  struct Format {
    DType dtype;
    int digits, lowest, highest;
  };
  for (const Format& f : {Format{np::float16, 11, -24, 16}, Format{np::bfloat16, 8, -133, 128}}) {
    const std::vector<double> all = all_of(f.digits, f.lowest, f.highest);
    REQUIRE(all.size() == (f.dtype == np::float16 ? 0x7c01 : 0x7f81));
    const Tensor x = K::cast(K::constant(all, "float64"), f.dtype);
    const auto up = values<double>(K::cast(np::nextafter(x, K::cast(np::inf, f.dtype)), "float64")),
               down = values<double>(K::cast(np::nextafter(x, K::cast(-np::inf, f.dtype)), "float64")),
               mirrored = values<double>(K::cast(np::nextafter(-x, K::cast(np::inf, f.dtype)), "float64"));
    int wrong = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double below = i > 0 ? all[i - 1] : -all[1];
      wrong += up[i] != all[std::min(i + 1, all.size() - 1)];
      wrong += down[i] != below || mirrored[i] != -below || std::signbit(mirrored[i]) != (below >= 0);
    }
    CHECK(wrong == 0);
    const Tensor zero = K::cast(K::constant({0, -0.0}), f.dtype);
    CHECK(values<bool>(np::signbit(np::nextafter(zero, K::cast(K::constant({-0.0, 0}), f.dtype)))) ==
          std::vector<bool>{true, false});
    CHECK(std::isnan(np::nextafter(K::cast(np::nan, f.dtype), zero).to_vector<double>()[0]));
    CHECK(std::isnan(np::nextafter(zero, K::cast(np::nan, f.dtype)).to_vector<double>()[0]));
  }
}

TEST_CASE("sqrt of np has an infinite slope at zeros of both signs, and none below", "[numpy][gradient]") {
  const Tensor x = K::variable(K::constant({0.0, -0.0, 4.0, -1.0}, "float64"));
  const auto slope = K::gradients(K::sum(np::sqrt(x)), {x})[0].to_vector<double>();
  CHECK(std::isinf(slope[0]));
  CHECK((std::isinf(slope[1]) && slope[1] > 0));
  CHECK(slope[2] == 0.25);
  CHECK(std::isnan(slope[3]));
}

TEST_CASE("lerp meets both ends, and round keeps the last digits of large integers", "[numpy]") {
  const Tensor x = K::constant({1e8, -3.3}), y = K::constant({-1.7, 1e-9});
  CHECK(values<float>(np::lerp(x, y, 0)) == values<float>(x));
  CHECK(values<float>(np::lerp(x, y, 1)) == values<float>(y));
  const std::vector<std::int64_t> large{9007199254740995, -9007199254740995, 9007199254740985};
  CHECK(values<std::int64_t>(np::round(large, -1)) ==
        std::vector<std::int64_t>{9007199254741000, -9007199254741000, 9007199254740980});
}

TEST_CASE("errors of np functions name the arguments", "[numpy]") {
  const Tensor x = K::constant({1, 2}), i = K::constant({1, 2}, "int32");
  CHECK_THROWS_WITH(np::clip(x, i, None), "clip: min is int32 and x is float32; cast one of them (K::cast)");
  CHECK_THROWS_WITH(np::betainc(x, i, 1), "betainc: b is int32 and a is float32; cast one of them (K::cast)");
  CHECK_THROWS_WITH(np::reciprocal(i), "reciprocal: x is int32, not a float dtype; cast it first (K::cast)");
  CHECK_THROWS_WITH(np::round(x > 1), "round: x is bool; cast it first (K::cast)");
}
