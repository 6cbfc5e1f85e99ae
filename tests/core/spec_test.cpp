// tests/core/spec_test.cpp - shapes that are partly unknown: compared, and completed from one another.
#include "core/impl.h"
#include "tests/catch.h"

using namespace kassette;

namespace {

TensorSpec unranked() {
  TensorSpec s(float32, {});
  s.rank = -1;
  return s;
}

}  // namespace

TEST_CASE("sizes that are unknown differ from none, and make sums unknown", "[spec]") {
  CHECK(differ(2, 3));
  CHECK_FALSE(differ(2, 2));
  CHECK_FALSE(differ(kUnknown, 3));
  CHECK_FALSE(differ(2, kUnknown));
  CHECK(sum_of_sizes(2, 3) == 5);
  CHECK(sum_of_sizes(kUnknown, 3) == kUnknown);
  CHECK(sum_of_sizes(2, kUnknown) == kUnknown);
  CHECK(TensorSpec(float32, {2, 3}).dim(1) == 3);
  CHECK(unranked().dim(1) == kUnknown);
}

TEST_CASE("a shape is merged with one that agrees but for an axis", "[spec]") {
  TensorSpec s(float32, {kUnknown, 3});
  CHECK(s.merge(TensorSpec(int32, {2, 5}), 1));
  CHECK(s == TensorSpec(float32, {2, 3}));  // the size along the axis and the dtype stay
  CHECK_FALSE(s.merge(TensorSpec(float32, {4, 3}), 1));
  CHECK_FALSE(s.merge(TensorSpec(float32, {2, 5}), -1));
  CHECK_FALSE(s.merge(TensorSpec(float32, {2, 3, 1}), 1));
  CHECK(s == TensorSpec(float32, {2, 3}));
  CHECK(s.merge(unranked(), 0));
  CHECK(s == TensorSpec(float32, {2, 3}));
  TensorSpec any = unranked();
  CHECK(any.merge(TensorSpec(float32, {2, 3}), 0));
  CHECK(any == TensorSpec(float32, {kUnknown, 3}));
}
