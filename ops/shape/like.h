// ops/shape/like.h - ops that take a shape from another tensor. Adjoints use them in place of shapes as numbers.
#pragma once
#include "ops/engine/op.h"

namespace kassette::ops {

/// x broadcast to the shape of `like`; only the shape of `like` is read.
Tensor broadcast_like(const Tensor& x, const Tensor& like);
/// x summed to the shape of `like`, which broadcasts to x: the adjoint of broadcast_like.
Tensor sum_to_like(const Tensor& x, const Tensor& like);
/// x with the shape of `like`; only the shape of `like` is read.
Tensor reshape_like(const Tensor& x, const Tensor& like);

/// A requirement on two shapes, named after the function or argument that has it.
enum class ShapeCheck : std::int64_t {
  categorical_crossentropy,
  binary_crossentropy,
  class_ids,
  min_of_clip,
  max_of_clip,
  moving_average,
  bias_last,
  bias_first,
  branches,
  keys,
  rows,
  state_rows,
  state,
  mask,
  mask_time_major
};
/// Throws ValueError unless the shape of x fits that of `like`: it is equal, except that
/// - min_of_clip, max_of_clip: x broadcasts to `like`;
/// - class_ids: the ranks may differ;
/// - rows, state_rows: only the first sizes are equal;
/// - mask, mask_time_major: x has rank 2 and the first two sizes of `like`;
/// - bias_last, bias_first: x is (channels) or (space..., channels); the channels of `like` are its last axis or, for
///   bias_first if it has more than two axes, axis 1.
///
/// Unknown sizes fit.
void assert_shape(ShapeCheck check, const TensorSpec& x, const TensorSpec& like);
/// Calls assert_shape() now and, if sizes are unknown, again when the function runs. Returns x, or the output of the op
/// that checks x.
Tensor assert_shape_of(ShapeCheck check, const Tensor& x, const Tensor& like);

extern const OpDef broadcast_like_op, sum_to_like_op, assert_shape_op;

}  // namespace kassette::ops
