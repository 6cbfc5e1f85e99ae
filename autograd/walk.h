// autograd/walk.h - rewinding: one backward pass over a segment of the tape.
#pragma once
#include "ops/op.h"

namespace kassette {

/// The op behind the results of an eager gradients(): one node that holds the loss. Its adjoint is the walk run again,
/// recorded; see expand_backward.
extern const OpDef backward_row;

/// What a walk leaves of the saved values on its way. `leaves`: what is needed to compute the others again, see
/// Note [Losses given up]. `nothing`: nobody walks here again.
enum class Kept : std::uint8_t { everything, leaves, nothing };

/// Cotangents of xs given `seeds`, the cotangents of ys; empty where ys do not depend on x. The adjoints' ops are recorded
/// iff recording is on. xs must have nodes.
Tensors walk(const Tensors& ys, const Tensors& xs, const Tensors& seeds, Kept kept = Kept::everything);

/// The results of a backward node again, as recorded ops: what a second gradients() or a plan continues from.
Tensors expand_backward(const Node& node);

/// d(sum of loss)/dx for each x: K::gradients. Throws ValueError where x was never recorded. `leaves`: the caller gives up
/// the loss, the only tensor through which it holds the segment.
Tensors gradients(const Tensor& loss, const Tensors& xs, Kept kept = Kept::everything);

}  // namespace kassette
