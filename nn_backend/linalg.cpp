// nn_backend/linalg.cpp - products of tensors.
#include <kassette/backend/linalg.h>

#include "core/rank.h"
#include "core/text.h"
#include "ops/product/contraction.h"
#include "ops/engine/dispatch.h"
#include "ops/product/matmul.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"
#include "ops/shape/shaping.h"
#include "ops/sparse/sparse.h"

namespace kassette {
using namespace ops;
namespace backend {

namespace {

bool sparse_operand(const Operand& x) { return is_tensor_operand(x) && is_sparse(tensor_of(x)); }

/// Throws unless a sparse matrix and a dense matrix or vector can be multiplied. An unknown rank is checked when the
/// function is called.
void check_sparse(const TensorDesc& sparse, const TensorDesc& dense, std::int64_t k, std::int64_t of_sparse,
                  bool first) {
  const TensorSpec &s = sparse, &d = dense;
  auto both = [&] { return first ? text("sparse ", s, " x ", d) : text(d, " x sparse ", s); };
  if (s.rank != 2 || d.rank > 2 || d.rank == 0)
    fail<ValueError>({"dot"}, both(), kExpected, "a sparse matrix takes a dense matrix or vector");
  if (differ(k, of_sparse))
    fail<ValueError>({"dot"}, both(), ": inner dimensions differ, ", first ? of_sparse : k, " against ",
                     first ? k : of_sparse);
}

Tensor dot_sparse(const Tensor& x, const Tensor& y) {
  const TensorDesc &a = Access::desc(x), &b = Access::desc(y);
  check_sparse(a, b, b.rank > 0 ? b.dims[0] : kUnknown, a.dims[1], /*first=*/true);
  return sparse_dot(x, y);
}
/// The product of the transposes, transposed.
Tensor dot_before_sparse(const Tensor& x, const Tensor& y) {
  const TensorDesc &a = Access::desc(x), &b = Access::desc(y);
  check_sparse(b, a, a.rank > 0 ? a.dims[a.rank - 1] : kUnknown, b.dims[0], /*first=*/false);
  if (a.rank == 1) return sparse_dot(y, x, /*transposed=*/true);
  return transpose(sparse_dot(y, transpose(x), /*transposed=*/true));
}

}  // namespace

Tensor dot(const Operand& x, const Operand& y) {
  KASSETTE_DISPATCH(dot, x, y);
  DType dtype = dtype_for_numbers(x, y);
  if (bool first = sparse_operand(x); first || sparse_operand(y)) {
    if (first && sparse_operand(y))
      fail<NotImplementedError>({"dot"}, "both operands are sparse", kRemedy, "densify one of them: K::to_dense(y)");
    Arg a(x, dtype, {"dot", "x"}), b(y, dtype, {"dot", "y"});
    if (!a.tensor().defined()) fail_empty({"dot", "x"});
    if (!b.tensor().defined()) fail_empty({"dot", "y"});
    return attribute_errors("dot", [&] { return first ? dot_sparse(a, b) : dot_before_sparse(a, b); });
  }
  return attribute_errors("dot", [&] { return ops::dot(Arg(x, dtype, {"dot", "x"}), Arg(y, dtype, {"dot", "y"})); });
}

Tensor batch_dot(const Operand& x_operand, const Operand& y_operand, const Axes& axes) {
  KASSETTE_DISPATCH(batch_dot, x_operand, y_operand, axes);
  DType dtype = dtype_for_numbers(x_operand, y_operand);
  Arg x(x_operand, dtype, {"batch_dot", "x"}), y(y_operand, dtype, {"batch_dot", "y"});
  if (axes.size_ == 0 || axes.size_ > 2)
    fail<ValueError>({"batch_dot", "axes"}, "are ", axes.size_, kExpected,
                     "there must be one of x and one of y, or one that stands for both");
  bool given = axes.size_ > 0;
  int of_x = given ? axes.axes_[0] : -1, of_y = given ? axes.axes_[axes.size_ - 1] : kDefaultAxis;
  return attribute_errors("batch_dot", [&] { return ops::batch_dot(x, y, of_x, of_y); });
}

}  // namespace backend

Tensor matmul(const Operand& x, const Operand& y) {
  KASSETTE_ROUTE("matmul", kassette::matmul(x, y), x, y);
  if (backend::sparse_operand(x) || backend::sparse_operand(y)) return backend::dot(x, y);
  DType dtype = dtype_for_numbers(x, y);
  Arg a(x, dtype, {"matmul", "x"}), b(y, dtype, {"matmul", "y"});
  if (!a.tensor().defined()) fail_empty({"matmul", "x"});
  if (!b.tensor().defined()) fail_empty({"matmul", "y"});
  if (b.desc().rank < 0) fail_unknown_rank({"matmul", "y"});
  return attribute_errors("matmul",
                          [&] { return b.desc().rank > 2 && a.desc().rank != 1 ? ops::matmul(a, b) : ops::dot(a, b); });
}

}  // namespace kassette
