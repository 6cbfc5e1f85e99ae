// ops/shape/index.h - index expressions, x[...], independent of the shape of x.
#pragma once
#include <vector>

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

/// x[part, part, ...]. The op's attributes share `parts`.
Tensor index(const Tensor& x, Ref<Extra> parts);

}  // namespace kassette::ops
