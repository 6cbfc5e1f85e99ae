// ops/convolution/conv_kernels.h - the kernels of convolution on the CPU, and the limits of their working memory.
#pragma once
#include <cstdint>

#include "ops/engine/op.h"

namespace kassette::ops {

/// Limits of the kernels' buffers, and how finely they divide the work. Only tests change them: they lower them so that
/// small tensors are cut into as many pieces as large ones.
struct ConvLimits {
  std::int64_t slab_bytes = 256 << 10;    // the input of a tile: a fraction of a second-level cache
  std::int64_t panel_bytes = 192 << 10;   // packed weights of one panel of columns
  std::int64_t packed_bytes = 16 << 20;   // all packed weights that exist at one time
  std::int64_t partial_bytes = 16 << 20;  // partial sums of a kernel gradient
  std::int64_t tiles = 32;                // the number of tiles to aim for: enough for many threads
  std::int64_t grain = 1 << 17;           // the least number of multiplications for which a thread pays
  std::int64_t dot_columns = 4;           // up to this many output channels are computed as dot products along windows
  std::int64_t repeated = 1024;           // with a larger depthwise multiplier, each channel is convolved on its own
};
extern ConvLimits conv_limits;

void run_convolution(const OpCall& call);
/// OpDef::with_bias of convolution.
bool convolve_with_bias(const OpCall& call, const TensorDesc& bias, bool relu);
void run_convolution_input_gradient(const OpCall& call);
void run_convolution_kernel_gradient(const OpCall& call);

}  // namespace kassette::ops
