// devices/cpu/gemv_simd.cpp - a large matrix by a vector, row by row; compiled once per CPU level.
#include "devices/cpu/gemv.h"

#include <cstring>

namespace kassette {
namespace {

#if defined(__AVX512F__)
constexpr std::int64_t kBytes = 64;
#elif defined(__AVX__)
constexpr std::int64_t kBytes = 32;
#else
constexpr std::int64_t kBytes = 16;
#endif

template <class T>
struct Vector;
template <>
struct Vector<float> {
  typedef float V __attribute__((vector_size(kBytes)));
};
template <>
struct Vector<double> {
  typedef double V __attribute__((vector_size(kBytes)));
};

template <class V, class T>
inline __attribute__((always_inline)) V load(const T* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

/// kRows rows at once: as many sums that do not wait for each other and streams from memory, and x is read once for all. A row's
/// sum does not depend on how many come with it.
template <int kRows, class T>
inline __attribute__((always_inline)) void rows_at_once(std::int64_t cols, const T* a, std::int64_t lda, const T* x, T* y,
                                                        std::int64_t incy) {
  using V = typename Vector<T>::V;
  constexpr std::int64_t kWidth = kBytes / static_cast<std::int64_t>(sizeof(T));
  V sums[kRows] = {};
  std::int64_t j = 0;
  for (; j + kWidth <= cols; j += kWidth) {
    const V v = load<V>(x + j);
    for (int r = 0; r < kRows; ++r) sums[r] += load<V>(a + r * lda + j) * v;
  }
  for (int r = 0; r < kRows; ++r) {
    T sum = 0;
    for (std::int64_t i = 0; i < kWidth; ++i) sum += sums[r][i];
    for (std::int64_t i = j; i < cols; ++i) sum += a[r * lda + i] * x[i];
    y[r * incy] = sum;
  }
}

template <class T>
void by_vector(std::int64_t rows, std::int64_t cols, const T* a, std::int64_t lda, const T* x, T* y, std::int64_t incy) {
  std::int64_t i = 0;
  for (; i + 4 <= rows; i += 4) rows_at_once<4>(cols, a + i * lda, lda, x, y + i * incy, incy);
  for (; i < rows; ++i) rows_at_once<1>(cols, a + i * lda, lda, x, y + i * incy, incy);
}

}  // namespace

constinit const GemvTable KASSETTE_LEVEL_NAME(gemv_table) = {by_vector<float>, by_vector<double>};

}  // namespace kassette
