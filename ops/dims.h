// ops/dims.h - shape arguments as tensors, and shapes out of tensors.
#pragma once
#include <iosfwd>

#include "core/rank.h"
#include "ops/op.h"

namespace kassette {

extern const OpDef shape_op, size_op, pack_op;

/// The run-time shape as a 1-D tensor on the host; int32 as the specification has it, int64 for our own use.
Tensor shape_of(const Tensor& x, DType dtype);
/// The number of elements as an int32 scalar on the host.
Tensor size_of(const Tensor& x);

/// A shape argument as ops take it: a 1-D int64 tensor on the host. Numbers only: concrete. Scalar tensors among them: packed,
/// symbolic if one is. One integer tensor: itself. An entry None becomes -1. Throws in the name of `what`.
Tensor dims_tensor(const Dims& dims, const char* what);

/// The shape that a concrete dims_tensor holds. Throws ValueError for negative numbers, in the name of `what`.
TensorSpec shape_from(const Tensor& dims, DType dtype, const char* what);

/// What a rule knows of a shape argument.
struct DimValues {
  int rank = -1;             // -1: unknown
  std::uint8_t unknown = 0;  // bit i: at[i] is not known before the function is called
  std::int64_t at[kMaxRank];
  bool is_unknown(int i) const { return unknown >> i & 1; }
};
/// Prints unknown sizes as None and numbers as they are, -1 too.
std::ostream& operator<<(std::ostream& os, const DimValues& dims);
/// Input i, a 1-D integer tensor on the host: its values where they are known; else looks through packed numbers and
/// shape(y)[j], so that static dims stay static. Negative numbers come as they are.
DimValues read_dims(const OpCall& call, int i);
/// The same as a shape: rank and dims of `out`. Throws ValueError for negative numbers.
void dims_from(const OpCall& call, int i, TensorSpec* out);

/// Whether the elements of `a` are those of a row of `b`, so that broadcast to `b` they come again and again. Both shapes are known.
bool repeats_rows(const TensorSpec& a, const TensorSpec& b);

}  // namespace kassette
