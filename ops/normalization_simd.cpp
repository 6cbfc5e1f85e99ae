// ops/normalization_simd.cpp - the loops of batch normalisation; compiled once per CPU level.
#include "ops/simd.h"

#include "ops/normalization_loops.h"

namespace kassette {
namespace {

// Note [Moments in one pass]
// A block of up to kBlock rows is read from memory once: sums of d and d * d, d = x - shift, give mean and variance. The shift is the
// mean of the first eight rows of the block itself, so (mean - shift)^2 is at most kBlock / 8 times the variance of the block, and
// the difference of the two sums loses at most a factor of kBlock / 8 + 1 in precision, whatever x is. Blocks are joined as Chan,
// Golub and LeVeque (1979) do, which loses nothing.
constexpr std::int64_t kBlock = 128, kGroup = 8, kColumns = 256, kAhead = 2 * kGroup;

/// f(column, part) for the vectors of a row.
template <class T, class F>
KASSETTE_FN void each(std::int64_t width, F f) {
  constexpr std::int64_t w = Vec<T>::kWidth;
  std::int64_t c = 0;
  for (; c + w <= width; c += w) f(c, Part<T>{w});
  if (c < width) f(c, Part<T>{width - c});
}
/// Whether every whole vector of the matrix at y may be written past the caches.
template <class T>
KASSETTE_FN bool streams(const T* y, const Rows& r) {
  constexpr std::uintptr_t bytes = sizeof(typename Vec<T>::V);
  return r.stream && reinterpret_cast<std::uintptr_t>(y) % bytes == 0 && static_cast<std::uintptr_t>(r.stride) * sizeof(T) % bytes == 0;
}
KASSETTE_FN void end_stream(bool stream) {
#if defined(__SSE2__)
  if (stream) _mm_sfence();
#else
  static_cast<void>(stream);
#endif
}

/// Asks for the line of p[i + ahead]. Nothing is read there: it may be past the array. Groups of eight rows are read column by column,
/// which is no order that the CPU foresees.
template <class T>
KASSETTE_FN void prefetch(const T* p, std::int64_t i, std::int64_t ahead) {
  __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(p) + static_cast<std::uintptr_t>(i + ahead) * sizeof(T)));
}

template <class V>
KASSETTE_FN V sum8(const V* d) {
  return ((d[0] + d[1]) + (d[2] + d[3])) + ((d[4] + d[5]) + (d[6] + d[7]));
}

/// Sums over up to kBlock rows of value a and b of f(row, column, part, &a, &b): eight rows at a time, as pairs.
template <class T, class F>
KASSETTE_FN void block_sums(std::int64_t n, std::int64_t width, T* sum_a, T* sum_b, F f) {
  using V = xsimd::batch<T>;
  std::int64_t r = 0;
  for (; r + kGroup <= n; r += kGroup)
    each<T>(width, [&](std::int64_t c, Part<T> part) __attribute__((always_inline)) {
      V a[kGroup], b[kGroup];
      for (int k = 0; k < kGroup; ++k) f(r + k, c, part, a[k], b[k]);
      V sa = sum8(a), sb = sum8(b);
      part.store(sum_a + c, r ? part.load(sum_a + c) + sa : sa);
      part.store(sum_b + c, r ? part.load(sum_b + c) + sb : sb);
    });
  for (; r < n; ++r)
    each<T>(width, [&](std::int64_t c, Part<T> part) __attribute__((always_inline)) {
      V a, b;
      f(r, c, part, a, b);
      part.store(sum_a + c, r ? part.load(sum_a + c) + a : a);
      part.store(sum_b + c, r ? part.load(sum_b + c) + b : b);
    });
}

