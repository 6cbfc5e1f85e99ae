// ops/moving.cuh - copying between strided layouts on a CUDA device.
#pragma once
#include <cuda_runtime.h>

#include "ops/strided.h"

namespace kassette::cuda {

void copy_strided(cudaStream_t stream, const Strided& layout, const void* from, void* to, int size);

}  // namespace kassette::cuda
