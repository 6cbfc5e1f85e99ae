// ops/pool.h - pooling: the greatest or the mean of what a window shows of each channel.
#pragma once
#include "ops/conv.h"

namespace kassette {

/// The greatest element of each window, among those that are no padding. NaN wins.
Tensor max_pool(const Tensor& x, const ConvForm& form);
/// The mean of the elements of each window that are no padding.
Tensor avg_pool(const Tensor& x, const ConvForm& form);

/// What pooling copies at a time, where it copies. A constant but for tests.
struct PoolLimits {
  std::int64_t tile = 1 << 16;    // elements of an image
  std::int64_t window = 1 << 19;  // elements that one window shows: fewer channels at a time where it is large
};
extern PoolLimits pool_limits;

// Maximum pooling takes one place of each window, the first of the greatest in row-major order. Both rows of its gradients ask x for it anew:
// max_pool_spread(x, dy) puts dy there, in the shape of x, and max_pool_pick(x, z) takes z from there; each is the adjoint of the other.
// avg_pool_spread(dy, x), which reads the shape of x alone, is the adjoint of avg_pool, and the other way round.
extern const OpDef max_pool_op, max_pool_spread_op, max_pool_pick_op, avg_pool_op, avg_pool_spread_op;

}  // namespace kassette
