// tests/ops/engine/skeleton_test.cpp - the basics of apply().
#include "ops/engine/expr.h"
#include "ops/engine/operand.h"
#include "tests/catch.h"

using namespace kassette;
using namespace kassette::ops;

TEST_CASE("a binary and a unary op run") {
  Tensor a = as_tensor({{1, 2, 3}, {4, 5, 6}}, float32, "test");
  Tensor b = square(a + 1.0) * a - Tensor(a);
  std::vector<float> v = b.to_vector<float>();
  CHECK(v == std::vector<float>{3, 16, 45, 96, 175, 288});
  Tensor c = a + as_tensor({1, 2, 3}, float32, "test");
  CHECK((std::vector<float>)c.to_vector<float>() == std::vector<float>{2, 4, 6, 5, 7, 9});
}
