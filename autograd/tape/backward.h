// autograd/tape/backward.h - reverse-mode differentiation: one backward pass over a segment of the tape.
#pragma once
#include "ops/engine/op.h"

namespace kassette::autograd {

/// What a backward pass does with saved values. `retain`: keeps them for further passes. `rematerialize`: releases
/// those that can be computed again from the rest, see Note [Rematerialization]. `free`: releases each after its last
/// use; no further pass is possible.
enum class SavedValues : std::uint8_t { retain, rematerialize, free };

/// Called with the cotangent of each x as soon as it is complete, while the pass continues over older ops.
class GradientHook {
 public:
  virtual void on_gradient(std::int64_t i, const Tensor& cotangent) = 0;

 protected:
  ~GradientHook() = default;
};

/// The cotangents of xs, given `seeds`, the cotangents of ys; empty for an x that ys do not depend on. The adjoints'
/// ops are recorded iff recording is on. Each x must have a node. `ends`: tensors that are treated as leaves although
/// they were computed.
Tensors backward(const Tensors& ys, const Tensors& xs, const Tensors& seeds, SavedValues saved = SavedValues::retain,
                 GradientHook* hook = nullptr, const Tensors& ends = {});

}  // namespace kassette::autograd
