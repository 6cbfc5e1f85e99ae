// ops/unary.h - the rows and loop tables of the unary elementwise ops.
#pragma once
#include <array>
#include <cstring>

#include "devices/cpu/level.h"
#include "ops/elementwise.h"
#include "ops/unary_ops.h"

namespace kassette {

struct UnaryTable {
  LoopSet f32[UnaryOps::size], f64[UnaryOps::size];
};
KASSETTE_LEVEL_TABLES(UnaryTable, unary_table)

/// The rows, in the order of UnaryOps.
extern const std::array<OpDef, UnaryOps::size> unary_rows;
template <class Op>
const OpDef& unary_row() {
  return unary_rows[IndexOf<Op, UnaryOps>::value];
}

/// Applies an op: unary<Exp>(x).
template <class Op>
Tensor unary(const Tensor& x, double p = 0, double q = 0, double r = 0) {
  Attrs a;
  a.x = p;
  a.y = q;
  std::memcpy(&a.b, &r, sizeof a.b);
  return apply1(unary_row<Op>(), a, {x});
}

}  // namespace kassette
