// ops/axes.h - axes of reductions: encoded as an attribute, and coalesced into runs of memory.
#pragma once
#include "ops/op.h"

namespace kassette::ops {

/// Axes and keepdims encoded as one number, also if the rank is unknown: bit i for axis i, bit 8 + i for axis -1 - i,
/// and the flags below. Throws in the name of `what` if an axis fits no rank or is given twice; `name` is
/// the argument.
inline constexpr std::int64_t kKeepDims = 1 << 16, kAllAxes = 1 << 17;
std::int64_t encode_axes(const char* what, const Tensor& x, const Axes& axes, bool keepdims, const char* name = "axis");
/// Encodes one axis, with keepdims, as scans and softmax take it.
std::int64_t encode_axis(const char* what, const Tensor& x, int axis);

/// The attributes of reductions, of unreduce_op (which broadcasts along the reduced axes again) and of ops that return
/// positions along them.
struct ReduceAttrs {
  static constexpr const char* attrs_name = "reduce";
  std::int64_t axes;    // from encode_axes()
  bool divide = false;  // unreduce_op: divide by the number of repetitions, for the adjoint of mean
};

/// The attributes of softmax, of logsumexp and of the losses over classes.
struct SoftmaxAttrs {
  static constexpr const char* attrs_name = "softmax";
  std::int64_t axes;   // from encode_axes()
  double epsilon = 0;  // losses from probabilities: these are clipped to [epsilon, 1 - epsilon]
};
/// The attributes of in_top_k.
struct InTopKAttrs {
  static constexpr const char* attrs_name = "in_top_k";
  std::int64_t k;
};

/// encode_axes() for functions composed of several ops: if the rank of x is known, also throws in the name of `what` if
/// x has no such axes.
std::int64_t checked_axes(const char* what, const Tensor& x, const Axes& axes, bool keepdims);

/// For rules: decodes `code` for x, whose rank must be known; bit i stands for axis i. Throws ValueError if an axis is
/// out of range or given twice.
unsigned axes_mask(const char* what, std::int64_t code, const TensorSpec& x, const char* name = "axis");
/// For rules: sets `out` to the shape of x without the axes, or with size 1 there if keepdims is set, and to x's dtype.
void reduced_spec(const char* what, std::int64_t code, const TensorSpec& x, TensorSpec* out, const char* name = "axis");

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
