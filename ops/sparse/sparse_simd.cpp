// ops/sparse/sparse_simd.cpp - the loops of sparse products; compiled once per CPU level.
#include "ops/sparse/sparse_loops.h"

#include "devices/cpu/simd_fma.h"
#include "ops/elementwise/simd.h"

namespace kassette::ops {
namespace {

/// The entries of one line of a matrix.
template <class T>
struct Line {
  const SparseEntries& m;
  const T* values;
  std::int64_t begin, end;
  T value(std::int64_t k) const { return values[m.order ? m.order[k] : k]; }
};

/// N vectors of columns of a product, whose sums stay in registers, and are then stored or added to `out`.
template <int N, class T>
KASSETTE_FN void dot_columns(const Line<T>& line, const T* x, T* out, std::int64_t width, bool add) {
  using X = Vec<T>;
  using V = typename X::V;
  V sum[N];
  for (int i = 0; i < N; ++i) sum[i] = V(T(0));
  for (std::int64_t k = line.begin; k < line.end; ++k) {
    const V v(line.value(k));
    const T* row = x + line.m.others[k] * width;
    for (int i = 0; i < N; ++i) sum[i] = devices::multiply_add(v, X::load(row + i * X::kWidth), sum[i]);
  }
  for (int i = 0; i < N; ++i) X::store(out + i * X::kWidth, add ? X::load(out + i * X::kWidth) + sum[i] : sum[i]);
}

/// `to` = or += the product of a line and a matrix of `width` columns.
template <class T>
KASSETTE_FN void dot_line(const Line<T>& line, const T* x, T* to, std::int64_t width, bool add) {
  constexpr std::int64_t kWidth = Vec<T>::kWidth;
  std::int64_t j = 0;
  for (; j + 8 * kWidth <= width; j += 8 * kWidth) dot_columns<8>(line, x + j, to + j, width, add);
  if (j + 4 * kWidth <= width) dot_columns<4>(line, x + j, to + j, width, add), j += 4 * kWidth;
  if (j + 2 * kWidth <= width) dot_columns<2>(line, x + j, to + j, width, add), j += 2 * kWidth;
  if (j + kWidth <= width) dot_columns<1>(line, x + j, to + j, width, add), j += kWidth;
  for (; j < width; ++j) {
    T sum = 0;
    for (std::int64_t k = line.begin; k < line.end; ++k)
      sum = devices::multiply_add_one(line.value(k), x[line.m.others[k] * width + j], sum);
    to[j] = add ? to[j] + sum : sum;
  }
}

template <class T>
void dot(const SparseEntries& m, const T* values, const T* x, T* out, std::int64_t width, std::int64_t begin,
         std::int64_t end) {
  // Blocks of a long line are added up, so that rounding errors do not grow with its length.
  constexpr std::int64_t kBlock = 4096;
  for (std::int64_t r = begin; r < end; ++r)
    for (std::int64_t first = m.starts[r], at = first;; at += kBlock) {
      const std::int64_t last = m.starts[r + 1], next = last - at < kBlock ? last : at + kBlock;
      dot_line(Line<T>{m, values, at, next}, x, out + r * width, width, /*add=*/at > first);
      if (next == last) break;
    }
}

template <class T>
void products(const std::int64_t* at, const T* a, const T* b, T* out, std::int64_t width, std::int64_t begin,
              std::int64_t end) {
  using X = Vec<T>;
  using V = typename X::V;
  constexpr int kSums = 4;
  constexpr std::int64_t kStep = kSums * X::kWidth;
  for (std::int64_t k = begin; k < end; ++k) {
    const T *x = a + at[2 * k] * width, *y = b + at[2 * k + 1] * width;
    V sum[kSums];
    for (int i = 0; i < kSums; ++i) sum[i] = V(T(0));
    std::int64_t j = 0;
    for (; j + kStep <= width; j += kStep)
      for (int i = 0; i < kSums; ++i)
        sum[i] = devices::multiply_add(X::load(x + j + i * X::kWidth), X::load(y + j + i * X::kWidth), sum[i]);
    for (; j + X::kWidth <= width; j += X::kWidth)
      sum[0] = devices::multiply_add(X::load(x + j), X::load(y + j), sum[0]);
    T total = 0;
    if (j > 0) {
      alignas(64) T lanes[X::kWidth];
      ((sum[0] + sum[1]) + (sum[2] + sum[3])).store_aligned(lanes);
      for (std::int64_t n = X::kWidth / 2; n > 0; n /= 2)
        for (std::int64_t i = 0; i < n; ++i) lanes[i] += lanes[i + n];
      total = lanes[0];
    }
    for (; j < width; ++j) total = devices::multiply_add_one(x[j], y[j], total);
    out[k] = total;
  }
}

}  // namespace

constinit const SparseTable KASSETTE_LEVEL_NAME(sparse_table){{dot<float>, products<float>},
                                                              {dot<double>, products<double>}};

}  // namespace kassette::ops
