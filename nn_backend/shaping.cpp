// nn_backend/shaping.cpp - ops on shapes.
#include <kassette/backend/shaping.h>

#include "core/text.h"
#include "nn_backend/named.h"
#include "ops/operand.h"
#include "ops/shaping.h"

namespace kassette {
namespace backend {

Tensor concatenate(const Tensors& tensors, int axis) { return kassette::concatenate(tensors, axis); }
Tensor stack(const Tensors& x, int axis) { return kassette::stack(x, axis); }
Tensor reshape(const Operand& x, const Dims& shape) { return kassette::reshape(Arg(x, DType(), "reshape"), shape); }
Tensor permute_dimensions(const Operand& x, const Axes& pattern) {
  return permute(Arg(x, DType(), "permute_dimensions"), pattern);
}
Tensor transpose(const Operand& x) {
  return in_name_of("transpose", [&] { return kassette::transpose(Arg(x, DType(), "transpose")); });
}
Tensor repeat_elements(const Operand& x, int rep, int axis) {
  return kassette::repeat_elements(Arg(x, DType(), "repeat_elements"), rep, axis);
}
Tensor repeat(const Operand& x, int n) {
  Arg t(x, DType(), "repeat");
  if (!t.tensor().defined()) fail<ValueError>("repeat: an empty Tensor (an uninitialised variable?)");
  if (t.body().rank != 2)
    fail<AssertionError>("repeat: a tensor of shape ", static_cast<const Spec&>(t.body()), "; it must have rank 2");
  if (n < 1) fail<ValueError>("repeat: n ", n, "; it is at least 1");
  return kassette::repeat_elements(kassette::expand_dims(t, 1), n, 1);
}
Tensor tile(const Operand& x, const Dims& n) { return kassette::tile(Arg(x, DType(), "tile"), n); }
Tensor flatten(const Operand& x) { return kassette::flatten(Arg(x, DType(), "flatten"), 0); }
Tensor batch_flatten(const Operand& x) {
  return in_name_of("batch_flatten", [&] { return kassette::flatten(Arg(x, DType(), "batch_flatten"), 1); });
}
Tensor expand_dims(const Operand& x, int axis) { return kassette::expand_dims(Arg(x, DType(), "expand_dims"), axis); }
Tensor squeeze(const Operand& x, int axis) { return kassette::squeeze(Arg(x, DType(), "squeeze"), axis); }
Tensor reverse(const Operand& x, const Axes& axes) { return kassette::reverse(Arg(x, DType(), "reverse"), axes); }
Tensor slice(const Operand& x, const Dims& start, const Dims& size) {
  return slice_from(Arg(x, DType(), "slice"), start, size);
}
Tensor one_hot(const Operand& indices, int num_classes) {
  return kassette::one_hot(Arg(indices, int32, "one_hot"), num_classes);
}
Tensor gather(const Operand& reference, const Operand& indices) {
  Arg x(reference, DType(), "gather"), at(indices, int32, "gather");
  return kassette::gather(x, at);
}

}  // namespace backend
}  // namespace kassette
