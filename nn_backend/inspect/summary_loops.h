// nn_backend/inspect/summary_loops.h - the loops of summaries and histograms, compiled for each CPU level, with the
// same bits on all.
#pragma once
#include <cstdint>

#include "devices/cpu/level.h"

namespace kassette::inspect {

/// Statistics of the finite elements, and the number of NaNs.
struct Statistics {
  std::int64_t finite, nan, zeros;
  double min, max, sum;  // sum: of differences. Without finite elements min is infinity, max is -infinity
};
/// The bin of a number v is (v * unit - start) * scale + bias, rounded down and clamped to 0 ... n - 1.
struct BinRule {
  double unit, start, scale, bias;
  int n;
};

/// The loops for one dtype.
template <class T>
struct SummaryLoops {
  /// `from`: what elements are diminished by before they are summed.
  void (*statistics)(const T* p, std::int64_t n, double from, Statistics* out);
  /// The sum of (v - mean)^2.
  double (*squares)(const T* p, std::int64_t n, double mean);
  /// Writes the bin of each element; rule.n for elements that are not finite.
  void (*bins)(const T* p, std::int64_t n, const BinRule& rule, std::int32_t* bin);
};
/// The loops of one CPU level.
struct SummaryTable {
  SummaryLoops<float> f32;
  SummaryLoops<double> f64;
};
KASSETTE_LEVEL_TABLES(SummaryTable, summary_table)

}  // namespace kassette::inspect
