// ops/matmul.h - matrix products and contractions.
#pragma once
#include "ops/op.h"

namespace kassette {

/// a x b over the last two axes, each transposed by flag; leading axes are batches and broadcast.
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false);
/// The last axis of x with the last but one of y, all other axes of x, then all other axes of y; rank 1 as in NumPy.
Tensor dot(const Tensor& x, const Tensor& y);
/// Per sample of axis 0 of both, axis `x_axis` of x with `y_axis` of y. Without other axes the result is (batch, 1).
Tensor batch_dot(const Tensor& x, const Tensor& y, int x_axis, int y_axis);
/// The same where a rank is not known before the function is called: that decides then.
Tensor unranked_dot(const Tensor& x, const Tensor& y);
Tensor unranked_batch_dot(const Tensor& x, const Tensor& y, int x_axis, int y_axis);

extern const OpDef matmul_op, unranked_product_op;

}  // namespace kassette
