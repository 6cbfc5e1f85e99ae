// ops/sparse_view.h - the indices of a sparse tensor as products and device kernels read them.
#pragma once
#include <cstdint>

namespace kassette {

struct SparseDotAttrs {
  static constexpr const char* attrs_name = "sparse_dot";
  bool transposed;  // the sparse matrix is
};

/// What of SparseIndex is wanted, and where it lies: in memory of the CPU or of a device.
struct SparseView {
  enum Part {
    kPlaces,   // the indices as they are
    kRows,     // SparseLines of axis 0
    kColumns,  // SparseLines of axis 1
    kElements  // SparseElements
  };
  std::int64_t count;            // entries
  const std::int64_t* places;    // kPlaces: (count, rank)
  std::int64_t n;                // lines, or elements that have entries
  const std::int64_t* starts;    // n + 1
  const std::uint32_t* others;   // kRows, kColumns
  const std::uint32_t* order;    // null for lines whose values are in this order already
  const std::int64_t* elements;  // kElements
};

}  // namespace kassette
