// ops/reduce/scan.h - running sums and products, as functions of tensors.
#pragma once
#include "ops/engine/axes.h"

namespace kassette::ops {

Tensor cumsum(const Tensor& x, int axis = 0);
Tensor cumprod(const Tensor& x, int axis = 0);

/// For each element the product of all other elements of its group. Does not divide, so zeros are no problem.
Tensor product_of_others(const Tensor& x, AxisSet axes);

extern const OpDef cumsum_op, cumprod_op, recurrence_op, shift_op;

}  // namespace kassette::ops
