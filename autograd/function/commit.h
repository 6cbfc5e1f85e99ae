// autograd/function/commit.h - the end of a plan's call: the tail runs and the variables get their new values.
#pragma once
#include "autograd/function/frame.h"

namespace kassette::autograd {

/// Runs the tail and applies the updates of a call whose outputs are computed. Throws before it changes a variable:
/// Note [Commit].
void commit(Frame& f);

}  // namespace kassette::autograd
