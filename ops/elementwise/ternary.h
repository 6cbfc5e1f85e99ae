// ops/elementwise/ternary.h - the OpDefs of the elementwise ops of three operands.
#pragma once
#include "ops/engine/op.h"

namespace kassette::ops {

extern const OpDef where_op, betainc_op;

}  // namespace kassette::ops
