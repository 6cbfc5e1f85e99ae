// ops/elementwise/binary.h - the OpDefs and loop tables of the binary elementwise ops.
#pragma once
#include <array>

#include "devices/cpu/level.h"
#include "ops/elementwise/binary_ops.h"
#include "ops/elementwise/elementwise.h"

namespace kassette::ops {

/// The loops of one CPU level, in the order of BinaryOps.
struct BinaryTable {
  ElementwiseFns f32[BinaryOps::size], f64[BinaryOps::size];
};
KASSETTE_LEVEL_TABLES(BinaryTable, binary_table)

/// The OpDefs, in the order of BinaryOps.
extern const std::array<OpDef, BinaryOps::size> binary_op_defs;
/// The ops with which the engine accumulates cotangents and updates variables.
const OpDef& add_op();
const OpDef& subtract_op();
/// Runs a binary op into the storage of `out`, which may be that of in[0]. in[1] may be a scalar.
void run_binary(const OpDef& op, const InputView* in, TensorDesc& out);

template <class Op>
const OpDef& binary_op() {
  return binary_op_defs[IndexOf<Op, BinaryOps>::value];
}

/// Applies an op: binary<Add>(a, b). A number or list takes the dtype of the tensor that it is combined with.
template <class Op>
Tensor binary(const Operand& x, const Operand& y) {
  return apply_binary(binary_op<Op>(), x, y);
}

}  // namespace kassette::ops
