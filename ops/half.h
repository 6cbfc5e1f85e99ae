// ops/half.h - float16 and bfloat16 to and from float32, many at once, at the CPU level in use.
#pragma once
#include <cstdint>

#include "devices/cpu/level.h"

namespace kassette {

/// Rounds to nearest even, as core/half.h does one by one.
struct HalfTable {
  void (*from_half)(const void* from, float* to, std::int64_t n);
  void (*to_half)(const float* from, void* to, std::int64_t n);
  void (*from_bfloat)(const void* from, float* to, std::int64_t n);
  void (*to_bfloat)(const float* from, void* to, std::int64_t n);
};
KASSETTE_LEVEL_TABLES(HalfTable, half_table)

}  // namespace kassette
