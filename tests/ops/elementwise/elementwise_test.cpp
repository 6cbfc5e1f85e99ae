// tests/ops/elementwise/elementwise_test.cpp - elementwise ops and operators, by value and by error.
#include <kassette/backend.h>

#include "core/text.h"
#include "ops/engine/expr.h"
#include "ops/engine/operand.h"
#include "tests/catch.h"
#include "tests/ops/levels.h"
#include "tests/results.h"

using namespace kassette;
using namespace kassette::devices;
using namespace kassette::ops;
using namespace kassette::test;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor tensor(const Operand& x, DType dtype = float32) { return as_tensor(x, dtype, "test"); }
}  // namespace

TEST_CASE("true division of integers gives float64, of small ones float32", "[elementwise]") {
  Tensor q = tensor({7, -7}, int32) / tensor({2, 2}, int32);
  CHECK(q.dtype() == float64);
  CHECK(values<double>(q) == std::vector<double>{3.5, -3.5});
  CHECK((tensor({7}, uint8) / 2).dtype() == float32);
  CHECK((tensor({7}, int16) / 2).dtype() == float32);
  CHECK((tensor({7}, int64) / 2).dtype() == float64);
  CHECK((1 / tensor({4}, int64)).item<double>() == 0.25);
}

TEST_CASE("floor division and remainder follow the sign of the divisor", "[elementwise]") {
  Tensor a = tensor({-7, 7, -7, 7}, int32), b = tensor({2, -2, -2, 2}, int32);
  CHECK(values<int>(floor_divide(a, b)) == std::vector<int>{-4, -4, 3, 3});
  CHECK(values<int>(a % b) == std::vector<int>{1, -1, -1, 1});
  Tensor x = cast(a, float32), y = cast(b, float32);
  CHECK(values<float>(floor_divide(x, y)) == std::vector<float>{-4, -4, 3, 3});
  CHECK(values<float>(x % y) == std::vector<float>{1, -1, -1, 1});
}

TEST_CASE("integer division by zero is a ValueError", "[elementwise]") {
  Tensor a = tensor({1, 2}, int32);
  CHECK_THROWS_AS(floor_divide(a, 0), ValueError);
  CHECK(error_of([&] { a % tensor({1, 0}, int32); }) == "remainder: integer division by zero");
  CHECK(error_of([&] { floor_divide(a, 0); }) == "floor_divide: integer division by zero");
}

TEST_CASE("the lowest integer divided by -1 wraps", "[elementwise]") {
  Tensor low = tensor({INT_MIN}, int32);
  CHECK(floor_divide(low, -1).item<int>() == INT_MIN);
  CHECK((low % -1).item<int>() == 0);
  CHECK((-low).item<int>() == INT_MIN);
  CHECK(abs(low).item<int>() == INT_MIN);
  CHECK((tensor({200}, uint8) + 100).item<int>() == 44);
  CHECK((tensor({65535}, uint16) * 65535).item<int>() == 1);
}

TEST_CASE("comparisons give bool and treat NaN as unequal to all", "[elementwise]") {
  Tensor a = tensor({1.0, 2.0, kNan}), b = tensor({2.0, 2.0, kNan});
  CHECK(equal(a, b).dtype() == bool_);
  CHECK(values<int>(equal(a, b)) == std::vector<int>{0, 1, 0});
  CHECK(values<int>(not_equal(a, b)) == std::vector<int>{1, 0, 1});
  CHECK(values<int>(a < b) == std::vector<int>{1, 0, 0});
  CHECK(values<int>(a <= b) == std::vector<int>{1, 1, 0});
  CHECK(values<int>(a > b) == std::vector<int>{0, 0, 0});
  CHECK(values<int>(a >= 2.0) == std::vector<int>{0, 1, 0});
  CHECK(values<int>(~(a < b) & (a <= b)) == std::vector<int>{0, 1, 0});
  CHECK(values<int>((a < b) | (a > 1)) == std::vector<int>{1, 1, 0});
}

TEST_CASE("maximum and minimum propagate NaN from either side", "[elementwise]") {
  Tensor a = tensor({1.0, kNan, 3.0, kNan}), b = tensor({2.0, 2.0, kNan, kNan});
  std::vector<float> high = values<float>(maximum(a, b)), low = values<float>(minimum(a, b));
  CHECK(high[0] == 2);
  CHECK(low[0] == 1);
  for (int i = 1; i < 4; ++i) {
    CHECK(std::isnan(high[i]));
    CHECK(std::isnan(low[i]));
  }
}

