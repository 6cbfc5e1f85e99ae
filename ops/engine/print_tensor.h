// ops/engine/print_tensor.h - an op that prints its input each time it runs.
#pragma once
#include "ops/engine/op.h"

namespace kassette::ops {

/// Returns x as a new tensor; each time that is computed, "message value" goes to the print sink. The gradient is that
/// of the identity.
Tensor print_tensor(const Tensor& x, std::string message);

extern const OpDef print_tensor_op;

}  // namespace kassette::ops
