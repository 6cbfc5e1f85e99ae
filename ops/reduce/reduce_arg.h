// ops/reduce/reduce_arg.h - reductions without a gradient: argmax and argmin, any and all, in_top_k.
#pragma once
#include "ops/engine/op.h"

namespace kassette::ops {

/// int64 index of the first largest (smallest) element along an axis, with None in the flattened tensor. NaN counts as
/// the extreme.
Tensor argmax(const Tensor& x, const Axes& axis);
Tensor argmin(const Tensor& x, const Axes& axis);
/// bool: true if any (every) element is not zero; NaN is not zero.
Tensor any_of(const Tensor& x, const Axes& axes = None, bool keepdims = false);
Tensor all_of(const Tensor& x, const Axes& axes = None, bool keepdims = false);
/// bool (N,): true if fewer than k of a row of predictions (N, C) are larger than the target's. Targets are integer ids
/// (N,). False if the id is out of range or a prediction of the row is not finite.
Tensor in_top_k(const Tensor& predictions, const Tensor& targets, std::int64_t k);

extern const OpDef argmax_op, argmin_op, any_op, all_op, in_top_k_op;

}  // namespace kassette::ops
