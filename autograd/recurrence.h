// autograd/recurrence.h - loops over the elements of tensors: what rnn, map_fn, foldl and foldr are made of.
#pragma once
#include <string>

#include "autograd/control.h"

namespace kassette {

/// How a loop goes.
struct LoopForm {
  const char* what;                // the function's name, for messages
  int n_outputs = 0;               // outputs that are stacked
  int axis = 0;                    // of time, in elements, mask and stacked outputs
  bool reverse = false;            // from the last element to the first; outputs are stacked as they come
  bool last = false;               // the outputs of the last step are results too: stacked, last, states
  bool batched = false;            // the other of the first two axes is that of the samples
  bool zero_masked = false;        // the output of a masked sample: zeros, else the one before
  std::int64_t length = kUnknown;  // the number of steps where the caller said it
};
/// A loop with what it goes over: elements, initial states (the carry) and a mask.
struct Recurrence : LoopForm {
  Tensors xs, states;
  Tensor mask;  // bool, of rank 2: which samples take part in which step. Empty: all in all
};

/// A step: the elements of this step and the states -> outputs, then the new states.
using StepOf = Callable<Tensors(const Tensors& xs, const Tensors& states)>;

/// On concrete tensors outside of K::symbolic a plain loop; else, and with checkpoints, one node.
Tensors recur(const Recurrence& r, const StepOf& step);
/// The plain loop on any tensors, symbolic ones too; the number of steps is known.
Tensors unrolled(const Recurrence& r, const StepOf& step);
/// One node. Time is axis 0 of all elements, and there is no mask: recur makes those elements and states.
Tensors scan(const Recurrence& r, bool symbolic, const StepOf& step);

/// The number of elements along the axis of time, or kUnknown. Throws where tensors, or the caller's word, disagree.
std::int64_t loop_length(const LoopForm& form, const Tensors& xs);
/// Throws unless the state that a step returned is what it was.
void check_state(const char* what, const TensorSpec& before, const TensorSpec& after, std::int64_t i);
/// Throws unless what a step returned has a row for each sample.
void check_rows(const char* what, const std::string& which, const TensorSpec& s, std::int64_t samples);

/// One tensor of a loop's outputs, in its name.
Tensor stack_for(const char* what, const Tensors& list, int axis = 0);

}  // namespace kassette
