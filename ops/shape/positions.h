// ops/shape/positions.h - where the elements are that several index tensors, or a mask, select: positions in axes that
// are taken together.
#pragma once
#include "ops/engine/op.h"
#include "ops/shape/index.h"

namespace kassette::ops {

extern const OpDef nonzero_op, index_positions_op;

/// The parts of an index for some axes that follow each other: integers, slices, new axes, and tensors of integers.
struct PositionList : TaggedExtra<PositionList> {
  static constexpr const char* attrs_name = "position_list";
  struct Part {
    IndexList::Part basic;    // unless the part is a tensor
    std::int8_t tensor = -1;  // which of the tensors it is
    std::int8_t axes = 1;     // how many it indexes, as one
    std::int8_t named = 0;    // the first of them in errors
  };
  int n = 0;
  Part parts[IndexList::kParts];
  int first = 0, axes = 0;  // of the tensor that is indexed
  bool in_front = false;    // the axes of the index tensors come first in the result
};

/// The row-major positions, in the axes of the list taken together, of the elements that the list selects: int64, with
/// the shape that these axes have in the result. The index tensors are int64 and are broadcast; one alone may be int32
/// on the CPU if its axis is not longer than int32 counts, and positions are int32 then. Indices are checked here, so
/// that positions are in range. x has a known rank; only its shape is used.
Tensor index_positions(const Tensor& x, const Tensor* tensors, int n, const Ref<PositionList>& list);

/// The row-major positions of the elements of x that are not zero, as int64 (n,), on x's device. n is known when the
/// value is. `like`: if it is given, x must have the sizes of its axes from `axis` on.
Tensor nonzero_positions(const Tensor& x);
Tensor nonzero_positions(const Tensor& x, const Tensor& like, int axis);
/// The indices of these elements in row-major order: int64 (n,) for each axis, or (n, rank).
Tensors nonzero_indices(const Tensor& x);
Tensor nonzero(const Tensor& x);

}  // namespace kassette::ops
