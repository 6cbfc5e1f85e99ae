// ops/softmax.h - softmax and the losses that are stable only together with it, as functions of tensors. Axes are encoded as by
// encode_axes, with keepdims.
#pragma once
#include "ops/op.h"

namespace kassette {

/// exp(x) / sum(exp(x)) along one axis; stable.
Tensor softmax(const Tensor& x, int axis = -1);
/// Its logarithm.
Tensor log_softmax(const Tensor& x, int axis = -1);
/// log(sum(exp(x))) over axes; stable.
Tensor logsumexp(const Tensor& x, const Axes& axes = None, bool keepdims = false);
/// sum(target * (logsumexp(logits) - logits)) along one axis, which goes; target and logits have one shape.
Tensor softmax_cross_entropy(const Tensor& target, const Tensor& logits, int axis = -1);
/// -sum(target * log(q)) along one axis, q = p / sum(p) between epsilon and 1 - epsilon; target and p have one shape.
Tensor probability_cross_entropy(const Tensor& target, const Tensor& p, int axis, double epsilon);
/// -log(q[class] / sum(q)) along the last axis, q = p between epsilon and 1 - epsilon; classes are int64 ids of the shape without it.
Tensor sparse_probability_cross_entropy(const Tensor& classes, const Tensor& p, double epsilon);
/// -(target * log(q) + (1 - target) * log(1 - q)), elementwise, q = p between epsilon and 1 - epsilon; target and p have one shape.
Tensor binary_probability_cross_entropy(const Tensor& target, const Tensor& p, double epsilon);
/// logsumexp(logits) - logits[class] along the last axis; classes are int64 ids of the shape without it.
Tensor sparse_softmax_cross_entropy(const Tensor& classes, const Tensor& logits);
/// max(z, 0) - z * t + log(1 + exp(-|z|)), elementwise; target and logits have one shape.
Tensor sigmoid_cross_entropy(const Tensor& target, const Tensor& logits);
/// x[..., classes[...]]; throws ValueError for a class out of range.
Tensor take_along_axis(const Tensor& x, const Tensor& classes);

extern const OpDef softmax_op, log_softmax_op, softmax_grad_op, logsumexp_op, softmax_from_logsumexp_op,
    softmax_cross_entropy_op, softmax_cross_entropy_grad_op, sparse_softmax_cross_entropy_op,
    sparse_softmax_cross_entropy_grad_op, sigmoid_cross_entropy_op, probability_cross_entropy_op,
    probability_cross_entropy_grad_op, sparse_probability_op, sparse_probability_grad_op, binary_probability_op,
    binary_probability_grad_op, take_along_axis_op, scatter_along_axis_op;

}  // namespace kassette
