// ops/reduce.h - reductions as functions of tensors. Axes: None is all, {} is none.
#pragma once
#include "ops/op.h"

namespace kassette {

Tensor sum(const Tensor& x, const Axes& axes = None, bool keepdims = false);
Tensor prod(const Tensor& x, const Axes& axes = None, bool keepdims = false);
/// NaN where there is a NaN.
Tensor max(const Tensor& x, const Axes& axes = None, bool keepdims = false);
Tensor min(const Tensor& x, const Axes& axes = None, bool keepdims = false);
/// Of floats.
Tensor mean(const Tensor& x, const Axes& axes = None, bool keepdims = false);

/// The mean of squared deviations from the mean, and its root. Of floats.
Tensor var(const Tensor& x, const Axes& axes = None, bool keepdims = false);
Tensor stddev(const Tensor& x, const Axes& axes = None, bool keepdims = false);

/// y, a reduction of something of the shape of `like`, repeated along the reduced axes; `code` as encode_axes gives it.
Tensor unreduce(const Tensor& y, const Tensor& like, std::int64_t code);
/// The sum by an encoded axis argument.
Tensor sum_by(const Tensor& x, std::int64_t code);

extern const OpDef sum_op, prod_op, max_op, min_op, mean_op, var_op, std_op, unreduce_op, extremum_mask_op;

}  // namespace kassette
