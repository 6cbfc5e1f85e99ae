// autograd/update.h - changing variables: at once, or when a plan commits.
#pragma once
#include "autograd/plan.h"

namespace kassette {

extern const OpDef update_row;

/// x <- value, x + value or x - value. At once, and returns x, where the scope is eager and the value is concrete; else a
/// recorded op, pure in value, whose effect a plan applies. `what` is the function's name.
Tensor update(const Tensor& x, const Tensor& value, Effect::Mode mode, const char* what);

/// cell <- cell +- increment, in place where the cell alone owns its bytes. The shapes agree.
void accumulate(Cell& cell, const Body& increment, bool subtract);

}  // namespace kassette
