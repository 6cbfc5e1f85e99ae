// tests/emulated_cuda/cuda_bf16.h - bfloat16 as kernels read and write it.
#pragma once
#include "core/half.h"
#include "cuda_runtime.h"

struct __nv_bfloat16 {
  std::uint16_t bits;
};
inline __nv_bfloat16 __ushort_as_bfloat16(std::uint16_t bits) { return {bits}; }
inline std::uint16_t __bfloat16_as_ushort(__nv_bfloat16 b) { return b.bits; }
inline float __bfloat162float(__nv_bfloat16 b) { return kassette::to_float(kassette::BFloat16{b.bits}); }
inline __nv_bfloat16 __float2bfloat16_rn(float f) { return {kassette::to_bfloat16(f).bits}; }
