// ops/like.h - ops that read the shape of another tensor: what adjoints use instead of shapes as numbers.
#pragma once
#include "ops/op.h"

namespace kassette {

/// x broadcast to the shape of `like`, of which only the shape is read.
Tensor broadcast_like(const Tensor& x, const Tensor& like);
/// x summed over the axes along which `like` was broadcast to it.
Tensor sum_to_like(const Tensor& x, const Tensor& like);
/// x with the shape of `like`, of which only the shape is read.
Tensor reshape_like(const Tensor& x, const Tensor& like);

extern const OpDef broadcast_like_row, sum_to_like_row;

}  // namespace kassette
