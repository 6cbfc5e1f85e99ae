// ops/product/distance_simd.cpp - distances of rows to many; compiled once per CPU level. The columns are the lanes of
// a vector and each sum goes through the width in order, without fused operations: the same bits at every level.
#include <algorithm>
#include <cmath>

#include "ops/elementwise/simd.h"
#include "ops/product/distance.h"

namespace kassette::ops {
namespace {

constexpr int kRows = 4, kVectors = 2;

/// R rows to kVectors vectors of columns, summed in registers.
template <class T, int R>
void block(const T* x, const T* y, std::int64_t width, std::int64_t n, T* out) {
  using Batch = xsimd::batch<T>;
  constexpr auto kWidth = static_cast<std::int64_t>(Batch::size);
  Batch sum[R][kVectors];
#pragma GCC unroll 4
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[i][v] = Batch(T(0));
  for (std::int64_t k = 0; k < width; ++k) {
    Batch row[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) row[v] = Batch::load_unaligned(y + k * n + v * kWidth);
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i) {
      const Batch value(x[i * width + k]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const Batch d = value - row[v];
        sum[i][v] = sum[i][v] + d * d;
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) m::sqrt(sum[i][v]).store_unaligned(out + i * n + v * kWidth);
}

/// One row to fewer columns than a block has.
template <class T>
void rest(const T* x, const T* y, std::int64_t width, std::int64_t n, std::int64_t count, T* out) {
  T sums[kVectors * xsimd::batch<T>::size] = {};
  for (std::int64_t k = 0; k < width; ++k)
    for (std::int64_t j = 0; j < count; ++j) sums[j] += (x[k] - y[k * n + j]) * (x[k] - y[k * n + j]);
  for (std::int64_t j = 0; j < count; ++j) out[j] = std::sqrt(sums[j]);
}

template <class T>
void distances_of_rows(const T* x, std::int64_t rows, const T* y, std::int64_t width, std::int64_t n, T* out) {
  constexpr auto kColumns = static_cast<std::int64_t>(kVectors * xsimd::batch<T>::size);
  std::int64_t j = 0;
  for (; j + kColumns <= n; j += kColumns) {
    std::int64_t i = 0;
    for (; i + kRows <= rows; i += kRows) block<T, kRows>(x + i * width, y + j, width, n, out + i * n + j);
    for (; i < rows; ++i) block<T, 1>(x + i * width, y + j, width, n, out + i * n + j);
  }
  if (j < n)
    for (std::int64_t i = 0; i < rows; ++i) rest(x + i * width, y + j, width, n, n - j, out + i * n + j);
}

}  // namespace

constinit const DistanceTable KASSETTE_LEVEL_NAME(distance_table) = {distances_of_rows<float>,
                                                                     distances_of_rows<double>};

}  // namespace kassette::ops
