// autograd/program/build.h - from a segment of the tape to the instructions of a program.
#pragma once
#include <utility>
#include <vector>

#include "autograd/program/program.h"

namespace kassette::autograd {

/// A variable and its new value: entry `number` of a function's list of updates.
struct SetPair {
  Tensor variable, value;
  int number;
};

/// What a program is built from: the arguments of K::function, or the traced body of a loop or branch.
struct ProgramRequest {
  Tensors inputs, outputs;
  Tensors update_ops;  // made by update() in a symbolic scope, or lazily
  std::vector<SetPair> set_pairs;
  Tensors fetches;                                   // computed, but not returned
  std::vector<std::pair<Tensor, Tensor>> feed_dict;  // a tensor that is no input, and the value to use for it
  const char* what = "function";                     // the function that errors name
  bool body = false;                                 // of control flow: updates are refused, runs are given random keys
};

/// A built program. `nested`: an instruction is a deferred call, see Note [Nested functions].
struct BuiltProgram {
  Program program;
  bool nested;
};
/// `keeps_calls`: calls of large functions may remain single instructions, see Note [Nested functions].
BuiltProgram build_program(const ProgramRequest& request, bool keeps_calls);

}  // namespace kassette::autograd
