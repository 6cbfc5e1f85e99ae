// ops/convolution/pool.h - pooling: the maximum or the mean of each window, for each channel.
#pragma once
#include "ops/convolution/conv.h"

namespace kassette::ops {

/// The maximum of each window, leaving out padding; NaN if the window has a NaN.
Tensor max_pool(const Tensor& x, const ConvForm& form);
/// The mean of each window, leaving out padding.
Tensor avg_pool(const Tensor& x, const ConvForm& form);

/// The sizes of the pieces in which the CPU pools images that it must copy. Only tests change them.
struct PoolLimits {
  std::int64_t tile = 1 << 16;    // elements of an image
  std::int64_t window = 1 << 19;  // elements of one window: a large window has fewer channels at a time
};
extern PoolLimits pool_limits;

// Maximum pooling picks one element of each window, the first maximum in row-major order. The ops of its gradients
// search x for it again: max_pool_grad(x, dy) adds dy at these places to zeros of the shape of x, and
// max_pool_take(x, z) takes z from there; each is the adjoint of the other. avg_pool_grad(dy, x), which reads only
// the shape of x, and avg_pool are adjoints of each other.
extern const OpDef max_pool_op, max_pool_grad_op, max_pool_take_op, avg_pool_op, avg_pool_grad_op;

}  // namespace kassette::ops
