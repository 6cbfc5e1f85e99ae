// autograd/steps.h - the plain loop: it hands out the elements, calls its step, checks and gathers.
#pragma once
#include "autograd/recurrence.h"
#include "ops/like.h"

namespace kassette {

/// How a mask fits the elements.
inline ShapeCheck mask_shape_check(const LoopForm& form) {
  return form.axis == 0 ? ShapeCheck::mask_time_major : ShapeCheck::mask;
}
/// Throws unless a step returned what it has to; `before`: the outputs of an earlier step, or null.
void check_step(const LoopForm& form, const Tensors& out, const Tensors& states, const Tensor* before,
                const TensorSpec& x, bool masked);

/// Has sizes that a placeholder does not know yet checked when they are known: of the first step alone, for the others are as it is.
void assert_step_shapes(const LoopForm& form, Tensors& out, const Tensors& states, const Tensor& x, bool masked);

/// Calls step(xs, states, t) for each step t of a loop whose length is known, and returns what the loop returns.
Tensors run_steps(const LoopForm& form, const Tensors& xs, Tensors states,
                  const Callable<Tensors(const Tensors& xs, const Tensors& states, std::int64_t t)>& step);

}  // namespace kassette
