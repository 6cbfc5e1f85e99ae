// ops/cast.h - the row of cast, and its loops as each CPU level has them.
#pragma once
#include "devices/cpu/level.h"
#include "ops/op.h"

namespace kassette {

struct CastAttrs {
  static constexpr const char* attrs_name = "cast";
  DType dtype;
};
extern const OpDef cast_op;

using CastLoop = void (*)(const void* from, void* to, std::int64_t n);
/// Between one float type and bool and the integers, by their DType::Code less kBool, and to the other float type.
struct FloatCasts {
  CastLoop to[7], from[7];
  CastLoop to_other;
};
struct CastTable {
  FloatCasts f32, f64;
  CastLoop integers[7][7];  // [to][from], by DType::Code less kBool
};
KASSETTE_LEVEL_TABLES(CastTable, cast_table)

/// core/convert.h's convert by vectors and on several threads, for kernels that convert whole tensors. Of NaN only that it stays one.
void cast_elements(void* to, DType to_dtype, const void* from, DType from_dtype, std::int64_t n);

}  // namespace kassette
