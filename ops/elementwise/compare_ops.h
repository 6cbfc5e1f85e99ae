// ops/elementwise/compare_ops.h - comparisons and logical ops: two operands of the same dtype give bool, and there is
// no gradient. Compiled by g++ (compare.cpp), for every CPU level (compare_simd.cpp) and by nvcc (compare.cu).
#pragma once
#include "ops/elementwise/unary_ops.h"

namespace kassette::ops {

#define KASSETTE_COMPARISON(Name, text, kinds, expression) \
  struct Name { \
    static constexpr const char* name = text; \
    static constexpr Domain takes = Domain::kinds; \
    template <class V> \
    KASSETTE_FN static bool value(const V& a, const V& b) { \
      return expression; \
    } \
  };
KASSETTE_COMPARISON(Equal, "equal", anything, a == b)
KASSETTE_COMPARISON(NotEqual, "not_equal", anything, a != b)
KASSETTE_COMPARISON(Less, "less", numbers, a < b)
KASSETTE_COMPARISON(LessEqual, "less_equal", numbers, a <= b)
KASSETTE_COMPARISON(Greater, "greater", numbers, a > b)
KASSETTE_COMPARISON(GreaterEqual, "greater_equal", numbers, a >= b)
KASSETTE_COMPARISON(LogicalAnd, "logical_and", bools, a& b)
KASSETTE_COMPARISON(LogicalOr, "logical_or", bools, a | b)
#undef KASSETTE_COMPARISON

using CompareOps = OpList<Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, LogicalAnd, LogicalOr>;

}  // namespace kassette::ops
