// ops/normalization_loops.h - the loops of batch normalisation, as each CPU level has them. All give the same bits on every level: an
// order of summation that no vector width changes, and no fused multiply-add.
#pragma once
#include <cstdint>

#include "devices/cpu/level.h"

namespace kassette {

/// A matrix of n rows, `stride` elements apart, of `width` neighbouring elements.
struct Rows {
  std::int64_t n, stride, width;
  bool stream = false;  // the output is larger than the caches: write past them
  bool alike = false;   // the `rows` forms: one parameter for all
};

/// Loops over matrices. Parameters are one per column; the `rows` forms have one per row.
template <class T>
struct NormalizationLoops {
  /// The mean of each column, and the sum of the squares of what is beside it.
  void (*moments)(const T* x, const Rows& r, T* mean, T* squares);
  /// Sums over each column of dy, and of dy * (x - mean).
  void (*sums)(const T* dy, const T* x, const Rows& r, const T* mean, T* sum, T* product);
  /// y = (x - mean) * scale + shift; shift may be null.
  void (*scale)(const T* x, const Rows& r, const T* mean, const T* scale, const T* shift, T* y);
  void (*scale_rows)(const T* x, const Rows& r, const T* mean, const T* scale, const T* shift, T* y);
  /// dx = dy * a + (x - mean) * b + c.
  void (*gradient)(const T* dy, const T* x, const Rows& r, const T* mean, const T* a, const T* b, const T* c, T* dx);
  void (*gradient_rows)(const T* dy, const T* x, const Rows& r, const T* mean, const T* a, const T* b, const T* c,
                        T* dx);
};
struct NormalizationTable {
  NormalizationLoops<float> f32;
  NormalizationLoops<double> f64;
};
KASSETTE_LEVEL_TABLES(NormalizationTable, normalization_table)

}  // namespace kassette
