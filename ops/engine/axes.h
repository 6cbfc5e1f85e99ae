// ops/engine/axes.h - sets of axes, which are attributes of ops, and axes coalesced into runs of memory.
#pragma once
#include "core/text.h"
#include "ops/engine/op.h"

namespace kassette::ops {

/// The axes that an op works along, of a tensor whose rank may be unknown.
struct AxisSet {
  std::uint8_t front = 0, back = 0;  // bit i: axis i, axis -1 - i
  bool all = false;                  // every axis; front and back are 0
  bool keepdims = false;             // a reduction leaves size 1 along them
  AxisSet with_keepdims() const { return {front, back, all, /*keepdims=*/true}; }
  /// The axes of a tensor of that rank: bit i for axis i. For kernels: the rule has checked that they exist.
  unsigned mask(int rank) const {
    if (all) return (1u << rank) - 1;
    unsigned bits = front;
    for (unsigned rest = back; rest; rest &= rest - 1) bits |= 1u << (rank - 1 - __builtin_ctz(rest));
    return bits;
  }
};
/// axis_set() of a list.
AxisSet listed_axes(const At& at, const Tensor& x, const Axes& axes, bool keepdims);
/// Throws ValueError in the name of `what` if an axis fits no rank or is given twice; `name` is the argument.
inline AxisSet axis_set(const char* what, const Tensor& x, const Axes& axes, bool keepdims, const char* name = "axis") {
  if (axes.size_ < 0) return {.all = true, .keepdims = keepdims};  // None
  return listed_axes({what, name}, x, axes, keepdims);
}
/// axis_set() for functions composed of several ops: if the rank of x is known, also throws if x has no such axes.
AxisSet checked_axes(const char* what, const Tensor& x, const Axes& axes, bool keepdims);

/// The attributes of reductions, of unreduce_op (which broadcasts along the reduced axes again) and of ops that return
/// positions along them.
struct ReduceAttrs {
  static constexpr const char* attrs_name = "reduce";
  AxisSet axes;
  bool divide = false;  // unreduce_op: divide by the number of repetitions, for the adjoint of mean
};

/// The attributes of softmax, of logsumexp and of the losses over classes.
struct SoftmaxAttrs {
  static constexpr const char* attrs_name = "softmax";
  AxisSet axes;
  double epsilon = 0;  // losses from probabilities: these are clipped to [epsilon, 1 - epsilon]
};
/// The attributes of in_top_k.
struct InTopKAttrs {
  static constexpr const char* attrs_name = "in_top_k";
  std::int64_t k;
};

/// axes.mask() of the rank of x, which must be known. Throws ValueError if an axis is out of range or given twice.
unsigned axes_mask(const char* what, AxisSet axes, const TensorSpec& x, const char* name = "axis");
/// For rules: sets `out` to the shape of x without the axes, or with size 1 there if keepdims is set, and to x's dtype.
void reduced_spec(const char* what, AxisSet axes, const TensorSpec& x, TensorSpec* out, const char* name = "axis");

/// A concrete shape seen from one of its axes: `outer` times `n` parts of `inner` elements.
struct AxisSplit {
  std::int64_t outer = 1, n = 1, inner = 1;
  AxisSplit() = default;
  AxisSplit(const TensorSpec& x, int axis) : n(x.dims[axis]) {
    for (int i = 0; i < axis; ++i) outer *= x.dims[i];
    for (int i = axis + 1; i < x.rank; ++i) inner *= x.dims[i];
  }
};

/// The axes of a concrete shape, coalesced into alternating runs of marked and unmarked axes: adjacent axes of one kind
/// are merged, and axes of size 1 dropped.
struct CoalescedAxes {
  int n = 0;
  std::int64_t size[kMaxRank];
  bool marked[kMaxRank];  // true for axes in the mask
  CoalescedAxes() = default;
  CoalescedAxes(const TensorSpec& x, unsigned mask);
  void push(std::int64_t run, bool mark);
  /// The product of the sizes of runs [from, to).
  std::int64_t product(int from, int to) const;
  std::int64_t marked_product() const;
};

}  // namespace kassette::ops
