// ops/matmul.h - matrix products and contractions.
#pragma once
#include "devices/cpu/blas.h"
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

/// A product of two float matrices on the CPU, for whoever runs it in parts.
struct MatrixProduct {
  Product p;
  DType dtype;
  int rows, columns;   // which operand gives the rows of the result, and which its columns

  /// Of the call of a matmul whose result has that shape.
  static bool of(const Call& call, const Spec& out, MatrixProduct* to);
  /// As multiply_rows.
  void run_rows(std::int64_t begin, std::int64_t end, const std::byte* a, const std::byte* b, std::byte* out) const;
  /// As add_products; distances in bytes.
  void add_to(std::byte* sum, std::int64_t count, const std::byte* a, std::int64_t next_a, const std::byte* b, std::int64_t next_b) const;
};

extern const OpDef matmul_row, unranked_product_row;

}  // namespace kassette
