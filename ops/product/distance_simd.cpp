// ops/product/distance_simd.cpp - distances of a row to many; compiled once per CPU level. The columns are the lanes of
// a vector and each sum goes through the width in order: the same bits at every level.
#include <algorithm>
#include <cmath>

#include "ops/product/distance.h"

namespace kassette::ops {
namespace {

template <class T>
void distances_of_row(const T* x, const T* y, std::int64_t width, std::int64_t n, T* out) {
  constexpr std::int64_t kBlock = 512;  // sums that stay in the first cache
  for (std::int64_t first = 0; first < n; first += kBlock) {
    const std::int64_t count = std::min(kBlock, n - first);
    T sums[kBlock] = {};
    for (std::int64_t k = 0; k < width; ++k) {
      const T value = x[k];
      const T* const row = y + k * n + first;
      for (std::int64_t j = 0; j < count; ++j) sums[j] += (value - row[j]) * (value - row[j]);
    }
    for (std::int64_t j = 0; j < count; ++j) out[first + j] = std::sqrt(sums[j]);
  }
}

}  // namespace

constinit const DistanceTable KASSETTE_LEVEL_NAME(distance_table) = {distances_of_row<float>, distances_of_row<double>};

}  // namespace kassette::ops
