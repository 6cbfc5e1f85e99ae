// devices/cuda/driver.h - functions of the CUDA driver API that have no counterpart in the runtime API.
#pragma once
#include <cuda.h>

namespace kassette::cuda {

/// cudaSetDevice creates a context on the device: to restore device 0 in a thread that had it by default, after work on
/// device 1, would take some hundred megabytes of device 0. The driver API can restore the context that was current, or
/// that there was none.
struct Driver {
  CUresult (*retain)(CUcontext* context, CUdevice device);  // a device's primary context, the one that the runtime uses
  CUresult (*get_current)(CUcontext* context);
  CUresult (*set_current)(CUcontext context);
};

/// Loads the functions; returns false if the driver lacks one. libkassette_cuda.so and libkassette_nccl.so have a copy
/// each, and call this before anything else: in open_device, and in join in devices/nccl/communicator.cpp.
bool find_driver();
const Driver& driver();

}  // namespace kassette::cuda
