// ops/reduce/scan.h - running sums and products, as functions of tensors.
#pragma once
#include "ops/engine/axes.h"

namespace kassette::ops {

Tensor cumsum(const Tensor& x, int axis = 0);
Tensor cumprod(const Tensor& x, int axis = 0);

/// For each element the product of all other elements of its group. Does not divide, so zeros are no problem.
Tensor product_of_others(const Tensor& x, AxisSet axes);

/// int64 places in the flattened x of the running maximum and minimum: of the first one of equal elements; from a NaN
/// on, of that. No gradient.
Tensor cummax_places(const Tensor& x, int axis);
Tensor cummin_places(const Tensor& x, int axis);
/// y[0] = b[0], y[i] = b[i] + a[i] * y[i - 1] along an axis.
Tensor recurrence(const Tensor& a, const Tensor& b, int axis);
/// y[0] = 0, y[i] = x[i - 1] along an axis.
Tensor shifted(const Tensor& x, int axis);

extern const OpDef cumsum_op, cumprod_op, recurrence_op, shift_op, cummax_places_op, cummin_places_op;

}  // namespace kassette::ops
