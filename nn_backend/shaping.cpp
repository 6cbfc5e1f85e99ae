// nn_backend/shaping.cpp - ops on shapes.
#include <kassette/backend/shaping.h>

#include "core/text.h"
#include "nn_backend/one_op.h"
#include "ops/engine/dispatch.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"
#include "ops/shape/shaping.h"
#include "ops/sparse/sparse.h"

namespace kassette {
using namespace ops;
namespace backend {

Tensor concatenate(const Tensors& tensors, int axis) {
  KASSETTE_DISPATCH(concatenate, tensors, axis);
  std::int64_t sparse = 0;
  for (const Tensor& t : tensors) sparse += is_sparse(t);
  if (sparse == 0) return ops::concatenate(tensors, axis);
  return attribute_errors("concatenate", [&] {
    if (sparse == tensors.size()) return sparse_concatenate(tensors, axis);
    Tensors dense;
    for (const Tensor& t : tensors) dense.push_back(is_sparse(t) ? to_dense(t) : t);
    return ops::concatenate(dense, axis);
  });
}
Tensor stack(const Tensors& x, int axis) {
  KASSETTE_DISPATCH(stack, x, axis);
  return ops::stack(x, axis);
}
KASSETTE_ONE_OP(reshape, (const Operand& x, const Dims& shape), shape)
Tensor permute_dimensions(const Operand& x, const Axes& pattern) {
  KASSETTE_DISPATCH(permute_dimensions, x, pattern);
  return permute(Arg(x, DType(), {"permute_dimensions", "x"}), pattern);
}
Tensor transpose(const Operand& x) {
  KASSETTE_DISPATCH(transpose, x);
  Arg t(x, DType(), {"transpose", "x"});
  return attribute_errors("transpose", [&] { return is_sparse(t.tensor()) ? sparse_transpose(t) : ops::transpose(t); });
}
KASSETTE_ONE_OP(repeat_elements, (const Operand& x, int rep, int axis), rep, axis)
Tensor repeat(const Operand& x, int n) {
  KASSETTE_DISPATCH(repeat, x, n);
  Arg t(x, DType(), {"repeat", "x"});
  if (!t.tensor().defined()) fail_empty({"repeat", "x"});
  if (t.desc().rank != 2)
    fail<AssertionError>({"repeat", "x"}, "of shape ", static_cast<const TensorSpec&>(t.desc()), kExpected,
                         "the rank must be 2: (samples, features)");
  if (n < 1) fail<ValueError>({"repeat", "n"}, "is ", n, kExpected, "it must be at least 1");
  return attribute_errors("repeat", [&] { return ops::repeat_elements(ops::expand_dims(t, 1), n, 1); });
}
KASSETTE_ONE_OP(tile, (const Operand& x, const Dims& n), n)
Tensor flatten(const Operand& x) {
  KASSETTE_DISPATCH(flatten, x);
  return ops::flatten(Arg(x, DType(), {"flatten", "x"}), 0);
}
Tensor batch_flatten(const Operand& x) {
  KASSETTE_DISPATCH(batch_flatten, x);
  return attribute_errors("batch_flatten", [&] { return ops::flatten(Arg(x, DType(), {"batch_flatten", "x"}), 1); });
}
KASSETTE_ONE_OP(expand_dims, (const Operand& x, int axis), axis)
KASSETTE_ONE_OP(squeeze, (const Operand& x, int axis), axis)
KASSETTE_ONE_OP(reverse, (const Operand& x, const Axes& axes), axes)
Tensor slice(const Operand& x, const Dims& start, const Dims& size) {
  KASSETTE_DISPATCH(slice, x, start, size);
  return slice_from(Arg(x, DType(), {"slice", "x"}), start, size);
}
Tensor one_hot(const Operand& indices, int num_classes) {
  KASSETTE_DISPATCH(one_hot, indices, num_classes);
  return ops::one_hot(Arg(indices, int32, {"one_hot", "indices"}), num_classes);
}
Tensor gather(const Operand& reference, const Operand& indices) {
  KASSETTE_DISPATCH(gather, reference, indices);
  Arg x(reference, DType(), {"gather", "reference"}), at(indices, int32, {"gather", "indices"});
  return ops::gather(x, at);
}

}  // namespace backend
}  // namespace kassette
