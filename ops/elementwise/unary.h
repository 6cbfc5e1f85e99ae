// ops/elementwise/unary.h - the OpDefs and loop tables of the unary elementwise ops.
#pragma once
#include <array>

#include "devices/cpu/level.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/unary_ops.h"

namespace kassette::ops {

/// The loops of all unary ops at one CPU level, in the order of UnaryOps.
struct UnaryTable {
  ElementwiseFns f32[UnaryOps::size], f64[UnaryOps::size];
};
KASSETTE_LEVEL_TABLES(UnaryTable, unary_table)

/// The OpDefs, in the order of UnaryOps.
extern const std::array<OpDef, UnaryOps::size> unary_op_defs;
template <class Op>
const OpDef& unary_op() {
  return unary_op_defs[IndexOf<Op, UnaryOps>::value];
}

/// Apply an op without and with attributes: unary<Abs>(x), unary<Clip>(x, {.low = 0, .high = 1}).
template <class Op>
requires(!HasAttrs<Op>) Tensor unary(const Tensor& x) { return apply1(unary_op<Op>(), {x}); }
template <HasAttrs Op>
Tensor unary(const Tensor& x, const typename Op::Attrs& attrs) {
  return apply1(unary_op<Op>(), attrs, {x});
}

}  // namespace kassette::ops
