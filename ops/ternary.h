// ops/ternary.h - the OpDef of where.
#pragma once
#include "ops/op.h"

namespace kassette::ops {

extern const OpDef where_op;

}  // namespace kassette::ops
