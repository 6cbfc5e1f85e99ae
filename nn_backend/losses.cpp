// nn_backend/losses.cpp - cross-entropies and in_top_k.
#include <kassette/backend/losses.h>

#include <kassette/backend/config.h>

#include "core/rank.h"
#include "core/sparse.h"
#include "ops/engine/axes.h"
#include "ops/engine/dispatch.h"
#include "ops/engine/expr.h"
#include "ops/shape/like.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"
#include "ops/shape/shaping.h"

namespace kassette {
using namespace ops;
namespace backend {
namespace {

/// Checks a target that is compared with the output element by element.
void check_target(const char* what, const Tensor& t, const Tensor& o) {
  if (!t.defined()) fail_empty({what, "target"});
  refuse_sparse({what, "target"}, t);
  DType a = Access::desc(t).dtype, b = Access::desc(o).dtype;
  if (a != b) fail<TypeError>({what}, a, " and ", b, kRemedy, "cast one of them (K::cast), tensors are not promoted");
}
void check_floats(const char* what, const Tensor& x) {
  if (!x.defined()) fail_empty({what, "output"});
  DType dtype = Access::desc(x).dtype;
  if (!dtype.is_float()) fail_not_float({what, "output"}, dtype);
}

/// Half types as float32: in float16 1 - epsilon is 1.
Tensor wide(const Tensor& x) { return Access::desc(x).dtype.size() < 4 ? cast(x, float32) : x; }

/// Class ids as int64, in which NaN has become an id that is out of range; a cast to integers would make it class 0.
Tensor class_ids(const Tensor& target) {
  return Access::desc(target).dtype.is_float() ? cast(where(equal(target, target), target, -1.0), int64)
                                               : cast(target, int64);
}

/// Class ids reshaped to z's shape without the last axis, if they have as many elements.
Tensor ids_shaped_like(const Tensor& target, const Tensor& z) {
  const At at{"sparse_categorical_crossentropy", "target"};
  if (!target.defined()) fail_empty(at);
  refuse_sparse(at, target);
  Tensor ids = class_ids(target);
  const TensorDesc &i = Access::desc(ids), &o = Access::desc(z);
  int rank = o.rank;
  if (rank >= 0 && i.rank == rank - 1) return ids;
  if (rank > 0 && o.known()) {
    if (i.known() && i.numel() * o.dims[rank - 1] != o.numel())
      fail<ValueError>({"sparse_categorical_crossentropy"}, "target holds ", i.numel(), " class ids ",
                       static_cast<const TensorSpec&>(i), " for output ", static_cast<const TensorSpec&>(o), kExpected,
                       "it must hold one for each row of the class axis");
    if (i.known()) return reshape(ids, Shape(o.dims, rank - 1));
  }
  Tensor rest = ops::max(z, -1);  // for its shape alone
  return reshape_like(assert_shape_of(ShapeCheck::class_ids, ids, rest), rest);
}

/// x with `axis` moved to the end.
Tensor axis_to_end(const Tensor& x, int axis) {
  int rank = Access::desc(x).rank;
  axis = place_axis("sparse_categorical_crossentropy", axis, Access::desc(x));
  if (axis == rank - 1) return x;
  Axes order(None);
  order.size_ = 0;
  for (int i = 0; i < rank; ++i)
    if (i != axis) order.axes_[order.size_++] = i;
  order.axes_[order.size_++] = axis;
  return permute(x, order);
}

}  // namespace

Tensor categorical_crossentropy(const Operand& target, const Operand& output, bool from_logits, int axis) {
  KASSETTE_DISPATCH(categorical_crossentropy, target, output, from_logits, axis);
  const char* what = "categorical_crossentropy";
  DType dtype = dtype_for_numbers(output, target);
  Arg o(output, dtype, {what, "output"}), t(target, dtype, {what, "target"});
  check_floats(what, o);
  checked_axes(what, o, axis, /*keepdims=*/false);
  if (from_logits) return attribute_errors(what, [&] { return softmax_cross_entropy(t, o, axis); });
  check_target(what, t, o);
  return attribute_errors(what, [&] {
    const TensorDesc &a = t.desc(), &b = o.desc();
    if (b.dtype.size() < 4 || !a.known() || !b.known())
      return cast(probability_cross_entropy(wide(assert_shape_of(ShapeCheck::categorical_crossentropy, t, o)), wide(o),
                                            axis, epsilon()),
                  b.dtype);
    assert_shape(ShapeCheck::categorical_crossentropy, a, b);
    return probability_cross_entropy(t, o, axis, epsilon());
  });
}

Tensor sparse_categorical_crossentropy(const Operand& target, const Operand& output, bool from_logits, int axis) {
  KASSETTE_DISPATCH(sparse_categorical_crossentropy, target, output, from_logits, axis);
  const char* what = "sparse_categorical_crossentropy";
  Arg o(output, DType(), {what, "output"}), t(target, int64, {what, "target"});
  check_floats(what, o);
  if (o.desc().rank < 0 && axis != -1)
    fail<ValueError>({what, "axis"}, "is ", axis, kExpected, "where the rank of output is unknown it must be -1");
  if (axis != -1 || o.desc().rank == 0) checked_axes(what, o, axis, /*keepdims=*/false);
  return attribute_errors(what, [&] {
    Tensor z = from_logits ? o.tensor() : wide(o);
    if (axis != -1 && Access::desc(z).rank > 0) z = axis_to_end(z, axis);
    if (from_logits) return sparse_softmax_cross_entropy(ids_shaped_like(t, z), z);
    return cast(sparse_probability_cross_entropy(ids_shaped_like(t, z), z, epsilon()), o.desc().dtype);
  });
}

Tensor binary_crossentropy(const Operand& target, const Operand& output, bool from_logits) {
  KASSETTE_DISPATCH(binary_crossentropy, target, output, from_logits);
  const char* what = "binary_crossentropy";
  DType dtype = dtype_for_numbers(output, target);
  Arg o(output, dtype, {what, "output"}), t(target, dtype, {what, "target"});
  check_floats(what, o);
  if (from_logits) return attribute_errors(what, [&] { return sigmoid_cross_entropy(t, o); });
  check_target(what, t, o);
  assert_shape(ShapeCheck::binary_crossentropy, t.desc(), o.desc());
  return attribute_errors(
      what, [&] { return cast(binary_probability_cross_entropy(wide(t), wide(o), epsilon()), o.desc().dtype); });
}

Tensor in_top_k(const Operand& predictions, const Operand& targets, int k) {
  KASSETTE_DISPATCH(in_top_k, predictions, targets, k);
  return ops::in_top_k(Arg(predictions, DType(), {"in_top_k", "predictions"}),
                       Arg(targets, int64, {"in_top_k", "targets"}), k);
}

}  // namespace backend
}  // namespace kassette
