// autograd/walk.h - rewinding: one backward pass over a segment of the tape.
#pragma once
#include "ops/op.h"

namespace kassette {

/// The op behind the results of an eager gradients(): one node that holds the loss. Its adjoint is the walk run again,
/// recorded; see expand_backward.
extern const OpDef backward_row;

/// Cotangents of xs given `seeds`, the cotangents of ys; empty where ys do not depend on x. The adjoints' ops are recorded
/// iff recording is on. xs must have nodes.
Tensors walk(const Tensors& ys, const Tensors& xs, const Tensors& seeds);

/// The results of a backward node again, as recorded ops: what a second gradients() or a plan continues from.
Tensors expand_backward(const Node& node);

/// d(sum of loss)/dx for each x: K::gradients. Throws ValueError where x was never recorded.
Tensors gradients(const Tensor& loss, const Tensors& xs);

}  // namespace kassette
