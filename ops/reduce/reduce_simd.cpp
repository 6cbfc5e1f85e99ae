// ops/reduce/reduce_simd.cpp - the float loops of reductions; compiled once per CPU level.
#include "ops/elementwise/simd.h"

#include "ops/reduce/reduce_loops.h"

namespace kassette::ops {
namespace {

struct Sum {
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return a + b;
  }
};
struct Prod {
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
    return a * b;
  }
};
// Not a != a: xsimd 8.1's is an ordered comparison on AVX-512, false on NaN.
template <class T>
KASSETTE_FN auto is_nan(const xsimd::batch<T>& a) {
  return xsimd::isnan(a);
}
KASSETTE_FN bool is_nan(float a) { return a != a; }
KASSETTE_FN bool is_nan(double a) { return a != a; }
// NaN wins. The maximum of x86 returns its second operand if either is NaN, so only a NaN in b needs a check.
struct Max {
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
#if defined(__x86_64__)
    if constexpr (!std::is_arithmetic_v<V>) return m::select(is_nan(b), b, xsimd::max(b, a));
#endif
    return m::select((a > b) | is_nan(a), a, b);
  }
};
struct Min {
  template <class V>
  KASSETTE_FN static V value(const V& a, const V& b) {
#if defined(__x86_64__)
    if constexpr (!std::is_arithmetic_v<V>) return m::select(is_nan(b), b, xsimd::min(b, a));
#endif
    return m::select((a < b) | is_nan(a), a, b);
  }
};

