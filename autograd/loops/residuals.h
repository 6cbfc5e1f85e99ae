// autograd/loops/residuals.h - the values that control flow saves for its adjoints.
#pragma once
#include <vector>

#include "ops/engine/op.h"

namespace kassette::autograd {

// Note [Residuals]
// The adjoint of a `call` node is a `call` of a VjpProcedure on the same inputs and the cotangents. By itself it runs
// the body with recording on and then the backward pass over that tape. If a plan has both, the body runs once: the
// instruction that runs it returns its residuals as an additional output, and each instruction that differentiates it
// takes them as its last input (find_residuals, residuals_pass.cpp). So residuals are ordered and released as any value
// in a slot is. An adjoint may return residuals in turn, for its own adjoints; these extend those it took. Only inputs
// whose cotangents some adjoint wants have history, so that nothing is saved for the others; nodes of such a tape keep
// no constants, since no plan is made of them. In the usual case, that one adjoint takes the residuals of a loop and
// returns none itself, no ops are recorded at all: see Note [Loops].

/// The residuals of a recorded run: its inputs, as new nodes where an adjoint wants their cotangents, and its results.
struct Residuals {
  Tensors args, results;
  Ref<Extra> loop;  // instead of args: the LoopRun of a compiled loop, good for one backward pass. See Note [Loops]
};
/// Wraps residuals as the value of a tensor, and reads them from it.
Tensor residuals_value(Residuals residuals);
Residuals& residuals_in(const Tensor& value);

/// A tensor with the current value of `from`, without history.
Tensor detached(const TensorDesc& from);

/// What an adjoint differentiates: the procedure, the wanted inputs, which outputs have cotangents, and how many inputs
/// the procedure has. All pointers are null if the procedure is not an adjoint.
struct VjpSignature {
  Extra* of = nullptr;
  const std::vector<int>* wanted = nullptr;
  const std::vector<char>* has_dy = nullptr;
  int n_in = 0;
};

}  // namespace kassette::autograd
