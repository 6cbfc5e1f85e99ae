// ops/shaping.h - shape ops as functions of tensors.
#pragma once
#include "ops/op.h"

namespace kassette {

extern const OpDef to_row;

Tensor stack(const Tensors& parts, int axis);

}  // namespace kassette
