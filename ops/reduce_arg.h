// ops/reduce_arg.h - where the extremes are, whether any or all are true, and the k best: reductions without a gradient.
#pragma once
#include "ops/op.h"

namespace kassette {

/// int64 index of the first largest (smallest) element along an axis; None: of all elements in a row. NaN counts as the extreme.
Tensor argmax(const Tensor& x, const Axes& axis);
Tensor argmin(const Tensor& x, const Axes& axis);
/// bool: whether any (every) element is not zero; NaN is not zero.
Tensor any_of(const Tensor& x, const Axes& axes = None, bool keepdims = false);
Tensor all_of(const Tensor& x, const Axes& axes = None, bool keepdims = false);
/// bool (N,): whether fewer than k of predictions (N, C) are larger than the one of the target (N,), an int64 id.
Tensor in_top_k(const Tensor& predictions, const Tensor& targets, std::int64_t k);

extern const OpDef argmax_op, argmin_op, any_op, all_op, in_top_k_op;

}  // namespace kassette
