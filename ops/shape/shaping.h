// ops/shape/shaping.h - shape ops as functions of tensors. All are differentiable unless stated otherwise; axes may be
// negative.
#pragma once
#include "ops/engine/axes.h"
#include "ops/engine/dims.h"

namespace kassette::ops {

// ---- reshape.cpp: the output has the elements of the input in the same order, and shares its storage
extern const OpDef reshape_op, reshape_like_op, expand_dims_op, squeeze_op, flatten_op, identity_op;
/// At most one size may be -1 or None; it is inferred.
Tensor reshape(const Tensor& x, const Dims& shape);
Tensor expand_dims(const Tensor& x, int axis);
Tensor squeeze(const Tensor& x, int axis);
/// A new tensor with the same value; for a variable, its current value.
Tensor identity(const Tensor& x);
/// Merges all axes from `from` on. 0 gives rank 1; 1 keeps the batch axis and always gives rank 2.
Tensor flatten(const Tensor& x, int from);

// ---- transpose.cpp
/// A list of axes, small enough to be part of an op's attributes.
struct AxisList {
  std::int8_t at[kMaxRank] = {}, size = 0;
  void push(int axis) { at[size++] = static_cast<std::int8_t>(axis); }
};
struct PermuteAttrs {
  static constexpr const char* attrs_name = "permute_dimensions";
  bool reversed;
  AxisList pattern;
};
extern const OpDef permute_op;
/// Output axis i is input axis pattern[i].
Tensor permute(const Tensor& x, const Axes& pattern);
/// Reverses the order of the axes; the rank may be unknown.
Tensor transpose(const Tensor& x);

// ---- join.cpp
/// Attributes of ops with several outputs: their number, and the axis.
struct SplitAttrs {
  static constexpr const char* attrs_name = "split";
  std::int64_t n_out, axis;
};
extern const OpDef concatenate_op, split_like_op, stack_op, unstack_op;
Tensor concatenate(const Tensors& parts, int axis);
/// Splits x along an axis into parts shaped like `like`; only the shapes of `like` are used.
Tensors split_like(const Tensor& x, const Tensors& like, int axis);
Tensor stack(const Tensors& parts, int axis);
/// The n slices of x along an axis of size n, without that axis.
Tensors unstack(const Tensor& x, int n, int axis);

// ---- index.cpp
/// Attributes of index.
struct IndexAttrs {
  static constexpr const char* attrs_name = "index";
  std::int64_t at;  // on the first axis; unused if there is an IndexList
};
extern const OpDef index_op, index_grad_like_op, slice_op, slice_grad_like_op, pad_op, reverse_op;
/// size[i] elements of axis i from start[i] on; a size of -1 takes the rest.
Tensor slice_from(const Tensor& x, const Dims& start, const Dims& size);
/// The numbers of zeros to add before and after the elements of each axis.
struct Pads {
  int rank = 0;
  std::int64_t before[kMaxRank] = {}, after[kMaxRank] = {};
};
Tensor pad(const Tensor& x, const Pads& amounts);
/// The amounts of a pad_op.
const Pads& pads_of(const Attrs& attrs);
/// The attributes of reverse_op.
struct ReverseAttrs {
  static constexpr const char* attrs_name = "reverse";
  AxisList axes;  // as given
};
Tensor reverse(const Tensor& x, const Axes& axes);
/// Applies an index to the known values of a shape argument. Returns false if the result is not a scalar or a vector.
bool index_dims(const Attrs& attrs, const DimValues& from, DimValues& to);

// ---- gather.cpp
extern const OpDef gather_op, gather_grad_like_op, one_hot_op;
/// Negative indices are an error, or count from the end.
enum class Wrap : std::uint8_t { refuse, negative };
/// gather() picks slices of x along an axis by integer indices of any shape, which replaces the axis in the shape of
/// the result. `joined` axes after it may be one with it: an index is then a row-major position in all of them.
struct GatherAttrs {
  static constexpr const char* attrs_name = "gather";
  std::int64_t axis;
  Wrap wrap;
  std::uint8_t joined = 0;
};
/// A known shape seen from the axes that a gather takes together.
struct GatherSplit : AxisSplit {
  GatherSplit(const TensorSpec& x, int axis, int joined) {
    for (int i = 0; i < x.rank; ++i) (i < axis ? outer : i <= axis + joined ? n : inner) *= x.dims[i];
  }
};
/// Attributes of one_hot: the size of the new axis.
struct OneHotAttrs {
  static constexpr const char* attrs_name = "one_hot";
  std::int64_t classes;
};
Tensor gather(const Tensor& x, const Tensor& indices, int axis = 0, Wrap wrap = Wrap::refuse, int joined = 0);
/// float32: along a new last axis, 1 at the index and 0 elsewhere. No gradient.
Tensor one_hot(const Tensor& indices, std::int64_t classes);

// ---- tile.cpp: the adjoints sum over the copies
/// Attributes of repeat_elements.
struct RepeatAttrs {
  static constexpr const char* attrs_name = "repeat_elements";
  std::int64_t times, axis;
};
extern const OpDef repeat_op, repeat_grad_like_op, tile_op, tile_grad_like_op, broadcast_to_op;
/// Repeats each element `times` times in a row along an axis.
Tensor repeat_elements(const Tensor& x, std::int64_t times, int axis);
/// Repeats x as a whole times[i] times along each axis. If `times` is shorter than the shape, the leading axes are
/// kept.
Tensor tile(const Tensor& x, const Dims& times);
Tensor broadcast_to(const Tensor& x, const Dims& shape);

// ---- fill.cpp
extern const OpDef arange_op, eye_op;
/// start, start + step, ... up to stop, which is excluded. The arguments are scalars on the host; computed in int64 or
/// float64, then cast to dtype.
Tensor arange(const Tensor& start, const Tensor& stop, const Tensor& step, DType dtype);
/// A matrix with ones on the main diagonal. `shape` has two sizes.
Tensor eye(const Dims& shape, DType dtype);
/// A new tensor whose elements all equal that of `value`, a tensor of one element on the CPU. Not on the tape.
Tensor filled_tensor(const Tensor& value, const TensorSpec& shape, Device device, const char* what);
/// A new concrete tensor of zeros or of ones (`value`).
Tensor filled_with(int value, const TensorSpec& shape, Device device, const char* what);
/// `value` as a scalar tensor with the dtype and device of `like`.
Tensor number_like(double value, const Tensor& like);
/// Zeros shaped like `like`; only its shape, dtype and device are used.
Tensor zeros_of(const Tensor& like);

// ---- transfer.cpp
extern const OpDef to_op;

}  // namespace kassette::ops
