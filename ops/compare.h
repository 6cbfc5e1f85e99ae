// ops/compare.h - the rows and loop tables of comparisons and logical ops.
#pragma once
#include <array>

#include "devices/cpu/level.h"
#include "ops/compare_ops.h"
#include "ops/elementwise.h"

namespace kassette {

struct CompareTable {
  LoopSet f32[CompareOps::size], f64[CompareOps::size];
};
KASSETTE_LEVEL_TABLES(CompareTable, compare_table)

/// The rows, in the order of CompareOps.
extern const std::array<OpDef, CompareOps::size> compare_rows;
extern const OpDef logical_not_op;

/// One comparison over n elements; kMask: 1 the first operand is one element, 2 the second. In place only for elements of
/// one byte. Internal linkage: every CPU level has its own.
template <class Op, class T, int kMask>
static void compare_loop(const void* const* in, void* out, std::int64_t n, const Attrs&) {
  auto* a = static_cast<const T*>(in[0]);
  auto* b = static_cast<const T*>(in[1]);
  auto* o = static_cast<bool*>(out);
  const T one_a = kMask & 1 ? *a : T(), one_b = kMask & 2 ? *b : T();
  for (std::int64_t i = 0; i < n; ++i) o[i] = Op::value(kMask & 1 ? one_a : a[i], kMask & 2 ? one_b : b[i]);
}

}  // namespace kassette
