// ops/unary.h - the OpDefs and loop tables of the unary elementwise ops.
#pragma once
#include <array>

#include "devices/cpu/level.h"
#include "ops/elementwise.h"
#include "ops/unary_ops.h"

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

/// Applies an op with its parameters, in the order of Params: unary<Clip>(x, low, high).
template <class Op>
Tensor unary(const Tensor& x, double p = 0, double q = 0, double r = 0) {
  return apply1(unary_op<Op>(), Params{p, q, r}, {x});
}

}  // namespace kassette::ops
