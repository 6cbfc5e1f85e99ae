// ops/engine/dims.h - conversion of shape arguments to tensors, and of tensors to shapes.
#pragma once
#include <iosfwd>

#include "core/rank.h"
#include "ops/engine/op.h"

namespace kassette::ops {

extern const OpDef shape_op, size_op, pack_op;

/// The run-time shape as a 1-D tensor on the host: int32 for K::shape, as in Keras, int64 inside the library.
Tensor shape_of(const Tensor& x, DType dtype);
/// The number of elements as an int32 scalar on the host.
Tensor size_of(const Tensor& x);

/// Converts a shape argument to the form that ops take, a 1-D integer tensor on the host. Numbers give a concrete int64
/// tensor; if scalar tensors are among them they are packed, and the result is symbolic if one of them is. A single 1-D
/// integer tensor is returned itself, on the host. An entry None becomes -1. Throws in the name of `what`, of its
/// argument `name`.
Tensor dims_tensor(const Dims& dims, const char* what, const char* name = "shape");

/// Returns the shape that a concrete tensor from dims_tensor() holds. Throws ValueError in the name of `what`, of its
/// argument `name`, if a size is negative.
TensorSpec shape_from(const Tensor& dims, DType dtype, const char* what, const char* name = "shape");

/// The sizes in a shape argument, as far as a rule knows them.
struct DimValues {
  int rank = -1;             // -1: unknown
  std::uint8_t unknown = 0;  // bit i is set if at[i] is not known before the function is called
  std::int64_t at[kMaxRank];
  bool is_unknown(int i) const { return unknown >> i & 1; }
};
/// Prints unknown sizes as None, and all numbers, including -1, as numbers.
std::ostream& operator<<(std::ostream& os, const DimValues& dims);
/// Reads input i, a 1-D integer tensor on the host. If it has no value yet, looks on the tape through packed, stacked
/// or concatenated numbers and shape(y)[j], so that static sizes stay static. Negative numbers are returned as they
/// are. `name`: the argument, for errors.
DimValues read_dims(const OpCall& call, int i, const char* name = "shape");
/// Sets rank and dims of `out` from read_dims(call, i, name). Throws ValueError if a size is negative.
void dims_from(const OpCall& call, int i, TensorSpec* out, const char* name = "shape");

/// True if the shape of `a`, without leading axes of size 1, is that of the last axes of `b`, so that broadcasting `a`
/// to `b` repeats its elements in their order. Both shapes must be known.
bool repeats_rows(const TensorSpec& a, const TensorSpec& b);

}  // namespace kassette::ops
