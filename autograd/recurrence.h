// autograd/recurrence.h - loops along an axis of samples' times, with masks: what rnn and map_fn are made of.
#pragma once
#include "autograd/control.h"

namespace kassette {

/// How a loop goes.
struct LoopForm {
  const char* what;        // the function's name, for messages
  int n_outputs = 1;       // outputs that are stacked
  int axis = 0;            // of time, in elements, mask and stacked outputs
  bool reverse = false;    // from the last element to the first; outputs are stacked as they come
  bool last = false;       // the outputs of the last step are results too: stacked, last, states
  bool batched = false;    // the other of the first two axes is that of the samples
  bool zero_masked = false;              // the output of a masked sample: zeros, else the one before
  std::int64_t length = kUnknown;        // the number of steps where the caller said it
};
struct Recurrence : LoopForm {
  Tensors xs, states;
  Tensor mask;             // bool, of rank 2: which samples take part in which step. Empty: all in all
};
/// On concrete tensors outside of K::symbolic a plain loop; else one node.
Tensors recur(const Recurrence& r, const ScanFn& step);
/// The plain loop on any tensors, symbolic ones too; the number of steps is known.
Tensors unrolled(const Recurrence& r, const ScanFn& step);

}  // namespace kassette
