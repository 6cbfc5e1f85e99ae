// nn_backend/inspect/tensor_to_inspect.h - the argument of plot, hist, imshow and describe as a tensor.
#pragma once
#include "core/text.h"
#include "ops/engine/operand.h"

namespace kassette::inspect {

/// The tensor of an operand; containers and arrays keep their dtype. Throws ValueError for an empty Tensor.
Tensor tensor_to_inspect(const Operand& x, const At& at);

}  // namespace kassette::inspect
