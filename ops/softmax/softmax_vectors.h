// ops/softmax/softmax_vectors.h - extremes and sums of rows and of columns in vectors, for the loops of softmax and its
// losses. Only *_simd.cpp files include it.
#pragma once
#include <limits>

#include "ops/elementwise/simd.h"
#include "ops/softmax/softmax_loops.h"

namespace kassette::ops {

template <class T>
constexpr T kInf = std::numeric_limits<T>::infinity();

template <class T>
struct Lanes {
  alignas(64) T at[Vec<T>::kWidth];
};

/// v with `fill` in the lanes from n on.
template <class T>
KASSETTE_FN xsimd::batch<T> only_first(const xsimd::batch<T>& v, std::int64_t n, T fill) {
  using V = xsimd::batch<T>;
  alignas(64) static constexpr T kLane[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return xsimd::select(V::load_aligned(kLane) < V(static_cast<T>(n)), v, V(fill));
}

/// -v. xsimd 8.1 computes it as 0 - v on AVX-512, which is 0 where it should be -0.
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> negative(const xsimd::batch<T, A>& v) {
  return xsimd::batch<T, A>(T(-0.0)) - v;
}

/// The maximum. With a NaN the result may be either operand, since the sum of exponentials will be NaN anyway.
template <class V>
KASSETTE_FN V larger(const V& a, const V& b) {
  return xsimd::max(a, b);
}
template <class T>
KASSETTE_FN T across_max(const xsimd::batch<T>& v) {
  Lanes<T> l;
  v.store_aligned(l.at);
  for (int half = static_cast<int>(Vec<T>::kWidth) / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) l.at[i] = l.at[i] > l.at[i + half] ? l.at[i] : l.at[i + half];
  return l.at[0];
}
template <class T>
KASSETTE_FN T across_sum(const xsimd::batch<T>& v) {
  Lanes<T> l;
  v.store_aligned(l.at);
  for (int half = static_cast<int>(Vec<T>::kWidth) / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) l.at[i] += l.at[i + half];
  return l.at[0];
}

// Long sums are sums of the sums of blocks, so that rounding errors do not grow with the length.
constexpr std::int64_t kRowBlock = 8192;    // elements
constexpr std::int64_t kColumnBlock = 512;  // rows

/// The sum of the elements of f(i, m) over the vectors of n elements: m from i on. Lanes from m on are ignored.
template <class T, class F>
KASSETTE_FN T sum_over(std::int64_t n, F f) {
  constexpr std::int64_t w = Vec<T>::kWidth;
  xsimd::batch<T> a(T(0)), b(T(0)), blocks(T(0));
  std::int64_t i = 0;
  for (std::int64_t pairs = n / (2 * w) * (2 * w); i < pairs;) {
    const std::int64_t end = pairs - i < kRowBlock ? pairs : i + kRowBlock;
    for (; i < end; i += 2 * w) {
      a = a + f(i, w);
      b = b + f(i + w, w);
    }
    if (i == pairs) break;
    blocks = blocks + (a + b);
    a = b = xsimd::batch<T>(T(0));
  }
  if (i + w <= n) {
    a = a + f(i, w);
    i += w;
  }
  if (i < n) b = b + only_first(f(i, n - i), n - i, T(0));
  return across_sum<T>(blocks + (a + b));
}
/// Calls f(i, m) for the vectors of n elements; each has m elements from i on.
template <class T, class F>
KASSETTE_FN void each(std::int64_t n, F f) {
  constexpr std::int64_t w = Vec<T>::kWidth;
  std::int64_t i = 0;
  for (; i + w <= n; i += w) f(i, w);
  if (i < n) f(i, n - i);
}

template <class T>
KASSETTE_FN T max_of(const T* x, std::int64_t n) {
  using X = Vec<T>;
  constexpr std::int64_t w = X::kWidth;
  xsimd::batch<T> a(-kInf<T>), b(-kInf<T>);
  std::int64_t i = 0;
  for (; i + 2 * w <= n; i += 2 * w) {
    a = larger(a, X::load(x + i));
    b = larger(b, X::load(x + i + w));
  }
  a = larger(a, b);
  for (; i + w <= n; i += w) a = larger(a, X::load(x + i));
  if (i < n) a = larger(a, only_first(X::load_part(x + i, n - i), n - i, -kInf<T>));
  return across_max<T>(a);
}

/// The shift of a logsumexp: the maximum, or 0 if that is not finite.
template <class T>
KASSETTE_FN T shift_of(T max) {
  return max - max == T(0) ? max : T(0);
}
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> shift_of(const xsimd::batch<T, A>& max) {
  return xsimd::select(max - max == xsimd::batch<T, A>(T(0)), max, xsimd::batch<T, A>(T(0)));
}

// --- zeros -----------------------------------------------------------------------------------------------------------
// Note [Zero cotangents]: a row whose cotangents are 0 has gradients of 0 whatever its values are.
/// v, but 0 where the cotangent g is 0.
template <class V>
KASSETTE_FN V no_nan(const V& g, const V& v) {
  return xsimd::select(g == V(0), V(0), v);
}
template <class T>
KASSETTE_FN bool all_zero(const T* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    if (x[i] != 0) return false;
  return true;
}
template <class T>
KASSETTE_FN void set_zero(T* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = 0;
}

/// In each lane the maximum of a column: n elements `stride` apart.
template <class T>
KASSETTE_FN xsimd::batch<T> column_max(const T* x, std::int64_t n, std::int64_t stride, Part<T> part) {
  auto a = part.load(x);
  for (std::int64_t r = 1; r < n; ++r) a = larger(a, part.load(x + r * stride));
  return a;
}
template <class T, class F>
KASSETTE_FN xsimd::batch<T> column_sum(std::int64_t n, F f) {
  xsimd::batch<T> a(T(0)), b(T(0)), blocks(T(0));
  std::int64_t r = 0;
  for (std::int64_t pairs = n / 2 * 2; r < pairs;) {
    const std::int64_t end = pairs - r < kColumnBlock ? pairs : r + kColumnBlock;
    for (; r < end; r += 2) {
      a = a + f(r);
      b = b + f(r + 1);
    }
    if (r == pairs) break;
    blocks = blocks + (a + b);
    a = b = xsimd::batch<T>(T(0));
  }
  if (r < n) a = a + f(r);
  return blocks + (a + b);
}

}  // namespace kassette::ops
