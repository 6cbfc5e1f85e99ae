// ops/shape/region.h - a strided box of elements of a tensor, which indexing, slices and padding read or write.
#pragma once
#include "ops/engine/op.h"

namespace kassette::ops {

/// A box: per axis of the tensor its start, step and number of elements; and the spec of the result.
struct Region {
  int rank;                                                       // of the tensor
  std::int64_t start[kMaxRank], step[kMaxRank], count[kMaxRank];  // count -1: unknown
  TensorSpec out;
};

/// Copies the region out of input 0. If it is contiguous, the output shares the input's storage.
void take(const OpCall& call, const Region& r);
/// Writes input 0 into the region of an output of zeros.
void write_padded(const OpCall& call, const Region& r);
/// The rule of write_padded(): the shape of the last input, the dtype of the first.
void padded_rule(const OpCall& call, TensorSpec* out);

}  // namespace kassette::ops
