// autograd/program/residuals_pass.h - the pass that has adjoints take what the run of a body has saved.
#pragma once
#include "autograd/program/program.h"

namespace kassette::autograd {

/// Has the instructions that run a body return residuals, and the instructions that differentiate it take them: Note
/// [Residuals].
void find_residuals(Program& p);

}  // namespace kassette::autograd
