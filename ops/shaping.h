// ops/shaping.h - shape ops as functions of tensors. All are differentiable by tensors unless said; axes may be negative.
#pragma once
#include "ops/dims.h"

namespace kassette {

// ---- reshape.cpp: the same elements in the same order; storage is shared
extern const OpDef reshape_op, reshape_like_op, expand_dims_op, squeeze_op, flatten_op, identity_op;
/// At most one size is -1 (or None) and inferred.
Tensor reshape(const Tensor& x, const Dims& shape);
Tensor expand_dims(const Tensor& x, int axis);
Tensor squeeze(const Tensor& x, int axis);
/// The same tensor as a new one: of a variable, what it holds now.
Tensor identity(const Tensor& x);
/// All axes from `from` on as one: 0 gives rank 1, 1 keeps the batch axis and always gives rank 2.
Tensor flatten(const Tensor& x, int from);

// ---- transpose.cpp
extern const OpDef permute_op;
/// Output axis i is input axis pattern[i].
Tensor permute(const Tensor& x, const Axes& pattern);
/// All axes reversed; the rank may be unknown.
Tensor transpose(const Tensor& x);

// ---- join.cpp
struct SplitAttrs {
  static constexpr const char* attrs_name = "split";
  std::int64_t n_out, axis;
};
extern const OpDef concatenate_op, split_like_op, stack_op, unstack_op;
Tensor concatenate(const Tensors& parts, int axis);
/// x cut along an axis into parts with the shapes of `like`, of which only the shapes are read.
Tensors split_like(const Tensor& x, const Tensors& like, int axis);
Tensor stack(const Tensors& parts, int axis);
/// The n parts of x along an axis, which they lose.
Tensors unstack(const Tensor& x, int n, int axis);

// ---- index.cpp
struct IndexAttrs {
  static constexpr const char* attrs_name = "index";
  std::int64_t at;  // on the first axis; where there is an IndexList it says all
};
extern const OpDef index_op, index_grad_like_op, slice_op, slice_grad_like_op, pad_op, reverse_op;
/// size elements of each axis from start on; a size of -1 takes the rest.
Tensor slice_from(const Tensor& x, const Dims& start, const Dims& size);
/// How many zeros stand before and after the elements of each axis.
struct Pads {
  int rank = 0;
  std::int64_t before[kMaxRank] = {}, after[kMaxRank] = {};
};
Tensor pad(const Tensor& x, const Pads& amounts);
Tensor reverse(const Tensor& x, const Axes& axes);
/// What an index makes of the values of a shape argument; false where that cannot be said.
bool index_dims(const Attrs& attrs, const DimValues& from, DimValues& to);

// ---- gather.cpp
extern const OpDef gather_op, gather_grad_like_op, one_hot_op;
/// Axes as attributes have them.
struct AxisList {
  std::int8_t at[kMaxRank] = {}, size = 0;
  void push(int axis) { at[size++] = static_cast<std::int8_t>(axis); }
};

enum class Wrap : std::uint8_t { refuse, negative };  // what negative indices do
/// The parts of x along an axis that integers of any shape name; their shape takes the place of the axis.
struct GatherAttrs {
  static constexpr const char* attrs_name = "gather";
  std::int64_t axis;
  Wrap wrap;
};
struct OneHotAttrs {
  static constexpr const char* attrs_name = "one_hot";
  std::int64_t classes;
};
Tensor gather(const Tensor& x, const Tensor& indices, int axis = 0, Wrap wrap = Wrap::refuse);
/// float32 zeros, and a one where the index says, along a new last axis. No gradient.
Tensor one_hot(const Tensor& indices, std::int64_t classes);

// ---- tile.cpp: the adjoints sum over the copies
struct RepeatAttrs {
  static constexpr const char* attrs_name = "repeat_elements";
  std::int64_t times, axis;
};
extern const OpDef repeat_op, repeat_grad_like_op, tile_op, tile_grad_like_op, broadcast_to_op;
/// Each element along an axis `times` times in a row.
Tensor repeat_elements(const Tensor& x, std::int64_t times, int axis);
/// All of x as often as `times` says along each axis; leading axes that it does not name are kept.
Tensor tile(const Tensor& x, const Dims& times);
Tensor broadcast_to(const Tensor& x, const Dims& shape);

// ---- fill.cpp
extern const OpDef arange_op, eye_op;
/// start, start + step, ... before stop; scalars on the host. Computed in int64 or float64, converted to dtype.
Tensor arange(const Tensor& start, const Tensor& stop, const Tensor& step, DType dtype);
/// A matrix with ones on the main diagonal; two sizes.
Tensor eye(const Dims& shape, DType dtype);
/// A new tensor of that shape, all elements equal to the only one of `value`, which is on the CPU. Not on the tape.
Tensor filled_tensor(const Tensor& value, const TensorSpec& shape, Device device, const char* what);
/// A new concrete tensor, full of 0 or of 1.
Tensor filled_with(int value, const TensorSpec& shape, Device device, const char* what);
/// A number as a scalar with the dtype and device of `like`.
Tensor number_like(double value, const Tensor& like);
/// Zeros with the shape of `like`, of which only the shape is read.
Tensor zeros_of(const Tensor& like);

// ---- transfer.cpp
extern const OpDef to_op;

}  // namespace kassette
