// devices/cuda/driver.h - the functions of CUDA's driver that the runtime has no equal of.
#pragma once
#include <cuda.h>

namespace kassette::cuda {

/// cudaSetDevice makes a context on the device that it sets: to give device 0 back to a thread that had it by default, after work on device 1,
/// would take some hundred megabytes of device 0. The driver gives back the context that was current, or that there was none.
struct Driver {
  CUresult (*retain)(CUcontext* context, CUdevice device);  // a device's primary context, which the runtime uses too
  CUresult (*get_current)(CUcontext* context);
  CUresult (*set_current)(CUcontext context);
};

/// Loads them; false where the driver lacks one. Each of our libraries has its own, and calls this before anything else: open_device, and join in
/// devices/nccl/communicator.cpp.
bool find_driver();
const Driver& driver();

}  // namespace kassette::cuda
