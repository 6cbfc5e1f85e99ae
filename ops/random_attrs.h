// ops/random_attrs.h - the attributes of random draws.
#pragma once
#include "ops/op.h"

namespace kassette {

struct UniformAttrs {
  static constexpr const char* attrs_name = "random_uniform";
  double low, high;
  double top;  // the largest value below `high` in the dtype of the samples
  Placement placement;
};
struct NormalAttrs {
  static constexpr const char* attrs_name = "random_normal";
  double mean, stddev;
  Placement placement;
};
struct IntegersAttrs {
  static constexpr const char* attrs_name = "random_integers";
  std::int64_t low, high;  // unused if the bounds are inputs
  Placement placement;
};
struct BernoulliAttrs {
  static constexpr const char* attrs_name = "bernoulli";
  double p;
  Placement placement;
};
struct DropoutAttrs {
  static constexpr const char* attrs_name = "dropout";
  double level;
};

}  // namespace kassette
