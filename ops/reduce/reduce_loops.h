// ops/reduce/reduce_loops.h - the loops of reductions, with a table for each CPU level.
#pragma once
#include <cstdint>

#include "devices/cpu/level.h"
#include "devices/reduction.h"

namespace kassette::ops {

using devices::Reduction;

/// The loops of one reduction for one element type.
template <class T>
struct ReduceLoops {
  /// out[i] = reduction of x[i * n .. i * n + n) for i < count; n >= 1.
  void (*rows)(const T* x, T* out, std::int64_t count, std::int64_t n);
  /// out[c] = reduction of x[r * stride + c] over r < n, for c < width; n >= 1.
  void (*columns)(const T* x, T* out, std::int64_t n, std::int64_t stride, std::int64_t width);
};
/// Sums over deviations from centres: one centre per row, or per column.
template <class T>
struct DeviationLoops {
  void (*rows)(const T* x, const T* center, T* out, std::int64_t count, std::int64_t n);
  void (*columns)(const T* x, const T* center, T* out, std::int64_t n, std::int64_t stride, std::int64_t width);
};
/// The loops of one CPU level; those of reductions by Reduction.
struct ReduceTable {
  ReduceLoops<float> f32[devices::kReductions];
  ReduceLoops<double> f64[devices::kReductions];
  DeviationLoops<float> deviations_f32, squares_f32;  // of the deviations, and of their squares
  DeviationLoops<double> deviations_f64, squares_f64;
};
KASSETTE_LEVEL_TABLES(ReduceTable, reduce_table)

}  // namespace kassette::ops
