// autograd/shadow.h - for tests: whoever does again, another way, what the engine does.
#pragma once
#include <kassette/api.h>

namespace kassette {

class Plan;

/// A test program sets one (tests/shadow.cpp); it compares what both ways give.
class Shadow {
 public:
  /// In the place of plan.run(args), of a function that the user calls.
  virtual Tensors call(const Plan& plan, const Tensors& args) = 0;
  /// Called before an eager backward pass. after_pass gets what it returns, and the gradients of the pass.
  virtual Tensors before_pass(const Tensor& loss, const Tensors& xs, const Tensor& seed) = 0;
  virtual void after_pass(const Tensors& before, const Tensors& gradients) = 0;
  /// What a compiled loop gave, there or back. `recorded` gives the same with its ops on the tape.
  virtual void after_loop(const char* which, const Tensors& results, const Callable<Tensors()>& recorded) = 0;

 protected:
  ~Shadow() = default;
};
inline constinit Shadow* shadow = nullptr;

}  // namespace kassette
