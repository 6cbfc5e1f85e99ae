// nn_backend/snapshot.h - results of K functions that would return their argument itself.
#pragma once
#include "ops/engine/op.h"
#include "ops/shape/shaping.h"

namespace kassette::backend::detail {

/// x, or, if it is a variable, its current value: the result of a K function is never a variable that a later update
/// changes.
inline Tensor copy_if_variable(const Tensor& x) {
  const TensorDesc& b = Access::desc(x);
  return (b.flags & kLeaf) && b.node->cell->kind == Leaf::variable ? ops::identity(x) : x;
}

}  // namespace kassette::backend::detail
