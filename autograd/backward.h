// autograd/backward.h - rewinding: one backward pass over a segment of the tape.
#pragma once
#include "ops/op.h"

namespace kassette {

/// What a walk leaves of the saved values on its way. `leaves`: what is needed to compute the others again, see
/// Note [Rematerialization]. `nothing`: nobody walks here again.
enum class SavedValues : std::uint8_t { retain, rematerialize, free };

/// Told of each of xs whose cotangent is complete, while the pass goes on over older ops.
class Completions {
 public:
  virtual void complete(std::int64_t i, const Tensor& cotangent) = 0;

 protected:
  ~Completions() = default;
};

/// Cotangents of xs given `seeds`, the cotangents of ys; empty where ys do not depend on x. The adjoints' ops are recorded
/// iff recording is on. xs must have nodes. `ends`: tensors that are taken for independent of all others, whatever they were computed from.
Tensors backward(const Tensors& ys, const Tensors& xs, const Tensors& seeds, SavedValues kept = SavedValues::retain, Completions* told = nullptr, const Tensors& ends = {});

/// d(sum of loss)/dx for each x: K::gradients. Throws ValueError where x was never recorded. `leaves`: the caller gives up
/// the loss, the only tensor through which it holds the segment.
Tensors gradients(const Tensor& loss, const Tensors& xs, SavedValues kept = SavedValues::retain, Completions* told = nullptr);

}  // namespace kassette
