// devices/cuda/launch.cuh - launching kernels. Every launch goes through here, without the triple-bracket syntax, so
// that a host compiler can read it: the kernels are built a second time to run on the host (tests/emulated_cuda).
#pragma once
#include <algorithm>

#include "devices/cuda/cuda.h"

namespace kassette::cuda {

inline constexpr int kThreads = 256;  // per block
inline constexpr int kWarp = 32;

/// The number of blocks for n threads of work. It is bounded: kernels loop over the rest.
inline unsigned blocks_for(std::int64_t n) {
  return static_cast<unsigned>(std::clamp<std::int64_t>((n + kThreads - 1) / kThreads, 1, 4096));
}

/// Enqueues kernel(arguments...) on the current stream. Throws DeviceError, naming `what`, if the launch fails.
template <class... P, class... A>
void launch(const char* what, CudaDevice& device, dim3 blocks, void (*kernel)(P...), A&&... arguments) {
  DeviceGuard current(device);
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = dim3(kThreads);
  config.stream = device.current().handle;
  device.check(cudaLaunchKernelEx(&config, kernel, static_cast<A&&>(arguments)...), what);
  device.launched(what);
}

}  // namespace kassette::cuda
