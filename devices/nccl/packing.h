// devices/nccl/packing.h - conversion of elements to a dtype that NCCL can combine, and back. Why: packed_size,
// devices/device_transport.h.
#pragma once
#include <cuda_runtime.h>

#include "devices/device_transport.h"

namespace kassette::nccl {

/// The dtype in which elements of `dtype` are combined; `dtype` itself if packed_size is 0.
DType packed_dtype(DType dtype, devices::Reduction how);
/// Enqueues the conversion of n elements of `dtype` to packed_dtype.
void pack(cudaStream_t stream, void* packed, const void* from, std::int64_t n, DType dtype, devices::Reduction how);
/// Enqueues the inverse of pack(), and divides each element by `divisor`, which is 1 unless the dtype is a float. If
/// packed_size is 0, `packed` has elements of `dtype` and may be equal to `to`.
void unpack(cudaStream_t stream, void* to, const void* packed, std::int64_t n, DType dtype, devices::Reduction how,
            int divisor);

}  // namespace kassette::nccl