/// Moments of up to kBlock rows of up to kColumns columns.
template <class T>
KASSETTE_FN void block_moments(const T* x, std::int64_t n, std::int64_t stride, std::int64_t width, T* mean, T* squares) {
  using V = xsimd::batch<T>;
  alignas(64) T shift[kColumns], sum[kColumns];
  each<T>(width, [&](std::int64_t c, Part<T> part) __attribute__((always_inline)) {
    V first = part.load(x + c);
    if (n >= kGroup) {
      V d[kGroup];
      for (int k = 0; k < kGroup; ++k) d[k] = part.load(x + k * stride + c);
      first = sum8(d) * V(T(1) / T(kGroup));
    }
    part.store(shift + c, first);
  });
  block_sums<T>(n, width, sum, squares,
                [&](std::int64_t r, std::int64_t c, Part<T> part, V& a, V& b) __attribute__((always_inline)) {
                  prefetch(x, r * stride + c, kAhead * stride);
                  a = part.load(x + r * stride + c) - part.load(shift + c);
                  b = a * a;
                });
  const V share(T(1) / static_cast<T>(n));
  each<T>(width, [&](std::int64_t c, Part<T> part) __attribute__((always_inline)) {
    V s = part.load(sum + c), beside = s * share, rest = part.load(squares + c) - s * beside;
    part.store(mean + c, part.load(shift + c) + beside);
    part.store(squares + c, xsimd::select(rest < V(T(0)), V(T(0)), rest));
  });
}

template <class T>
void moments(const T* x, const Rows& m, T* mean, T* squares) {
  using V = xsimd::batch<T>;
  for (std::int64_t at = 0; at < m.width; at += kColumns) {
    std::int64_t width = m.width - at < kColumns ? m.width - at : kColumns;
    T *to_mean = mean + at, *to_squares = squares + at;
    for (std::int64_t r = 0; r < m.n; r += kBlock) {
      std::int64_t n = m.n - r < kBlock ? m.n - r : kBlock;
      const T* from = x + r * m.stride + at;
      if (r == 0) {
        block_moments(from, n, m.stride, width, to_mean, to_squares);
        continue;
      }
      alignas(64) T next[kColumns], more[kColumns];
      block_moments(from, n, m.stride, width, next, more);
      const V share(static_cast<T>(n) / static_cast<T>(r + n)), both(static_cast<T>(r) * (static_cast<T>(n) / static_cast<T>(r + n)));
      each<T>(width, [&](std::int64_t c, Part<T> part) __attribute__((always_inline)) {
        V old = part.load(to_mean + c), gap = part.load(next + c) - old;
        part.store(to_mean + c, old + gap * share);
        part.store(to_squares + c, (part.load(to_squares + c) + part.load(more + c)) + gap * gap * both);
      });
    }
  }
}

template <class T>
void sums(const T* dy, const T* x, const Rows& m, const T* mean, T* sum, T* product) {
  using V = xsimd::batch<T>;
  for (std::int64_t at = 0; at < m.width; at += kColumns) {
    std::int64_t width = m.width - at < kColumns ? m.width - at : kColumns;
    for (std::int64_t r = 0; r < m.n; r += kBlock) {
      std::int64_t n = m.n - r < kBlock ? m.n - r : kBlock, first = r * m.stride + at;
      alignas(64) T s[kColumns], p[kColumns];
      block_sums<T>(n, width, s, p, [&](std::int64_t k, std::int64_t c, Part<T> part, V& a, V& b) __attribute__((always_inline)) {
        std::int64_t i = first + k * m.stride + c;
        prefetch(dy, i, kAhead * m.stride);
        prefetch(x, i, kAhead * m.stride);
        a = part.load(dy + i);
        b = a * (part.load(x + i) - part.load(mean + at + c));
      });
      each<T>(width, [&](std::int64_t c, Part<T> part) __attribute__((always_inline)) {
        T *to = sum + at + c, *also = product + at + c;
        part.store(to, r ? part.load(to) + part.load(s + c) : part.load(s + c));
        part.store(also, r ? part.load(also) + part.load(p + c) : part.load(p + c));
      });
    }
  }
}

