// ops/softmax/softmax.h - softmax, and losses that are numerically stable only if they are fused with it, as functions
// of tensors.
#pragma once
#include "ops/engine/op.h"

namespace kassette::ops {

/// exp(x) / sum(exp(x)) along one axis, without overflow.
Tensor softmax(const Tensor& x, int axis = -1);
/// log(softmax(x)), without underflow.
Tensor log_softmax(const Tensor& x, int axis = -1);
/// log(sum(exp(x))) over axes, without overflow.
Tensor logsumexp(const Tensor& x, const Axes& axes = None, bool keepdims = false);
/// sum(target * -log(softmax(logits))) over one axis, which is removed; target and logits have the same shape.
Tensor softmax_cross_entropy(const Tensor& target, const Tensor& logits, int axis = -1);
/// -sum(target * log(q)) over one axis, with q = p / sum(p) clipped to [epsilon, 1 - epsilon]; target and p have the
/// same shape.
Tensor probability_cross_entropy(const Tensor& target, const Tensor& p, int axis, double epsilon);
/// -log(q[class] / sum(q)) along the last axis, with q = p clipped to [epsilon, 1 - epsilon]; classes are int64 ids,
/// shaped like p without that axis.
Tensor sparse_probability_cross_entropy(const Tensor& classes, const Tensor& p, double epsilon);
/// -(target * log(q) + (1 - target) * log(1 - q)), elementwise, with q = p clipped to [epsilon, 1 - epsilon]; target
/// and p have the same shape.
Tensor binary_probability_cross_entropy(const Tensor& target, const Tensor& p, double epsilon);
/// -log(softmax(logits)[class]) along the last axis; classes are int64 ids, shaped like logits without that axis.
Tensor sparse_softmax_cross_entropy(const Tensor& classes, const Tensor& logits);
/// max(z, 0) - z * t + log(1 + exp(-|z|)) for targets t and logits z, elementwise; both have the same shape.
Tensor sigmoid_cross_entropy(const Tensor& target, const Tensor& logits);
/// x[..., class] for each class of the int64 `classes`, shaped like x without its last axis. Throws ValueError for a
/// class out of range.
Tensor take_along_axis(const Tensor& x, const Tensor& classes);

extern const OpDef softmax_op, log_softmax_op, softmax_grad_op, logsumexp_op, logsumexp_grad_op,
    softmax_cross_entropy_op, softmax_cross_entropy_grad_op, sparse_softmax_cross_entropy_op,
    sparse_softmax_cross_entropy_grad_op, sigmoid_cross_entropy_op, probability_cross_entropy_op,
    probability_cross_entropy_grad_op, sparse_probability_op, sparse_probability_grad_op, binary_probability_op,
    binary_probability_grad_op, take_along_axis_op, scatter_along_axis_op;

}  // namespace kassette::ops
