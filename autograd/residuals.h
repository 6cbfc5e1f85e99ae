// autograd/residuals.h - the values that a body of control flow keeps for its adjoints.
#pragma once
#include <vector>

#include "ops/op.h"

namespace kassette {

// Note [Residuals]
// The adjoint of a `call` node is a `call` of a VjpProcedure on the same inputs and the cotangents. By itself it runs the body with recording on
// and runs the backward pass over that tape. Where a plan holds both, the body runs once: the step that runs it has one more output, its
// residuals, and each step that differentiates it has these as its last input (find_residuals, residuals_pass.cpp). So residuals are made,
// live and die as any value in a slot does. An adjoint may keep residuals in turn, for its own adjoints, which continue from those that it took.
// Only inputs that some adjoint wants have history, so that nothing is saved for the others; nodes of such a tape keep no
// constants, since they are never replayed. Where one adjoint takes the residuals of a loop and keeps none itself, which is the usual case, no
// ops are recorded at all: see Note [Loops].

/// The inputs of a recorded run, as nodes of their own where an adjoint wants their cotangents, and its results.
struct Residuals {
  Tensors args, results;
  Ref<Extra> loop;  // instead of args: the run of a compiled loop, which can go back once. See Note [Loops]
};
/// Residuals as the value of a tensor, and back.
Tensor residuals_value(Residuals residuals);
Residuals& residuals_in(const Tensor& value);

/// The value of a tensor without history.
Tensor detached(const Body& from);

/// Of an adjoint: the procedure it differentiates, with respect to which inputs, which outputs have cotangents, and the number of inputs of that
/// procedure. Null pointers for other procedures.
struct VjpSignature {
  Extra* of = nullptr;
  const std::vector<int>* wanted = nullptr;
  const std::vector<char>* has_dy = nullptr;
  int n_in = 0;
};

}  // namespace kassette
