// ops/conv_panels.cuh - convolution by products of matrices on a CUDA device.
#pragma once
#include "ops/conv.h"
#include "ops/op.h"

namespace kassette::cuda {

/// Whether panels serve a convolution whose results have `columns` channels, each the sum of `sums` products.
bool by_panels(const ConvShape& s, std::int64_t sums, std::int64_t columns);

// What the rows of convolution do; results are not empty, nor are inputs.
void convolve_by_panels(const OpCall& call, const ConvShape& s);
void input_gradient_by_panels(const OpCall& call, const ConvShape& s);
void kernel_gradient_by_panels(const OpCall& call, const ConvShape& s);

}  // namespace kassette::cuda
