// ops/scan.h - running sums and products, as functions of tensors.
#pragma once
#include "ops/op.h"

namespace kassette {

Tensor cumsum(const Tensor& x, int axis = 0);
Tensor cumprod(const Tensor& x, int axis = 0);

/// The product of the others of its group, for each element; without division, so right with zeros.
Tensor product_of_others(const Tensor& x, std::int64_t code);

extern const OpDef cumsum_op, cumprod_op, recurrence_op, shift_op;

}  // namespace kassette
