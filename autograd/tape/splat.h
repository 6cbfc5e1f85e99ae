// autograd/tape/splat.h - tensors whose elements are all equal, stored as one element.
#pragma once
#include "ops/engine/op.h"

namespace kassette::autograd {

// Note [Splats]
// The gradient of sum(x) with respect to x is one number in the shape of x. If only elementwise instructions read it,
// it is stored as a splat: a tensor with its full shape and the storage of one element. Plans and backward passes make
// and read splats; they are materialized for a reader that is not elementwise (or float16 in a plan, broadcasting, an
// accelerator). A user never sees one.

inline bool is_splat(const TensorDesc& b) { return b.storage && b.storage->bytes < b.bytes(); }
/// Computes `out`, whose shape is known, as a splat. Returns false, and does nothing, unless the input is one number on
/// the CPU and `out` has more elements. The op must have `repeated`.
bool run_as_splat(const ops::OpCall& call, TensorDesc& out, std::int32_t origin = 0);
/// Materializes a splat: stores every element.
void write_out(TensorDesc& b);

}  // namespace kassette::autograd