TEST_CASE("where chooses, broadcasts all three and lets no NaN through", "[elementwise]") {
  Tensor c = tensor({{true}, {false}}, bool_);
  Tensor y = where(c, tensor({1, 2, 3}), 0.0);
  CHECK(y.shape() == Shape{2, 3});
  CHECK(values<float>(y) == std::vector<float>{1, 2, 3, 0, 0, 0});
  CHECK(values<float>(where(c, 1.0, tensor({{1.0}, {kNan}})))[0] == 1);
  CHECK(values<int>(where(tensor({true, false}, bool_), tensor({1, 2}, int64), 7)) == std::vector<int>{1, 7});
  CHECK(error_of([&] {
          where(tensor({1, 0}), 1.0, 2.0);
        }) == "where: condition is float32; compare it with something, or cast it to bool");
}

TEST_CASE("cast truncates, saturates, and takes NaN to 0 and true", "[elementwise]") {
  Tensor x = tensor({-1.7, 1.7, 3e9, -3e9, kNan, kInf});
  CHECK(values<std::int32_t>(cast(x, int32)) == std::vector<std::int32_t>{-1, 1, INT_MAX, INT_MIN, 0, INT_MAX});
  CHECK(values<int>(cast(x, uint8)) == std::vector<int>{0, 1, 255, 0, 0, 255});
  CHECK(values<int>(cast(tensor({0.0, -0.0, 0.5, kNan}), bool_)) == std::vector<int>{0, 0, 1, 1});
  CHECK(values<float>(cast(tensor({true, false}, bool_), float16)) == std::vector<float>{1, 0});
}

TEST_CASE("zero times anything is zero in mul_no_nan and div_no_nan", "[elementwise]") {
  Tensor zero = tensor({0.0, 0.0, 2.0});
  CHECK(values<float>(mul_no_nan(zero, tensor({kInf, kNan, 3.0}))) == std::vector<float>{0, 0, 6});
  CHECK(values<float>(div_no_nan(zero, tensor({0.0, kNan, 4.0}))) == std::vector<float>{0, 0, 0.5});
}

TEST_CASE("two dtypes, bool arithmetic and fractions beside integers are refused", "[elementwise]") {
  Tensor i = tensor({1, 2}, int32), x = tensor({1, 2}), p = tensor({true, false}, bool_);
  CHECK(error_of([&] { i + x; }) == "add: int32 and float32; cast one of them (K::cast), tensors are not promoted");
  CHECK(error_of([&] { i / x; }) == "divide: int32 and float32; cast one of them (K::cast), tensors are not promoted");
  CHECK(error_of([&] { p + p; }) == "add: bool is not a number; cast it first (K::cast)");
  CHECK(error_of([&] { x& x; }) == "logical_and: float32 is not bool; cast it first (K::cast)");
  CHECK(error_of([&] { exp(i); }) == "exp: x is int32, not a float dtype; cast it first (K::cast)");
  CHECK(error_of([&] { i * 0.5; }) ==
        "multiply: y 0.5 is not an integer, and int32 is wanted; convert it with K::cast");
  CHECK(error_of([&] { x + tensor({1, 2, 3}); }) == "add: shapes (2,) and (3,) do not broadcast: 2 against 3");
  CHECK(error_of([&] { x + Tensor(); }) ==
        "add: y is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
}

TEST_CASE("half types compute in float32 and round once, at every CPU level", "[elementwise]") {
  SettingsScope restore;
  for (DType dtype : {float16, bfloat16}) {
    Tensor x = empty_tensor(TensorSpec(dtype, {65536})), y = empty_tensor(TensorSpec(dtype, {65536}));
    for (int i = 0; i < 65536; ++i) {  // every number, beside another one
      mutable_data<std::uint16_t>(x)[i] = static_cast<std::uint16_t>(i);
      mutable_data<std::uint16_t>(y)[i] = static_cast<std::uint16_t>(i * 40503);
    }
    std::vector<float> a = values<float>(x), b = values<float>(y), sum(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) sum[i] = a[i] + b[i];
    std::vector<float> expected = values<float>(cast(tensor(sum), dtype));
    for (Level level : kLevels) {
      if (!set_cpu_level(level)) continue;
      std::vector<float> got = values<float>(x + y);
      int wrong = 0;
      for (std::size_t i = 0; i < got.size(); ++i)
        wrong += std::isnan(expected[i]) ? !std::isnan(got[i])
                                         : got[i] != expected[i] || std::signbit(got[i]) != std::signbit(expected[i]);
      INFO(level_name(level) << " " << dtype);
      CHECK(wrong == 0);
    }
  }
}
