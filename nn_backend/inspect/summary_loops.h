// nn_backend/inspect/summary_loops.h - the loops of summaries and histograms, as each CPU level has them; the same bits on every level.
#pragma once
#include <cstdint>

#include "devices/cpu/level.h"

namespace kassette {

/// Of the finite elements, and how many others there are.
struct Looked {
  std::int64_t finite, nan, zeros;
  double min, max, sum;  // infinite and -infinite where none is finite
};
/// A number's part is (v * unit - start) * scale + bias, rounded down, from 0 to n - 1.
struct PartRule {
  double unit, start, scale, bias;
  int n;
};

template <class T>
struct SummaryLoops {
  void (*look)(const T* p, std::int64_t n, Looked* out);
  /// The sum of (v - mean)^2.
  double (*squares)(const T* p, std::int64_t n, double mean);
  /// The part of each element; rule.n where it is not finite.
  void (*parts)(const T* p, std::int64_t n, const PartRule& rule, std::int32_t* part);
};
struct SummaryTable {
  SummaryLoops<float> f32;
  SummaryLoops<double> f64;
};
KASSETTE_LEVEL_TABLES(SummaryTable, summary_table)

}  // namespace kassette
