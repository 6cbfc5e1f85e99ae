// ops/shape/moving.cuh - copying between strided layouts on a CUDA device.
#pragma once
#include "devices/cuda/cuda.h"
#include "ops/shape/strided.h"

namespace kassette::cuda {
using namespace ops;  // this namespace has the CUDA kernels of the ops

/// Calls f with a null pointer to an unsigned integer of `size` bytes. Elements that are copied as integers keep the
/// bits of NaNs.
template <class F>
void for_size(int size, F f) {
  if (size == 1) f(static_cast<std::uint8_t*>(nullptr));
  else if (size == 2) f(static_cast<std::uint16_t*>(nullptr));
  else if (size == 4) f(static_cast<std::uint32_t*>(nullptr));
  else f(static_cast<std::uint64_t*>(nullptr));
}

/// As in ops/shape/strided.h; no size is 0. Errors name `what`.
void copy_strided(const char* what, CudaDevice& device, const Strided& layout, const void* from, void* to, int size);
/// DeviceMoves::fill (devices/plugin.h); `count` is not 0.
void fill(CudaDevice& device, void* to, std::int64_t count, std::uint64_t bits, int size);
/// DeviceMoves::sum_copies (devices/plugin.h); the result is not empty.
void sum_copies(const OpCall& call, const Strided& kept, const Strided& copies);
/// DeviceMoves::run_chain: enqueues one kernel.
void run_chain(Device device, const DeviceChain& chain);

}  // namespace kassette::cuda
