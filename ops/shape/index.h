// ops/shape/index.h - index expressions, x[...], independent of the shape of x.
#pragma once
#include <algorithm>

#include "core/impl.h"

namespace kassette::ops {

/// The parts of an index expression: integers, slices, new axes and an ellipsis.
struct IndexList : TaggedExtra<IndexList> {
  static constexpr const char* attrs_name = "index_list";
  enum Kind : std::uint8_t { kInt, kSlice, kNewAxis, kEllipsis };
  /// One entry of the list. An integer (kInt) is in `start`.
  struct Part {
    Kind kind = kSlice;
    bool has_start = false, has_stop = false;
    std::int64_t start = 0, stop = 0, step = 1;
    bool whole() const { return kind == kSlice && !has_start && !has_stop && step == 1; }
  };
  static constexpr int kParts = 2 * kMaxRank + 1;
  int n = 0;
  Part parts[kParts];

  void push(const Part& part);
};

/// An index that takes all of every axis but one, and a contiguous range of that one. In memory these are `width`
/// elements from `first` on in each of `rows` rows of `whole` elements.
struct ColumnSlice {
  std::int64_t rows = 1, width = 1, whole = 1, first = 0;
};
/// Sets `slice` from the attributes of an index op or of its adjoint, for an indexed tensor of shape x. Returns false
/// if the index is of another kind, or x is a scalar or its shape is not known.
bool column_slice_of(const Attrs& attrs, const TensorSpec& x, ColumnSlice* slice);

/// The elements that a slice takes of an axis of n, which may be unknown: `count` is then unknown too. As in Python,
/// bounds are clipped.
struct Run {
  std::int64_t start = 0, step = 1, count = 0;
};
inline Run run_of(const IndexList::Part& p, std::int64_t n) {
  if (n < 0) return {0, p.step, kUnknown};
  std::int64_t low = p.step < 0 ? -1 : 0, high = p.step < 0 ? n - 1 : n;
  auto place = [&](std::int64_t v) { return std::clamp(v < 0 ? v + n : v, low, high); };
  std::int64_t start = p.has_start ? place(p.start) : p.step < 0 ? high : low;
  std::int64_t stop = p.has_stop ? place(p.stop) : p.step < 0 ? low : high;
  std::int64_t span = p.step < 0 ? start - stop : stop - start;
  std::uint64_t stride = p.step < 0 ? 0 - static_cast<std::uint64_t>(p.step) : static_cast<std::uint64_t>(p.step);
  const std::int64_t count =
      span <= 0 ? 0 : static_cast<std::int64_t>((static_cast<std::uint64_t>(span) - 1) / stride) + 1;
  return {count ? start : 0, count <= 1 ? 1 : p.step, count};
}
/// An integer index counted from the front, unless the axis is negative or unknown. Throws ValueError in the name of
/// `op` if it is out of range for that axis of x.
std::int64_t place_index(const char* op, std::int64_t i, int axis, const TensorSpec& x);
/// Throws ValueError: x has fewer axes than there are indices.
[[noreturn]] void fail_index_count(int given, const TensorSpec& x, const char* op = "index");

/// x[part, part, ...]. The op's attributes share `parts`.
Tensor index(const Tensor& x, Ref<Extra> parts);

}  // namespace kassette::ops
