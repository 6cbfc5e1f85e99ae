// devices/cpu/gemv.h - the product of a matrix and a vector on one thread.
#pragma once
#include <cstdint>

#include "devices/cpu/level.h"

namespace kassette::devices {

/// The bits of an element depend on the length of its sum and on the level alone.
template <class T>
struct GemvLoops {
  /// y[i * incy] = sum over j of a[i * lda + j] * x[j], for `rows` rows of `cols` elements.
  void (*sum_rows)(std::int64_t rows, std::int64_t cols, const T* a, std::int64_t lda, const T* x, T* y,
                   std::int64_t incy);
  /// y[j] = sum over i of x[i * incx] * a[i * lda + j], for the same.
  void (*add_rows)(std::int64_t rows, std::int64_t cols, const T* a, std::int64_t lda, const T* x, std::int64_t incx,
                   T* y);
};

/// The loops of one CPU level.
struct GemvTable {
  GemvLoops<float> f32;
  GemvLoops<double> f64;
};
KASSETTE_LEVEL_TABLES(GemvTable, gemv_table)

}  // namespace kassette::devices
