// ops/elementwise/unary_simd.cpp - the float loops of the unary ops; compiled once per CPU level.
#include "ops/elementwise/simd.h"  // first, since the ops call the functions on batches that it declares

#include "ops/elementwise/unary.h"

namespace kassette::ops {
namespace {

template <class Op, class T>
constexpr ElementwiseFns loops() {
  if constexpr (Op::takes == Domain::integers) return {};
  else return {{unary_loop<Op, T>}};
}
template <class... Ops>
constexpr UnaryTable make_table(OpList<Ops...>) {
  return {{loops<Ops, float>()...}, {loops<Ops, double>()...}};
}

}  // namespace

constinit const UnaryTable KASSETTE_LEVEL_NAME(unary_table) = make_table(UnaryOps{});

}  // namespace kassette::ops
