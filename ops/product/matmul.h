// ops/product/matmul.h - matrix products and contractions.
#pragma once
#include "ops/engine/cotangent.h"
#include "ops/engine/op.h"

namespace kassette::ops {

/// a x b over the last two axes, each transposed if its flag is set; leading axes are batches and broadcast. Zeros of
/// the operand that is a cotangent, if one is, stay zeros beside infinities and NaN.
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false,
              Cotangent cotangent = Cotangent::neither);
/// Contracts the last axis of x with the second to last of y. The result has the other axes of x, then those of y; rank
/// 1 is as in NumPy.
Tensor dot(const Tensor& x, const Tensor& y);
/// For each sample (axis 0 of both) contracts axis `x_axis` of x with `y_axis` of y. If no other axes are left, the
/// result is (batch, 1).
Tensor batch_dot(const Tensor& x, const Tensor& y, int x_axis, int y_axis);
/// dot() and batch_dot() of symbolic operands of unknown rank: the ranks at the call of the function decide which axes
/// are contracted.
Tensor unranked_dot(const Tensor& x, const Tensor& y);
Tensor unranked_batch_dot(const Tensor& x, const Tensor& y, int x_axis, int y_axis);

extern const OpDef matmul_op, unranked_product_op;

}  // namespace kassette::ops
