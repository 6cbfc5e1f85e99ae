// devices/nccl/packing.h - elements as NCCL can combine them, and back. Why: packed_size, devices/device_transport.h.
#pragma once
#include <cuda_runtime.h>

#include "devices/device_transport.h"

namespace kassette::nccl {

/// What the elements of a dtype are combined as; itself where packed_size is 0.
DType packed_dtype(DType dtype, Combine how);
/// n elements of `dtype` into as many of packed_dtype; enqueued.
void pack(cudaStream_t stream, void* packed, const void* from, std::int64_t n, DType dtype, Combine how);
/// The other way, each divided by `divisor`, which for another dtype than a float is 1. Where packed_size is 0, `packed` has elements of
/// `dtype`, and may be `to`.
void unpack(cudaStream_t stream, void* to, const void* packed, std::int64_t n, DType dtype, Combine how, int divisor);

}  // namespace kassette::nccl
