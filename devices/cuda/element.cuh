// devices/cuda/element.cuh - element types in kernels: half types are computed in float.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <kassette/dtype.h>

#include "core/half.h"

namespace kassette::cuda {

template <class T>
__device__ inline T load(const T* p) {
  return *p;
}
__device__ inline float load(const Half* p) { return __half2float(__ushort_as_half(p->bits)); }
__device__ inline float load(const BFloat16* p) { return __bfloat162float(__ushort_as_bfloat16(p->bits)); }
template <class T, class V, std::enable_if_t<!kIsHalf<T>, int> = 0>
__device__ inline void store(T* p, V v) {
  *p = static_cast<T>(v);
}
__device__ inline void store(Half* p, float v) { p->bits = __half_as_ushort(__float2half_rn(v)); }
__device__ inline void store(BFloat16* p, float v) { p->bits = __bfloat16_as_ushort(__float2bfloat16_rn(v)); }
/// Numbers that float32 does not hold are rounded once: Note [Rounding once], core/half.h.
template <class T, class V, std::enable_if_t<kIsHalf<T> && !std::is_same_v<V, float>, int> = 0>
__device__ inline void store(T* p, V v) {
  store(p, round_to_odd(v));
}

/// The type in which elements of a type are computed.
template <class T>
struct WideOf {
  using type = T;
};
template <>
struct WideOf<Half> {
  using type = float;
};
template <>
struct WideOf<BFloat16> {
  using type = float;
};
template <class T>
using Wide = typename WideOf<T>::type;

}  // namespace kassette::cuda
