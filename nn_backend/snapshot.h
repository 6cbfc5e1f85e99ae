// nn_backend/snapshot.h - what a function gives where there is nothing to compute.
#pragma once
#include "ops/op.h"
#include "ops/shaping.h"

namespace kassette {
namespace backend {

/// x; of a variable the value that it has now. What a function gives is no variable, and no later update changes it.
inline Tensor copy_if_variable(const Tensor& x) {
  const Body& b = Access::body(x);
  return (b.flags & kLeaf) && b.node->cell->kind == Leaf::variable ? kassette::identity(x) : x;
}

}  // namespace backend
}  // namespace kassette
