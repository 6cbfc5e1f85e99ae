// ops/elementwise/cast.h - the op cast, and its loops for each CPU level.
#pragma once
#include "devices/cpu/level.h"
#include "ops/engine/op.h"

namespace kassette::ops {

/// The attributes of cast: the dtype of the result.
struct CastAttrs {
  static constexpr const char* attrs_name = "cast";
  DType dtype;
};
extern const OpDef cast_op;

using CastLoop = void (*)(const void* from, void* to, std::int64_t n);
inline constexpr int kCastIntegers = DType::kFloat16 - DType::kBool;  // bool and the integers
/// Loops that cast one float type to and from bool and the integers (indexed by DType::Code - kBool), and to the other
/// float type.
struct FloatCasts {
  CastLoop to[kCastIntegers], from[kCastIntegers];
  CastLoop to_other;
};
/// The loops of one CPU level.
struct CastTable {
  FloatCasts f32, f64;
  CastLoop integers[kCastIntegers][kCastIntegers];      // [to][from], by DType::Code - kBool
  CastLoop integers_to_odd[kCastIntegers], f64_to_odd;  // to float32, rounding to odd: Note [Rounding once]
};
KASSETTE_LEVEL_TABLES(CastTable, cast_table)

/// convert() of core/convert.h, vectorized and on several threads, for kernels that convert whole tensors. The payload
/// of a NaN may differ.
void cast_elements(void* to, DType to_dtype, const void* from, DType from_dtype, std::int64_t n);
/// Convert n elements between float32 and a half type, `dtype`, vectorized, on this thread.
void half_to_float(float* to, const void* from, DType dtype, std::int64_t n);
void float_to_half(void* to, DType dtype, const float* from, std::int64_t n);

}  // namespace kassette::ops
