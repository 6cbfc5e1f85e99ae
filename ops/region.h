// ops/region.h - a box of elements of a tensor: what indexing, slices and padding take out and put in.
#pragma once
#include "ops/op.h"

namespace kassette {

/// Where each axis starts, how it steps and how far, and the shape of what is taken.
struct Region {
  int rank;                                                       // of the tensor
  std::int64_t start[kMaxRank], step[kMaxRank], count[kMaxRank];  // count -1: unknown
  TensorSpec out;
};

/// Copies the region out of input 0, or shares it where it stands in one piece.
void take(const OpCall& call, const Region& r);
/// Input 0 into the region of zeros.
void embed(const OpCall& call, const Region& r);
/// The rule of embedding: the shape of the last input, the dtype of the first.
void embed_rule(const OpCall& call, TensorSpec* out);

}  // namespace kassette
