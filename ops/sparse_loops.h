// ops/sparse_loops.h - the loops of sparse products, at the CPU level in use.
#pragma once
#include <cstdint>

#include "devices/cpu/level.h"

namespace kassette {

/// The entries of a matrix by lines; see SparseLines.
struct SparseEntries {
  const std::int64_t* starts;
  const std::uint32_t* others;
  const std::uint32_t* order;  // null: the values are in this order already
};

template <class T>
struct SparseLoops {
  /// Lines [begin, end) of the product with x, (others, width): each the sum of rows of x times the line's values.
  void (*dot)(const SparseEntries& m, const T* values, const T* x, T* out, std::int64_t width, std::int64_t begin,
              std::int64_t end);
  /// out[k] = <row at[2 k] of a, row at[2 k + 1] of b> for k in [begin, end); rows of `width` elements.
  void (*products)(const std::int64_t* at, const T* a, const T* b, T* out, std::int64_t width, std::int64_t begin,
                   std::int64_t end);
};
struct SparseTable {
  SparseLoops<float> floats;
  SparseLoops<double> doubles;
};
KASSETTE_LEVEL_TABLES(SparseTable, sparse_table)

}  // namespace kassette
