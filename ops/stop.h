// ops/stop.h - where gradients end.
#pragma once
#include "ops/op.h"

namespace kassette {

extern const OpDef stop_gradient_op;
/// The same value; no gradient flows through it. History does: a plan replays what is behind it.
Tensor stop_gradient(const Tensor& x);

}  // namespace kassette
