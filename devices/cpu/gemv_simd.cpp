// devices/cpu/gemv_simd.cpp - the product of a large matrix and a vector, row by row; compiled once per CPU level.
#include "devices/cpu/gemv.h"

#include <xsimd/xsimd.hpp>

namespace kassette::devices {
namespace {

/// kRows rows at once, for as many independent sums and memory streams, and x is read once for all of them. A row's sum
/// does not depend on the number of rows computed with it.
template <int kRows, class T>
inline __attribute__((always_inline)) void rows_at_once(std::int64_t cols, const T* a, std::int64_t lda, const T* x,
                                                        T* y, std::int64_t incy) {
  using Batch = xsimd::batch<T>;
  constexpr auto kWidth = static_cast<std::int64_t>(Batch::size);
  // Sums of blocks are added up, so that rounding errors do not grow with the length of the row.
  constexpr std::int64_t kBlock = 4096;
  Batch totals[kRows];
  for (Batch& total : totals) total = Batch(T(0));
  std::int64_t j = 0;
  for (const std::int64_t body = cols / kWidth * kWidth; j < body;) {
    const std::int64_t end = body - j < kBlock ? body : j + kBlock;
    Batch sums[kRows];
    for (Batch& sum : sums) sum = Batch(T(0));
    for (; j < end; j += kWidth) {
      const Batch v = Batch::load_unaligned(x + j);
      for (int r = 0; r < kRows; ++r) sums[r] = sums[r] + Batch::load_unaligned(a + r * lda + j) * v;
    }
    for (int r = 0; r < kRows; ++r) totals[r] = totals[r] + sums[r];
  }
  for (int r = 0; r < kRows; ++r) {
    T lanes[Batch::size], sum = 0;
    totals[r].store_unaligned(lanes);
    for (T lane : lanes) sum += lane;
    for (std::int64_t i = j; i < cols; ++i) sum += a[r * lda + i] * x[i];
    y[r * incy] = sum;
  }
}

template <class T>
void by_vector(std::int64_t rows, std::int64_t cols, const T* a, std::int64_t lda, const T* x, T* y,
               std::int64_t incy) {
  std::int64_t i = 0;
  for (; i + 4 <= rows; i += 4) rows_at_once<4>(cols, a + i * lda, lda, x, y + i * incy, incy);
  for (; i < rows; ++i) rows_at_once<1>(cols, a + i * lda, lda, x, y + i * incy, incy);
}

}  // namespace

constinit const GemvTable KASSETTE_LEVEL_NAME(gemv_table) = {by_vector<float>, by_vector<double>};

}  // namespace kassette::devices
