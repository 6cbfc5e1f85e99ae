// ops/sparse/sparse_view.h - the indices of a sparse tensor in the form that products and device kernels read.
#pragma once
#include <cstdint>

#include "ops/engine/cotangent.h"

namespace kassette::ops {

/// Attributes of sparse_dot, whose factors are the values and the dense matrix.
struct SparseDotAttrs {
  static constexpr const char* attrs_name = "sparse_dot";
  bool transposed;  // use the transpose of the sparse matrix
  Cotangent cotangent = Cotangent::neither;
};
/// Attributes of sparse_products.
struct SparseProductsAttrs {
  static constexpr const char* attrs_name = "sparse_products";
  Cotangent cotangent;
};

/// Pointers to one part of a SparseIndex, in the memory of the CPU or of a device. Pointers to other parts are null.
struct SparseView {
  /// The parts of a SparseIndex.
  enum Part {
    kPlaces,   // the indices, unsorted
    kRows,     // SparseLines of axis 0
    kColumns,  // SparseLines of axis 1
    kElements  // SparseElements
  };
  std::int64_t count;            // entries
  const std::int64_t* places;    // kPlaces: (count, rank)
  std::int64_t n;                // lines, or elements that have entries
  const std::int64_t* starts;    // n + 1
  const std::uint32_t* others;   // kRows, kColumns
  const std::uint32_t* order;    // null for lines if the values are in this order already
  const std::int64_t* elements;  // kElements
};

}  // namespace kassette::ops
