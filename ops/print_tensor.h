// ops/print_tensor.h - a tensor that writes its value each time it is computed.
#pragma once
#include "ops/op.h"

namespace kassette {

/// x, as a new tensor; when it is computed, "message value" goes to the print sink. The gradient passes.
Tensor print_tensor(const Tensor& x, std::string message);

extern const OpDef print_tensor_op;

}  // namespace kassette
