// ops/cast.h - the row of cast.
#pragma once
#include "ops/op.h"

namespace kassette {

extern const OpDef cast_row;   // attrs.a: the DType::Code to give

}  // namespace kassette
