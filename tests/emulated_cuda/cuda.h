// tests/emulated_cuda/cuda.h - as much of CUDA's driver interface as devices/cuda/ uses. A context is a device of the emulation.
#pragma once

using CUresult = int;
enum { CUDA_SUCCESS = 0 };
using CUdevice = int;
using CUcontext = struct EmulatedContext*;
