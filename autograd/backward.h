// autograd/backward.h - reverse-mode differentiation: one backward pass over a segment of the tape.
#pragma once
#include "ops/op.h"

namespace kassette {

/// What a backward pass does with saved values. `retain`: keeps them, for further passes. `rematerialize`: keeps those from which the others can
/// be computed again, see Note [Rematerialization]. `free`: releases them as it goes; there is no further pass.
enum class SavedValues : std::uint8_t { retain, rematerialize, free };

/// Called for each of xs as soon as its cotangent is complete, while the pass goes on over older ops.
class Completions {
 public:
  virtual void complete(std::int64_t i, const Tensor& cotangent) = 0;

 protected:
  ~Completions() = default;
};

/// Cotangents of xs given `seeds`, the cotangents of ys; empty where ys do not depend on x. The adjoints' ops are recorded
/// iff recording is on. xs must have nodes. `ends`: tensors that are treated as leaves, whatever they were computed from.
Tensors backward(const Tensors& ys, const Tensors& xs, const Tensors& seeds, SavedValues saved = SavedValues::retain,
                 Completions* told = nullptr, const Tensors& ends = {});

/// d(sum of loss)/dx for each x: K::gradients. Throws ValueError if x was never recorded. `rematerialize`: the caller
/// releases the loss, the only tensor through which it holds the segment.
Tensors gradients(const Tensor& loss, const Tensors& xs, SavedValues saved = SavedValues::retain,
                  Completions* told = nullptr);

}  // namespace kassette
