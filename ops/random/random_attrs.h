// ops/random/random_attrs.h - the attributes of random draws.
#pragma once
#include "ops/engine/op.h"
#include "ops/random/rejection.h"

namespace kassette::ops {

/// Attributes of random_uniform: samples of [low, high).
struct UniformAttrs {
  static constexpr const char* attrs_name = "random_uniform";
  double low, high;
  double top;  // the largest value below `high` in the dtype of the samples
  Placement placement;
};
/// Attributes of random_normal and truncated_normal.
struct NormalAttrs {
  static constexpr const char* attrs_name = "random_normal";
  double mean, stddev;
  Placement placement;
};
/// Attributes of random_integers: samples of [low, high).
struct IntegersAttrs {
  static constexpr const char* attrs_name = "random_integers";
  std::int64_t low, high;  // those of uint64 as their bits; unused if the bounds are inputs
  Placement placement;
};
/// Attributes of bernoulli: p is the probability of 1.
struct BernoulliAttrs {
  static constexpr const char* attrs_name = "bernoulli";
  double p;
  Placement placement;
};
/// Attributes of random_rejection.
struct RejectionAttrs {
  static constexpr const char* attrs_name = "random_rejection";
  RejectionLaw law;
};
/// Attributes of dropout: `level` is the probability that an element becomes 0.
struct DropoutAttrs {
  static constexpr const char* attrs_name = "dropout";
  double level;
};

}  // namespace kassette::ops