/// Reduces the lanes of a vector by halves.
template <class Op, class T>
KASSETTE_FN T across(const xsimd::batch<T>& v) {
  constexpr int w = static_cast<int>(Vec<T>::kWidth);
  alignas(64) T lane[w];
  v.store_aligned(lane);
  for (int half = w / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lane[i] = Op::value(lane[i], lane[i + half]);
  return lane[0];
}

template <class Op, class T>
KASSETTE_FN T short_row(const T* x, std::int64_t n) {
  T a = x[0];
  for (std::int64_t i = 1; i < n; ++i) a = Op::value(a, x[i]);
  return a;
}

template <class Op, class T>
KASSETTE_FN T row(const T* x, std::int64_t n) {
  using X = Vec<T>;
  using V = typename X::V;
  constexpr std::int64_t w = X::kWidth;
  if (n < w) return short_row<Op>(x, n);
  V a = X::load(x);
  std::int64_t i = w;
  if (n >= 8 * w) {
    V b = X::load(x + w), c = X::load(x + 2 * w), d = X::load(x + 3 * w), e = X::load(x + 4 * w),
      f = X::load(x + 5 * w), g = X::load(x + 6 * w), h = X::load(x + 7 * w);
    for (i = 8 * w; i + 8 * w <= n; i += 8 * w) {
      a = Op::value(a, X::load(x + i));
      b = Op::value(b, X::load(x + i + w));
      c = Op::value(c, X::load(x + i + 2 * w));
      d = Op::value(d, X::load(x + i + 3 * w));
      e = Op::value(e, X::load(x + i + 4 * w));
      f = Op::value(f, X::load(x + i + 5 * w));
      g = Op::value(g, X::load(x + i + 6 * w));
      h = Op::value(h, X::load(x + i + 7 * w));
    }
    a = Op::value(Op::value(Op::value(a, b), Op::value(c, d)), Op::value(Op::value(e, f), Op::value(g, h)));
  }
  for (; i + w <= n; i += w) a = Op::value(a, X::load(x + i));
  T result = across<Op, T>(a);
  if (i < n) result = Op::value(result, short_row<Op>(x + i, n - i));
  return result;
}

template <class Op, class T>
void rows(const T* x, T* out, std::int64_t count, std::int64_t n) {
  if (n < Vec<T>::kWidth)
    for (std::int64_t i = 0; i < count; ++i) out[i] = short_row<Op>(x + i * n, n);
  else
    for (std::int64_t i = 0; i < count; ++i) out[i] = row<Op>(x + i * n, n);
}

/// Reduces kRows neighbouring rows pairwise and, unless they are the first, with `out`. Columns after the last vector
/// are reduced one by one, in the same order and so with the same bits.
template <class Op, class T, int kRows>
KASSETTE_FN void some_rows(const T* x, T* out, std::int64_t stride, std::int64_t width, bool first) {
  using X = Vec<T>;
  auto reduce = [&](auto load, std::int64_t c) {
    auto a = load(x + c);
    if constexpr (kRows >= 2) a = Op::value(a, load(x + stride + c));
    if constexpr (kRows >= 4) a = Op::value(a, Op::value(load(x + 2 * stride + c), load(x + 3 * stride + c)));
    if constexpr (kRows >= 8)
      a = Op::value(a, Op::value(Op::value(load(x + 4 * stride + c), load(x + 5 * stride + c)),
                                 Op::value(load(x + 6 * stride + c), load(x + 7 * stride + c))));
    return a;
  };
  std::int64_t c = 0;
  for (; c + X::kWidth <= width; c += X::kWidth) {
    auto a = reduce([](const T* p) { return X::load(p); }, c);
    X::store(out + c, first ? a : Op::value(X::load(out + c), a));
  }
  for (; c < width; ++c) {
    T a = reduce([](const T* p) { return *p; }, c);
    out[c] = first ? a : Op::value(out[c], a);
  }
}

template <class Op, class T>
void columns(const T* x, T* out, std::int64_t n, std::int64_t stride, std::int64_t width) {
  std::int64_t r = 0;
  for (; r + 8 <= n; r += 8) some_rows<Op, T, 8>(x + r * stride, out, stride, width, r == 0);
  if (r + 4 <= n) {
    some_rows<Op, T, 4>(x + r * stride, out, stride, width, r == 0);
    r += 4;
  }
  if (r + 2 <= n) {
    some_rows<Op, T, 2>(x + r * stride, out, stride, width, r == 0);
    r += 2;
  }
  if (r < n) some_rows<Op, T, 1>(x + r * stride, out, stride, width, r == 0);
}

struct Itself {
  template <class V>
  KASSETTE_FN static V of(const V& d) {
    return d;
  }
};
struct Square {
  template <class V>
  KASSETTE_FN static V of(const V& d) {
    return d * d;
  }
};
/// The sum of Power::of(x - center) over n elements.
template <class Power, class T>
KASSETTE_FN T deviation_row(const T* x, T center, std::int64_t n) {
  using X = Vec<T>;
  using V = typename X::V;
  constexpr std::int64_t w = X::kWidth;
  const V m(center);
  V a(T(0)), b(T(0)), c(T(0)), d(T(0));
  auto power = [&](std::int64_t at) { return Power::of(X::load(x + at) - m); };
  std::int64_t i = 0;
  for (; i + 4 * w <= n; i += 4 * w) {
    a = a + power(i);
    b = b + power(i + w);
    c = c + power(i + 2 * w);
    d = d + power(i + 3 * w);
  }
  for (; i + w <= n; i += w) a = a + power(i);
  T sum = across<Sum, T>((a + b) + (c + d));
  for (; i < n; ++i) sum += Power::of(x[i] - center);
  return sum;
}
template <class Power, class T>
void deviation_rows(const T* x, const T* center, T* out, std::int64_t count, std::int64_t n) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = deviation_row<Power>(x + i * n, center[i], n);
}
template <class Power, class T>
void deviation_columns(const T* x, const T* center, T* out, std::int64_t n, std::int64_t stride, std::int64_t width) {
  for (std::int64_t c = 0; c < width; ++c) out[c] = T(0);
  std::int64_t r = 0;
  for (; r + 4 <= n; r += 4, x += 4 * stride)
    for (std::int64_t c = 0; c < width; ++c) {
      T m = center[c], g = Power::of(x[c] - m), h = Power::of(x[c + stride] - m), k = Power::of(x[c + 2 * stride] - m),
        l = Power::of(x[c + 3 * stride] - m);
      out[c] += (g + h) + (k + l);
    }
  for (; r < n; ++r, x += stride)
    for (std::int64_t c = 0; c < width; ++c) out[c] += Power::of(x[c] - center[c]);
}
template <class Power, class T>
constexpr DeviationLoops<T> deviations{deviation_rows<Power, T>, deviation_columns<Power, T>};

template <class Op, class T>
constexpr ReduceLoops<T> loops{rows<Op, T>, columns<Op, T>};

}  // namespace

constinit const ReduceTable KASSETTE_LEVEL_NAME(reduce_table) = {
    {loops<Sum, float>, loops<Sum, float>, loops<Max, float>, loops<Min, float>, loops<Prod, float>},
    {loops<Sum, double>, loops<Sum, double>, loops<Max, double>, loops<Min, double>, loops<Prod, double>},
    deviations<Itself, float>,
    deviations<Square, float>,
    deviations<Itself, double>,
    deviations<Square, double>};

}  // namespace kassette::ops