/// y = value(element, loaded parameters...) by columns: the parameters of a vector of columns serve eight rows.
template <class T, class Parameters, class Value, class Ask>
KASSETTE_FN void by_columns(const Rows& m, T* y, Parameters parameters, Value value, Ask ask) {
  bool stream = streams(y, m);
  for (std::int64_t r = 0; r < m.n; r += kGroup) {
    std::int64_t n = m.n - r < kGroup ? m.n - r : kGroup;
    each<T>(m.width, [&](std::int64_t c, Part<T> part) __attribute__((always_inline)) {
      auto p = parameters(c, part);
      for (std::int64_t k = 0; k < n; ++k) {
        std::int64_t i = (r + k) * m.stride + c;
        ask(i, kAhead * m.stride);
        part.store(y + i, value(i, part, p), stream);
      }
    });
  }
  end_stream(stream);
}
template <class T, class Parameters, class Value>
KASSETTE_FN void by_rows(const Rows& m, T* y, Parameters parameters, Value value) {
  bool stream = streams(y, m);
  for (std::int64_t r = 0; r < m.n; ++r) {
    auto p = parameters(m.alike ? 0 : r);
    each<T>(m.width, [&](std::int64_t c, Part<T> part) __attribute__((always_inline)) {
      std::int64_t i = r * m.stride + c;
      part.store(y + i, value(i, part, p), stream);
    });
  }
  end_stream(stream);
}

template <class T>
struct Affine {
  xsimd::batch<T> mean, scale, shift;
};
template <class T>
struct Slope {
  xsimd::batch<T> mean, a, b, c;
};

template <class T, bool kRows>
void scale(const T* x, const Rows& m, const T* mean, const T* factor, const T* shift, T* y) {
  using V = xsimd::batch<T>;
  auto value = [&](std::int64_t i, Part<T> part, const Affine<T>& p) __attribute__((always_inline)) {
    return (part.load(x + i) - p.mean) * p.scale + p.shift;
  };
  if constexpr (kRows) {
    by_rows<T>(m, y, [&](std::int64_t r) { return Affine<T>{V(mean[r]), V(factor[r]), V(shift ? shift[r] : T(0))}; }, value);
  } else {
    by_columns<T>(
        m, y,
        [&](std::int64_t c, Part<T> part) __attribute__((always_inline)) {
          return Affine<T>{part.load(mean + c), part.load(factor + c), shift ? part.load(shift + c) : V(T(0))};
        },
        value, [&](std::int64_t i, std::int64_t ahead) __attribute__((always_inline)) { prefetch(x, i, ahead); });
  }
}

template <class T, bool kRows>
void gradient(const T* dy, const T* x, const Rows& m, const T* mean, const T* a, const T* b, const T* c, T* dx) {
  using V = xsimd::batch<T>;
  auto value = [&](std::int64_t i, Part<T> part, const Slope<T>& p) __attribute__((always_inline)) {
    return part.load(dy + i) * p.a + ((part.load(x + i) - p.mean) * p.b + p.c);
  };
  if constexpr (kRows) {
    by_rows<T>(m, dx, [&](std::int64_t r) { return Slope<T>{V(mean[r]), V(a[r]), V(b[r]), V(c[r])}; }, value);
  } else {
    by_columns<T>(
        m, dx,
        [&](std::int64_t k, Part<T> part) __attribute__((always_inline)) {
          return Slope<T>{part.load(mean + k), part.load(a + k), part.load(b + k), part.load(c + k)};
        },
        value, [&](std::int64_t i, std::int64_t ahead) __attribute__((always_inline)) {
          prefetch(dy, i, ahead);
          prefetch(x, i, ahead);
        });
  }
}

template <class T>
constexpr NormalizationLoops<T> loops{moments<T>,       sums<T>,           scale<T, false>,
                                      scale<T, true>, gradient<T, false>, gradient<T, true>};

}  // namespace

constinit const NormalizationTable KASSETTE_LEVEL_NAME(normalization_table) = {loops<float>, loops<double>};

}  // namespace kassette
