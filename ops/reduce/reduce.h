// ops/reduce/reduce.h - reductions as functions of tensors. Axes None means all axes, {} none.
#pragma once
#include "ops/engine/axes.h"

namespace kassette::ops {

Tensor sum(const Tensor& x, const Axes& axes = None, bool keepdims = false);
Tensor prod(const Tensor& x, const Axes& axes = None, bool keepdims = false);
/// max and min return NaN for a group that contains a NaN.
Tensor max(const Tensor& x, const Axes& axes = None, bool keepdims = false);
Tensor min(const Tensor& x, const Axes& axes = None, bool keepdims = false);
/// Of bool and integers as float32; on CUDA of floats only.
Tensor mean(const Tensor& x, const Axes& axes = None, bool keepdims = false);

/// The variance (divided by n, not n - 1) and its square root. Floats only.
Tensor var(const Tensor& x, const Axes& axes = None, bool keepdims = false);
Tensor stddev(const Tensor& x, const Axes& axes = None, bool keepdims = false);

/// Repeats y, a reduction of a tensor shaped like `like`, along the reduced axes.
Tensor unreduce(const Tensor& y, const Tensor& like, AxisSet axes);
/// The sum over these axes.
Tensor sum_by(const Tensor& x, AxisSet axes);

extern const OpDef sum_op, prod_op, max_op, min_op, mean_op, var_op, std_op, unreduce_op, extremum_mask_op;

}  // namespace kassette::ops
