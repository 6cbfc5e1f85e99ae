// ops/convolution/conv_panels.cuh - convolution as matrix products on a CUDA device: Note [Panels] in conv_panels.cu.
#pragma once
#include "ops/convolution/conv.h"
#include "ops/engine/op.h"

namespace kassette::cuda {

/// True if a convolution should be computed by panels. Its results have `columns` channels and are sums of `sums`
/// products each.
bool by_panels(const ops::ConvShape& s, std::int64_t sums, std::int64_t columns);

// The kernels of the three convolution ops by panels. Inputs and results must not be empty.
void convolve_by_panels(const ops::OpCall& call, const ops::ConvShape& s);
void input_gradient_by_panels(const ops::OpCall& call, const ops::ConvShape& s);
void kernel_gradient_by_panels(const ops::OpCall& call, const ops::ConvShape& s);

}  // namespace kassette::cuda
