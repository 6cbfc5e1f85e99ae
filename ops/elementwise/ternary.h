// ops/elementwise/ternary.h - the OpDef of where.
#pragma once
#include "ops/engine/op.h"

namespace kassette::ops {

extern const OpDef where_op;

}  // namespace kassette::ops
