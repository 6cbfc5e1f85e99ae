// ops/engine/desc.cpp - descriptors without history.
#include "ops/engine/desc.h"

namespace kassette::ops {

Tensor detached(const TensorDesc& from) { return Access::wrap(make_desc(from, from.device, read_value(from))); }

}  // namespace kassette::ops
