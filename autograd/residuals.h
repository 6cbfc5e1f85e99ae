// autograd/residuals.h - what a body of control flow leaves for its adjoints.
#pragma once
#include <vector>

#include "ops/op.h"

namespace kassette {

// Note [Residuals]
// The adjoint of a `call` node is a `call` of a VjpProcedure on the same inputs and the cotangents. By itself it runs the body recorded and
// walks that tape. Where a plan holds both, the body runs once: the step that runs it has one output more, its tape, and each step
// that rewinds it has that as its last input (find_residuals, tape_pass.cpp). So a tape is made, lives and dies as any value in a slot does.
// An adjoint may keep a tape in turn, for its own adjoints; that one goes on from the tape that it took.
// Only inputs that some adjoint wants have history, so that nothing is saved for the others; nodes of such a tape keep no
// constants, for nobody replays them. Where one adjoint takes the tape of a loop and keeps none itself, which is the rule, no ops are
// recorded at all: see Note [Loops].

/// What ran recorded: its inputs, those wanted by an adjoint as nodes of their own, and its results.
struct Residuals {
  Tensors args, results;
  Ref<Extra> loop;    // instead of args: the run of a compiled loop, which can go back once. See Note [Loops]
};
/// A tape as the value of a tensor.
Tensor residuals_value(Residuals residuals);
Residuals& residuals_in(const Tensor& value);

/// The value of a tensor without history.
Tensor detached(const Body& from);

/// The inputs that a rewinding procedure differentiates with respect to, which outputs have cotangents, and how many inputs
/// the rewound one has; null for other procedures.
struct VjpSignature {
  Extra* of = nullptr;
  const std::vector<int>* wanted = nullptr;
  const std::vector<char>* has_dy = nullptr;
  int n_in = 0;
};

}  // namespace kassette
