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

/// What must hold of two shapes, for which function.
enum class Fit : std::int64_t { categorical_crossentropy, binary_crossentropy, class_ids, bound_of_clip, moving_average, bias_last, bias_first, branches, rows, state, mask, mask_time_major };
/// Throws unless x has the shape of `like`; a bound may broadcast to it, class ids may have another rank, rows are as many, a
/// mask has its first two sizes, and a bias the size of its channel axis, the last, or axis 1 where there are more than two; or those of space
/// before it.
void check_fit(Fit fit, const Spec& x, const Spec& like);
/// The same now and, where sizes are unknown, again when they are known: gives x.
Tensor fitting(Fit fit, const Tensor& x, const Tensor& like);

extern const OpDef broadcast_like_row, sum_to_like_row, fitting_row;

}  // namespace kassette
