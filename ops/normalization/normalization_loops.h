// ops/normalization/normalization_loops.h - the loops of batch normalisation, with a table for each CPU level. Results
// have the same bits on every level: the order of summation does not depend on the width of vectors, and no
// multiply-add is fused.
#pragma once
#include <cstdint>

#include "devices/cpu/level.h"

namespace kassette::ops {

/// A matrix of n rows of `width` contiguous elements; rows begin `stride` elements apart.
struct RowMatrix {
  std::int64_t n, stride, width;
  bool stream = false;  // write past the caches, since the output is larger than they are
  bool alike = false;   // in the `rows` forms: one parameter for all rows
};

/// Loops over matrices, with a parameter for each column; the `rows` forms have one for each row.
template <class T>
struct NormalizationLoops {
  /// The mean of each column, what its rounding took (Note [The rounding of a mean]), and the sum of squared
  /// deviations.
  void (*moments)(const T* x, const RowMatrix& r, T* mean, T* rest, T* squares);
  /// The sums of dy and of dy * (x - mean) over each column.
  void (*sums)(const T* dy, const T* x, const RowMatrix& r, const T* mean, T* sum, T* product);
  /// y = (x - mean) * scale + shift; shift may be null.
  void (*scale)(const T* x, const RowMatrix& r, const T* mean, const T* scale, const T* shift, T* y);
  void (*scale_rows)(const T* x, const RowMatrix& r, const T* mean, const T* scale, const T* shift, T* y);
  /// dx = dy * a + (x - mean) * b + c.
  void (*gradient)(const T* dy, const T* x, const RowMatrix& r, const T* mean, const T* a, const T* b, const T* c,
                   T* dx);
  void (*gradient_rows)(const T* dy, const T* x, const RowMatrix& r, const T* mean, const T* a, const T* b, const T* c,
                        T* dx);
};
/// The loops of one CPU level.
struct NormalizationTable {
  NormalizationLoops<float> f32;
  NormalizationLoops<double> f64;
};
KASSETTE_LEVEL_TABLES(NormalizationTable, normalization_table)

}  // namespace kassette::ops
