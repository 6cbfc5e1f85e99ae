// ops/sparse/sparse_loops.h - the inner loops of sparse products at one CPU level.
#pragma once
#include <cstdint>

#include "devices/cpu/level.h"

namespace kassette::ops {

/// The entries of a matrix grouped by lines (rows or columns): see SparseLines.
struct SparseEntries {
  const std::int64_t* starts;
  const std::uint32_t* others;
  const std::uint32_t* order;  // null if the values are in this order already
};

/// Loops of products for one dtype.
template <class T>
struct SparseLoops {
  /// Lines [begin, end) of the product with x of shape (others, width): each is the sum of rows of x, weighted by the
  /// line's values.
  void (*dot)(const SparseEntries& m, const T* values, const T* x, T* out, std::int64_t width, std::int64_t begin,
              std::int64_t end);
  /// out[k] is the dot product of row at[2 k] of a and row at[2 k + 1] of b, for k in [begin, end). Rows have `width`
  /// elements.
  void (*products)(const std::int64_t* at, const T* a, const T* b, T* out, std::int64_t width, std::int64_t begin,
                   std::int64_t end);
};
/// The loops of one CPU level.
struct SparseTable {
  SparseLoops<float> floats;
  SparseLoops<double> doubles;
};
KASSETTE_LEVEL_TABLES(SparseTable, sparse_table)

}  // namespace kassette::ops
