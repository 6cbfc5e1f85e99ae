// ops/elementwise/compare.h - the OpDefs and loop tables of comparisons and logical ops.
#pragma once
#include <array>

#include "devices/cpu/level.h"
#include "ops/elementwise/compare_ops.h"
#include "ops/elementwise/elementwise.h"

namespace kassette::ops {

/// The loops of one CPU level, in the order of CompareOps.
struct CompareTable {
  ElementwiseFns f32[CompareOps::size], f64[CompareOps::size];
};
KASSETTE_LEVEL_TABLES(CompareTable, compare_table)

/// The OpDefs, in the order of CompareOps.
extern const std::array<OpDef, CompareOps::size> compare_op_defs;
extern const OpDef logical_not_op;

/// One comparison over n elements. kMask: bit 0 if the first operand is a single element, bit 1 if the second one is.
/// `out` may be one of the inputs only if their elements have one byte. Internal linkage, so that every CPU level
/// compiles its own.
template <class Op, class T, int kMask>
static void compare_loop(const void* const* in, void* out, std::int64_t n, const Attrs&) {
  auto* a = static_cast<const T*>(in[0]);
  auto* b = static_cast<const T*>(in[1]);
  auto* o = static_cast<bool*>(out);
  const T one_a = kMask & 1 ? *a : T(), one_b = kMask & 2 ? *b : T();
  for (std::int64_t i = 0; i < n; ++i) o[i] = Op::value(kMask & 1 ? one_a : a[i], kMask & 2 ? one_b : b[i]);
}

}  // namespace kassette::ops
