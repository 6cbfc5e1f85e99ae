// tests/emulated_cuda/cuda.h - the part of the CUDA driver API that devices/cuda/ uses. A context stands for an
// emulated device.
#pragma once

using CUresult = int;
enum { CUDA_SUCCESS = 0 };
using CUdevice = int;
using CUcontext = struct EmulatedContext*;
