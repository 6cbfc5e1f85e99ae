// tests/emulated_cuda/cuda_fp16.h - float16 as kernels read and write it.
#pragma once
#include "core/half.h"
#include "cuda_runtime.h"

struct __half {
  std::uint16_t bits;
};
inline __half __ushort_as_half(std::uint16_t bits) { return {bits}; }
inline std::uint16_t __half_as_ushort(__half h) { return h.bits; }
inline float __half2float(__half h) { return kassette::to_float(kassette::Half{h.bits}); }
inline __half __float2half_rn(float f) { return {kassette::to_half(f).bits}; }
