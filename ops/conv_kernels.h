// ops/conv_kernels.h - the kernels of convolution on the CPU.
#pragma once
#include "ops/op.h"

namespace kassette {

void run_convolution(const Call& call);
void run_convolution_input_gradient(const Call& call);
void run_convolution_kernel_gradient(const Call& call);

}  // namespace kassette
