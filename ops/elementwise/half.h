// ops/elementwise/half.h - conversion of arrays between float32 and float16 or bfloat16, with a table for each CPU
// level.
#pragma once
#include <cstdint>

#include "devices/cpu/level.h"

namespace kassette::ops {

/// Conversions of n elements. They round to nearest even, like those of single numbers in core/half.h.
struct HalfTable {
  void (*from_half)(const void* from, float* to, std::int64_t n);
  void (*to_half)(const float* from, void* to, std::int64_t n);
  void (*from_bfloat)(const void* from, float* to, std::int64_t n);
  void (*to_bfloat)(const float* from, void* to, std::int64_t n);
};
KASSETTE_LEVEL_TABLES(HalfTable, half_table)

}  // namespace kassette::ops
