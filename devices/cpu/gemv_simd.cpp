// devices/cpu/gemv_simd.cpp - the product of a matrix and a vector on one thread; compiled once per CPU level.
#include "devices/cpu/gemv.h"

#include <algorithm>

#include "devices/cpu/simd_fma.h"
#include "devices/cpu/xsimd.h"

namespace kassette::devices {
namespace {

/// kRows rows at once, for as many independent sums and memory streams, and x is read once for all of them. A row's sum
/// does not depend on the number of rows computed with it.
template <int kRows, class T>
inline __attribute__((always_inline)) void sum_at_once(std::int64_t cols, const T* a, std::int64_t lda, const T* x,
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
      for (int r = 0; r < kRows; ++r) sums[r] = multiply_add(Batch::load_unaligned(a + r * lda + j), v, sums[r]);
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
void sum_rows(std::int64_t rows, std::int64_t cols, const T* a, std::int64_t lda, const T* x, T* y, std::int64_t incy) {
  std::int64_t i = 0;
  for (; i + 4 <= rows; i += 4) sum_at_once<4>(cols, a + i * lda, lda, x, y + i * incy, incy);
  for (; i < rows; ++i) sum_at_once<1>(cols, a + i * lda, lda, x, y + i * incy, incy);
}

/// kRows rows at once, so that y is read and written once for all of them. Each element is a chain of multiply-adds.
template <int kRows, class T>
inline __attribute__((always_inline)) void add_at_once(std::int64_t cols, const T* a, std::int64_t lda, const T* x,
                                                       std::int64_t incx, bool first, T* y) {
  using Batch = xsimd::batch<T>;
  constexpr auto kWidth = static_cast<std::int64_t>(Batch::size);
  T factor[kRows];
  for (int r = 0; r < kRows; ++r) factor[r] = x[r * incx];
  std::int64_t j = 0;
  for (; j + kWidth <= cols; j += kWidth) {
    Batch sum = first ? Batch(T(0)) : Batch::load_unaligned(y + j);
    for (int r = 0; r < kRows; ++r) sum = multiply_add(Batch(factor[r]), Batch::load_unaligned(a + r * lda + j), sum);
    sum.store_unaligned(y + j);
  }
  for (; j < cols; ++j) {
    T sum = first ? T(0) : y[j];
    for (int r = 0; r < kRows; ++r) sum = multiply_add_one(factor[r], a[r * lda + j], sum);
    y[j] = sum;
  }
}

template <class T>
void add_rows(std::int64_t rows, std::int64_t cols, const T* a, std::int64_t lda, const T* x, std::int64_t incx, T* y) {
  constexpr std::int64_t kBlock = 4096;  // columns at a time, whose sums stay in the first cache
  for (std::int64_t j = 0; j < cols; j += kBlock) {
    const std::int64_t n = std::min(kBlock, cols - j);
    std::int64_t i = 0;
    for (; i + 8 <= rows; i += 8) add_at_once<8>(n, a + i * lda + j, lda, x + i * incx, incx, i == 0, y + j);
    for (; i < rows; ++i) add_at_once<1>(n, a + i * lda + j, lda, x + i * incx, incx, i == 0, y + j);
  }
}

}  // namespace

constinit const GemvTable KASSETTE_LEVEL_NAME(gemv_table) = {{sum_rows<float>, add_rows<float>},
                                                             {sum_rows<double>, add_rows<double>}};

}  // namespace kassette::devices
