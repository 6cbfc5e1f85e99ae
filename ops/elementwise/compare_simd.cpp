// ops/elementwise/compare_simd.cpp - comparisons of floats; compiled once per CPU level. The compiler makes vectors of
// the loops.
#include "ops/elementwise/compare.h"

namespace kassette::ops {
namespace {

template <class Op, class T>
constexpr ElementwiseFns loops() {
  if constexpr (Op::takes == Domain::bools) return {};
  else return {{compare_loop<Op, T, 0>, compare_loop<Op, T, 1>, compare_loop<Op, T, 2>}};
}

template <class... Ops>
constexpr CompareTable make_table(OpList<Ops...>) {
  return {{loops<Ops, float>()...}, {loops<Ops, double>()...}};
}

}  // namespace

constinit const CompareTable KASSETTE_LEVEL_NAME(compare_table) = make_table(CompareOps{});

}  // namespace kassette::ops
