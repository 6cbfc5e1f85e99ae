// ops/reduce/variance.h - deviations from a mean, in which the gradients of var and std are written.
#pragma once
#include "ops/engine/axes.h"

namespace kassette::ops {

/// x - mean(x), with the shape of x; 0 where all elements of a group are equal. Floats only.
Tensor center(const Tensor& x, AxisSet axes);

extern const OpDef center_op;

}  // namespace kassette::ops
