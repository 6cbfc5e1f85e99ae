// ops/conv_kernels.h - the kernels of convolution on the CPU, and what they may use.
#pragma once
#include <cstdint>

#include "ops/op.h"

namespace kassette {

/// How much the kernels have at a time, and how finely they divide the work. Constants but for tests, which lower them so that small tensors
/// are cut into as many pieces as large ones.
struct ConvLimits {
  std::int64_t slab_bytes = 256 << 10;    // what a tile reads: a fraction of a second-level cache
  std::int64_t panel_bytes = 192 << 10;   // packed weights of one panel of columns
  std::int64_t packed_bytes = 16 << 20;   // packed weights at a time
  std::int64_t partial_bytes = 16 << 20;  // of a kernel's gradient, by parts of the batch
  std::int64_t tiles = 32;                // enough for many threads
  std::int64_t grain = 1 << 17;           // products that are worth a thread
  std::int64_t dot_columns = 4;           // results of up to so many channels are dot products along windows
  std::int64_t repeated = 1024;  // depthwise with more filters for each channel is a convolution of each channel
};
extern ConvLimits conv_limits;

void run_convolution(const OpCall& call);
/// OpDef::with_bias.
bool convolve_with_bias(const OpCall& call, const Body& row, bool relu);
void run_convolution_input_gradient(const OpCall& call);
void run_convolution_kernel_gradient(const OpCall& call);

}  // namespace kassette
