// autograd/loops/steps.h - the eager loop: it calls the step with its elements, checks what that returns, and stacks
// the outputs.
#pragma once
#include <string>

#include "autograd/loops/loop_request.h"
#include "ops/shape/like.h"

namespace kassette::autograd {

/// The number of elements along the time axis, or kUnknown. Throws ValueError if xs disagree, with each other or with
/// form.length.
std::int64_t loop_length(const LoopForm& form, const Tensors& xs);
/// Throws unless the state that a step returned has the shape and dtype that it had before.
void check_state(const char* what, const TensorSpec& before, const TensorSpec& after, std::int64_t i);
/// Throws unless an output or state of shape `s` has a row for each sample.
void check_rows(const char* what, const std::string& which, const TensorSpec& s, std::int64_t samples);

/// Stacks a loop's outputs; errors name the loop.
Tensor stack_for(const char* what, const Tensors& list, int axis = 0);

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
