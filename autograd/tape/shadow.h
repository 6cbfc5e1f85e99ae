// autograd/tape/shadow.h - for tests: a hook that computes the engine's results a second time, in another way.
#pragma once
#include <kassette/api.h>

namespace kassette::autograd {

class Plan;

/// Compares the engine's results with those of another way. A test program installs one (tests/shadow.cpp).
class Shadow {
 public:
  /// Called in place of plan.run(args) when the user calls a function; returns its results.
  virtual Tensors call(const Plan& plan, const Tensors& args) = 0;
  /// Called before an eager backward pass; after_pass receives the returned tensors, and the gradients of the pass.
  virtual Tensors before_pass(const Tensor& loss, const Tensors& xs, const Tensor& seed) = 0;
  virtual void after_pass(const Tensors& before, const Tensors& gradients) = 0;
  /// Called with the results of a compiled loop's forward or backward pass. `recorded` computes the same with the ops
  /// on the tape.
  virtual void after_loop(const char* which, const Tensors& results, const Callable<Tensors()>& recorded) = 0;

 protected:
  ~Shadow() = default;
};
extern Shadow* shadow;

}  // namespace kassette::autograd
