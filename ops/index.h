// ops/index.h - what an index expression asks for, independent of the shape it meets.
#pragma once
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

/// x[part, part, ...]; the parts are kept.
Tensor index(const Tensor& x, Ref<Extra> parts);

}  // namespace kassette
