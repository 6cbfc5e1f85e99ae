// devices/cpu/gemv.h - the product of a large matrix and a vector, row by row.
#pragma once
#include <cstdint>

#include "devices/cpu/level.h"

namespace kassette::devices {

/// y[i * incy] = sum over j of a[i * lda + j] * x[j], for `rows` rows of `cols` elements.
template <class T>
using RowsByVector = void (*)(std::int64_t rows, std::int64_t cols, const T* a, std::int64_t lda, const T* x, T* y,
                              std::int64_t incy);

/// The loops of one CPU level.
struct GemvTable {
  RowsByVector<float> f32;
  RowsByVector<double> f64;
};
KASSETTE_LEVEL_TABLES(GemvTable, gemv_table)

}  // namespace kassette::devices
