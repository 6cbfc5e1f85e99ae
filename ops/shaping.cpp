// ops/shaping.cpp - shape ops.
#include "ops/shaping.h"

#include "core/text.h"

namespace kassette {

Tensor stack(const Tensors&, int) { fail<NotImplementedError>("stack"); }

}  // namespace kassette
