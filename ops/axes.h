// ops/axes.h - axes of reductions: as an attribute, and as runs of memory.
#pragma once
#include "ops/op.h"

namespace kassette {

/// Axes and keepdims as one attribute that needs no rank: bit i for axis i, bit 8 + i for axis -1 - i, and kAllAxes, kKeepDims.
inline constexpr std::int64_t kKeepDims = 1 << 16, kAllAxes = 1 << 17;
std::int64_t encode_axes(const char* what, const Tensor& x, const Axes& axes, bool keepdims);
/// One axis, with keepdims: what scans and softmax take.
std::int64_t encode_axis(const char* what, const Tensor& x, int axis);

/// The attributes of reductions, of what repeats along the reduced axes and of what finds a place along them.
struct ReduceAttrs {
  static constexpr const char* attrs_name = "reduce";
  std::int64_t axes;    // as encode_axes gives them
  bool divide = false;  // unreduce_op: by the number of repetitions, as the adjoint of mean does
};

/// The attributes of softmax, of logsumexp and of the losses over classes.
struct SoftmaxAttrs {
  static constexpr const char* attrs_name = "softmax";
  std::int64_t axes;   // as encode_axes gives them
  double epsilon = 0;  // of losses from probabilities: between it and 1 - epsilon they count
};
struct InTopKAttrs {
  static constexpr const char* attrs_name = "in_top_k";
  std::int64_t k;
};

/// The same for compositions: throws in the name of `what` where x has no such axes, as far as its rank is known.
std::int64_t checked_axes(const char* what, const Tensor& x, const Axes& axes, bool keepdims);

/// For rules: bit i for each axis of x, whose rank is known. Throws ValueError for an axis that is out of range or twice there.
unsigned axes_mask(const char* what, std::int64_t code, const TensorSpec& x);
/// For rules: x without the axes, or with size 1 there; of x's dtype.
void reduced_spec(const char* what, std::int64_t code, const TensorSpec& x, TensorSpec* out);

/// Axes of a concrete shape as alternating runs of memory: neighbours of one kind are joined, axes of size 1 dropped.
struct CoalescedAxes {
  int n = 0;
  std::int64_t size[kMaxRank];
  bool marked[kMaxRank];  // the axes of the mask
  CoalescedAxes() = default;
  CoalescedAxes(const TensorSpec& x, unsigned mask);
  void push(std::int64_t run, bool mark);
  /// The product of the sizes of runs [from, to).
  std::int64_t product(int from, int to) const;
  std::int64_t marked_product() const;
};

}  // namespace kassette
