// ops/elementwise/binary_simd.cpp - the float loops of the binary ops; compiled once per CPU level.
#include "ops/elementwise/simd.h"  // first: ops find the functions on batches that it declares

#include "ops/elementwise/binary.h"

namespace kassette::ops {
namespace {

template <class Op, class T>
constexpr ElementwiseFns loops() {
  if constexpr (Op::takes == Domain::integers) return {};
  else return {{binary_loop<Op, T, 0>, binary_loop<Op, T, 1>, binary_loop<Op, T, 2>}};
}

template <class... Ops>
constexpr BinaryTable make_table(OpList<Ops...>) {
  return {{loops<Ops, float>()...}, {loops<Ops, double>()...}};
}

}  // namespace

constinit const BinaryTable KASSETTE_LEVEL_NAME(binary_table) = make_table(BinaryOps{});

}  // namespace kassette::ops
