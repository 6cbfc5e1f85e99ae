// ops/binary.h - the rows and loop tables of the binary elementwise ops.
#pragma once
#include <array>

#include "devices/cpu/level.h"
#include "ops/binary_ops.h"
#include "ops/elementwise.h"

namespace kassette {

struct BinaryTable {
  LoopSet f32[BinaryOps::size], f64[BinaryOps::size];
};
KASSETTE_LEVEL_TABLES(BinaryTable, binary_table)

/// The rows, in the order of BinaryOps.
extern const std::array<OpDef, BinaryOps::size> binary_rows;
/// Rows that the engine adds with.
const OpDef& add_op();
const OpDef& subtract_op();

template <class Op>
const OpDef& binary_op() {
  return binary_rows[IndexOf<Op, BinaryOps>::value];
}

/// Applies an op: binary<Add>(a, b). A number or list takes the dtype of the tensor beside it.
template <class Op>
Tensor binary(const Operand& x, const Operand& y) {
  return apply_beside(binary_op<Op>(), x, y);
}

}  // namespace kassette
