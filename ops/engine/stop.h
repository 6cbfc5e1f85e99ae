// ops/engine/stop.h - stop_gradient: an identity without a gradient.
#pragma once
#include "ops/engine/op.h"

namespace kassette::ops {

extern const OpDef stop_gradient_op;
/// Returns x; gradients with respect to its inputs are None. It stays on the tape, so that a plan computes x again in
/// each run.
Tensor stop_gradient(const Tensor& x);

}  // namespace kassette::ops
