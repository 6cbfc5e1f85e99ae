// autograd/loops/steps.h - the eager loop: it calls the step with its elements, checks what that returns, and stacks
// the outputs.
#pragma once
#include "autograd/loops/loop_request.h"
#include "ops/shape/like.h"

namespace kassette::autograd {

/// The check that a mask's shape agrees with that of the elements.
inline ShapeCheck mask_shape_check(const LoopForm& form) {
  return form.axis == 0 ? ShapeCheck::mask_time_major : ShapeCheck::mask;
}
/// Throws unless a step returned as many states as it was given, with their shapes and dtypes, and outputs like those
/// of an earlier step, `before`, if that is not null.
void check_step(const LoopForm& form, const Tensors& out, const Tensors& states, const Tensor* before,
                const TensorSpec& x, bool masked);

/// Adds ops that check sizes which a placeholder leaves unknown. For the first step alone: the shapes of the others
/// equal its.
void assert_step_shapes(const LoopForm& form, Tensors& out, const Tensors& states, const Tensor& x, bool masked);

/// Applies a mask to the results of a step, `got`, which have been checked. `before`: the outputs of the step before,
/// or null.
using MaskStep = Callable<void(const Tensors& xs, const Tensors& states, const Tensor* before, Tensors& got)>;

/// Calls step(xs, states, t) for each step t of a loop whose length is known. Returns the results of the loop.
Tensors run_steps(const LoopForm& form, const Tensors& xs, Tensors states,
                  const Callable<Tensors(const Tensors& xs, const Tensors& states, std::int64_t t)>& step,
                  const MaskStep* mask = nullptr);

}  // namespace kassette::autograd
