// autograd/loops/loop_request.h - loops over the elements of tensors, the common part of rnn, map_fn, foldl and foldr.
#pragma once
#include <kassette/api.h>

#include "autograd/program/program.h"

namespace kassette::autograd {

/// The options of a loop.
struct LoopForm {
  /// The function that errors name, and its arguments for the elements and for the initial states.
  const char *what, *elements = "elems", *initial = "initializer";
  int n_outputs = 0;     // outputs that are stacked
  int axis = 0;          // the time axis of elements, mask and stacked outputs
  bool reverse = false;  // from the last element to the first; outputs are stacked in the order of the steps
  // the results are the stacked outputs, the outputs of the last step and the states; if false, the second are left out
  bool last = false;
  bool batched = false;            // the first two axes are time and samples, in either order
  bool zero_masked = false;        // a masked sample's output is zeros; else that of the step before
  std::int64_t length = kUnknown;  // the number of steps, if the caller gave it
};
/// A loop with its inputs: elements, initial states (the carry) and a mask.
struct LoopRequest : LoopForm {
  Tensors xs, states;
  Tensor mask;  // bool, of rank 2: which samples take part in which step. Empty: every sample in every step
};

/// The user's step: elements and states -> outputs, then the new states.
using StepOf = Callable<Tensors(const Tensors& xs, const Tensors& states)>;

/// Runs or records a loop. Concrete tensors outside of K::symbolic: an eager loop. Symbolic tensors, or checkpoints:
/// one node.
Tensors run_loop(const LoopRequest& r, const StepOf& step);
/// The loop unrolled, on concrete or symbolic tensors; the number of steps must be known.
Tensors unrolled(const LoopRequest& r, const StepOf& step);
}  // namespace kassette::autograd
