// ops/fold_loops.h - the loops of folds, with a table for each CPU level.
#pragma once
#include <cstdint>

#include "devices/cpu/level.h"

namespace kassette::ops {

/// The folds; the index of each in the tables of loops.
enum class Fold : std::uint8_t { sum, prod, max, min };

/// The loops of one fold for one element type.
template <class T>
struct FoldLoops {
  /// out[i] = fold of x[i * n .. i * n + n) for i < count; n >= 1.
  void (*rows)(const T* x, T* out, std::int64_t count, std::int64_t n);
  /// out[c] = fold of x[r * stride + c] over r < n, for c < width; n >= 1.
  void (*columns)(const T* x, T* out, std::int64_t n, std::int64_t stride, std::int64_t width);
};
/// Sums of squared deviations from means: one mean per row, or per column.
template <class T>
struct DeviationLoops {
  void (*rows)(const T* x, const T* mean, T* out, std::int64_t count, std::int64_t n);
  void (*columns)(const T* x, const T* mean, T* out, std::int64_t n, std::int64_t stride, std::int64_t width);
};
/// The loops of one CPU level; those of folds by Fold.
struct FoldTable {
  FoldLoops<float> f32[4];
  FoldLoops<double> f64[4];
  DeviationLoops<float> deviation_f32;
  DeviationLoops<double> deviation_f64;
};
KASSETTE_LEVEL_TABLES(FoldTable, fold_table)

}  // namespace kassette::ops
