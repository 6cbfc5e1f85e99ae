// nn_backend/linalg.cpp - products of tensors.
#include <kassette/backend/linalg.h>

#include "core/text.h"
#include "nn_backend/named.h"
#include "ops/dispatch.h"
#include "ops/matmul.h"
#include "ops/operand.h"
#include "ops/shaping.h"
#include "ops/sparse.h"

namespace kassette {
namespace backend {

namespace {

bool sparse_operand(const Operand& x) { return is_tensor_operand(x) && is_sparse(tensor_of(x)); }

/// A sparse matrix and a dense matrix or vector.
Tensor dot_sparse(const Tensor& x, const Tensor& y) {
  const Body &a = Access::body(x), &b = Access::body(y);
  if (a.rank != 2 || b.rank < 0 || b.rank > 2 || b.rank == 0)
    fail<ValueError>("dot: sparse ", static_cast<const Spec&>(a), " x ", static_cast<const Spec&>(b), ": a sparse matrix takes a dense matrix or vector");
  if (b.rank == 2) return sparse_dot(x, y);
  return squeeze(sparse_dot(x, expand_dims(y, 1)), 1);
}
/// A dense matrix or vector and a sparse matrix: the product of the transposes, transposed.
Tensor dot_before_sparse(const Tensor& x, const Tensor& y) {
  const Body &a = Access::body(x), &b = Access::body(y);
  if (b.rank != 2 || a.rank < 0 || a.rank > 2 || a.rank == 0)
    fail<ValueError>("dot: ", static_cast<const Spec&>(a), " x sparse ", static_cast<const Spec&>(b), ": a sparse matrix takes a dense matrix or vector");
  if (std::int64_t k = a.dims[a.rank - 1]; k >= 0 && b.dims[0] >= 0 && k != b.dims[0])
    fail<ValueError>("dot: ", static_cast<const Spec&>(a), " x sparse ", static_cast<const Spec&>(b), ": inner dimensions differ, ", k, " against ", b.dims[0]);
  if (a.rank == 2) return transpose(sparse_dot(y, transpose(x), /*transposed=*/true));
  return squeeze(sparse_dot(y, expand_dims(x, 1), /*transposed=*/true), 1);
}

}  // namespace

Tensor dot(const Operand& x, const Operand& y) {
  KASSETTE_DISPATCH(dot, x, y);
  DType dtype = dtype_beside(x, y);
  if (bool first = sparse_operand(x); first || sparse_operand(y)) {
    if (first && sparse_operand(y)) fail<NotImplementedError>("dot: both operands are sparse; densify one of them: K::to_dense(y)");
    Arg a(x, dtype, "dot"), b(y, dtype, "dot");
    if (!a.tensor().defined() || !b.tensor().defined()) fail<ValueError>("dot: an empty Tensor (an uninitialised variable?)");
    return in_name_of("dot", [&] { return first ? dot_sparse(a, b) : dot_before_sparse(a, b); });
  }
  return in_name_of("dot", [&] { return kassette::dot(Arg(x, dtype, "dot"), Arg(y, dtype, "dot")); });
}

Tensor batch_dot(const Operand& x_operand, const Operand& y_operand, const Axes& axes) {
  KASSETTE_DISPATCH(batch_dot, x_operand, y_operand, axes);
  DType dtype = dtype_beside(x_operand, y_operand);
  Arg x(x_operand, dtype, "batch_dot"), y(y_operand, dtype, "batch_dot");
  if (axes.size_ == 0 || axes.size_ > 2)
    fail<ValueError>("batch_dot: ", axes.size_, " axes given; it takes one of x and one of y, or one that stands for both");
  bool given = axes.size_ > 0, matrix = y.tensor().defined() && y.body().rank == 2;
  int of_x = given ? axes.axes_[0] : -1, of_y = given ? axes.axes_[axes.size_ - 1] : matrix ? -1 : -2;
  return in_name_of("batch_dot", [&] { return kassette::batch_dot(x, y, of_x, of_y); });
}

}  // namespace backend
}  // namespace kassette
