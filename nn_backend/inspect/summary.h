// nn_backend/inspect/summary.h - statistics of a tensor's elements.
#pragma once
#include <vector>

#include "core/whole.h"

namespace kassette::inspect {

/// Counts of kinds of elements, and statistics of the finite ones.
struct Summary {
  std::int64_t finite = 0, nan = 0, inf = 0, zeros = 0;
  double min = 0, max = 0;            // of the finite elements, as are the following
  long double mean = 0, squares = 0;  // squares: the sum of the squared distances from the mean
  Whole int_min = 0, int_max = 0;
};
Summary summarize(const TensorSpec& spec, const std::byte* data);

/// The position of v between low and high, from 0 to 1. It computes with halves, as high - low may overflow.
inline double fraction(double v, double low, double high) {
  double range = high / 2 - low / 2;
  return range > 0 ? (v / 2 - low / 2) / range : 0.5;
}
/// The histogram: how many finite elements lie in each of n equal bins of [low, high].
std::vector<std::int64_t> count_bins(const TensorSpec& spec, const std::byte* data, double low, double high, int n);

}  // namespace kassette::inspect
