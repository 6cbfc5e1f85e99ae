// ops/index.h - what an index expression asks for, independent of the shape it meets.
#pragma once
#include <vector>

#include "core/impl.h"

namespace kassette {

/// The parts of an index expression, as numbers.
struct IndexList : Extra {
  enum Kind : std::uint8_t { kInt, kSlice, kNewAxis, kEllipsis };
  struct Part {
    Kind kind = kSlice;
    bool has_start = false, has_stop = false;
    std::int64_t start = 0, stop = 0, step = 1;
    bool operator==(const Part&) const = default;
    bool whole() const { return kind == kSlice && !has_start && !has_stop && step == 1; }
  };
  static constexpr int kParts = 2 * kMaxRank + 1;
  int n = 0;
  Part parts[kParts];

  void push(const Part& part);
  bool equals(const Extra& other) const override;
};

/// What an index takes where it is whole along all axes but one, and there a run: in memory, `width` elements from `first` on in
/// each of `rows` rows of `whole` elements.
struct ColumnSlice {
  std::int64_t rows = 1, width = 1, whole = 1, first = 0;
};
/// Of a row that takes from, or embeds in, a tensor of shape x; false where the index is of another kind.
bool column_slice_of(const Attrs& attrs, const TensorSpec& x, ColumnSlice* window);

/// x[part, part, ...]; the parts are kept.
Tensor index(const Tensor& x, Ref<Extra> parts);

}  // namespace kassette
