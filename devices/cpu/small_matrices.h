// devices/cpu/small_matrices.h - factorisations of matrices of a few rows, in plain loops: calling LAPACK takes longer
// than the work. Each does what the function of its name in lapack.h does.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace kassette::devices::small {

/// The most rows. Above, LAPACK is faster.
inline constexpr std::int64_t kFewRows = 16;

template <class T>
T dot(const T* x, const T* y, std::int64_t n) {
  T sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

template <class T>
int cholesky(std::int64_t n, T* a) {
  for (std::int64_t j = 0; j < n; ++j) {
    T* const row = a + j * n;
    const T square = row[j] - dot(row, row, j);
    if (!(square > 0)) return static_cast<int>(j + 1);
    row[j] = std::sqrt(square);
    for (std::int64_t i = j + 1; i < n; ++i) a[i * n + j] = (a[i * n + j] - dot(a + i * n, row, j)) / row[j];
    std::fill(row + j + 1, row + n, T(0));
  }
  return 0;
}

template <class T>
int lu(std::int64_t n, T* a, int* pivots) {  // by columns
  int info = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    T* const column = a + k * n;
    std::int64_t largest = k;
    for (std::int64_t i = k + 1; i < n; ++i)
      if (std::fabs(column[i]) > std::fabs(column[largest])) largest = i;
    pivots[k] = static_cast<int>(largest + 1);
    if (column[largest] == 0) {
      if (info == 0) info = static_cast<int>(k + 1);
      continue;
    }
    if (largest != k)
      for (std::int64_t j = 0; j < n; ++j) std::swap(a[j * n + k], a[j * n + largest]);
    for (std::int64_t i = k + 1; i < n; ++i) column[i] /= column[k];
    for (std::int64_t j = k + 1; j < n; ++j) {
      T* const other = a + j * n;
      for (std::int64_t i = k + 1; i < n; ++i) other[i] -= other[k] * column[i];
    }
  }
  return info;
}

template <class T>
void triangular_solve(std::int64_t n, std::int64_t k, const T* a, bool lower, bool transposed, bool unit, T* x) {
  const std::int64_t down = transposed ? 1 : n, right = transposed ? n : 1;  // from an element of op(a) to the next
  const bool forward = lower != transposed;
  for (std::int64_t step = 0; step < n; ++step) {
    const std::int64_t i = forward ? step : n - 1 - step;
    T* const row = x + i * k;
    for (std::int64_t before = 0; before < step; ++before) {
      const std::int64_t j = forward ? before : n - 1 - before;
      const T factor = a[i * down + j * right];
      for (std::int64_t c = 0; c < k; ++c) row[c] -= factor * x[j * k + c];
    }
    if (unit) continue;
    const T diagonal = a[i * down + i * right];
    for (std::int64_t c = 0; c < k; ++c) row[c] /= diagonal;
  }
}

}  // namespace kassette::devices::small
