// ops/normalization/normalization_simd.cpp - the loops of batch normalisation; compiled once per CPU level.
#include "ops/elementwise/simd.h"

#include "ops/normalization/normalization_loops.h"

namespace kassette::ops {
namespace {

// Note [Moments in one pass]
// A block of up to kBlock rows is read from memory once: sums of d and d * d, d = x - shift, give mean and variance.
// The shift is the mean of the first eight rows of the block itself, so (mean - shift)^2 is at most kBlock / 8 times
// the variance of the block, and the difference of the two sums loses at most a factor of kBlock / 8 + 1 in precision,
// whatever x is. Blocks are joined as Chan, Golub and LeVeque (1979) do, which loses nothing: the gap between two means
// is that before they were rounded.
constexpr std::int64_t kBlock = 128, kGroup = 8, kColumns = 256;

/// True if the matrix at y is to be written past the caches and all its vectors are aligned, as those writes need.
template <class T>
KASSETTE_FN bool streams(const T* y, const RowMatrix& r) {
  constexpr std::uintptr_t bytes = sizeof(typename Vec<T>::V);
  return r.stream && reinterpret_cast<std::uintptr_t>(y) % bytes == 0 &&
         static_cast<std::uintptr_t>(r.stride) * sizeof(T) % bytes == 0;
}
KASSETTE_FN void end_stream(bool stream) {
#if defined(__SSE2__)
  if (stream) _mm_sfence();
#else
  static_cast<void>(stream);
#endif
}

// Note [Prefetching in memory order]
// A group of eight rows is read column by column, which keeps its sums in registers. Hardware prefetchers do not
// predict that order, and memory is slower for cache lines a row apart than for neighbouring ones. So while one group
// is read, cache lines of a later one are prefetched row by row, one for each vector: the gradient of [100352, 64]
// takes 0.81 to 0.95 of the time that it takes if the line below each vector is prefetched (2 threads of an EPYC 9005,
// with and without other load). Processing one block of columns after the other, so that its second pass finds it in
// the caches, reads less memory but takes 1.3 times as long with 32 columns, 1.8 times with 16, for the same reason.
template <class T>
class Prefetcher {
 public:
  Prefetcher(std::int64_t stride, std::int64_t width)
      : stride_(stride), rows_(kGroup + (kBytes / static_cast<std::int64_t>(sizeof(T)) + width - 1) / width),
        run_(stride == width ? INT64_MAX : width), lines_(stride == width || width % kEight == 0),
        step_(lines_ ? Vec<T>::kWidth : stride) {}
  /// Begins to prefetch for the group of rows that begins at `row`.
  KASSETTE_FN void start(std::int64_t row) {
    first_ = (row + rows_) * stride_;
    column_ = 0;
  }
  /// The first of eight elements to prefetch while the vectors of eight rows at column c are read. The others follow at
  /// distances of step(); all may be past the end of the array.
  KASSETTE_FN std::int64_t eight(std::int64_t c) {
    if (!lines_) return first_ + c;  // the last columns of a wide matrix: the same ones of rows below
    std::int64_t i = first_ + column_;
    column_ += kEight;
    if (column_ >= run_) {
      column_ = 0;
      first_ += stride_;
    }
    return i;
  }
  KASSETTE_FN std::int64_t step() const { return step_; }

 private:
  static constexpr std::int64_t kBytes = 2048,
                                kEight = kGroup * Vec<T>::kWidth;  // kBytes: what is read while memory answers
  std::int64_t stride_, rows_, run_, first_ = 0, column_ = 0;
  bool lines_;
  std::int64_t step_;
};
/// Prefetches the cache line of p[i], which need not be a valid address.
template <class T>
KASSETTE_FN void prefetch(const T* p, std::int64_t i) {
  __builtin_prefetch(
      reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(p) + static_cast<std::uintptr_t>(i) * sizeof(T)));
}

template <class V>
KASSETTE_FN V sum8(const V* d) {
  return ((d[0] + d[1]) + (d[2] + d[3])) + ((d[4] + d[5]) + (d[6] + d[7]));
}

/// Sums a and b, which f(element, column, part, a, b) sets, over up to kBlock rows, eight rows at a time, pairwise.
/// ask(element) prefetches.
template <class T, class F, class Ask>
KASSETTE_FN void block_sums(std::int64_t n, std::int64_t stride, std::int64_t width, T* sum_a, T* sum_b, F f, Ask ask) {
  using V = xsimd::batch<T>;
  Prefetcher<T> prefetcher(stride, width);
  std::int64_t r = 0;
  for (; r + kGroup <= n; r += kGroup) {
    prefetcher.start(r);
    each_vector<T>(
        width, [&](std::int64_t c, Part<T> part) __attribute__((always_inline)) {
          V a[kGroup], b[kGroup];
          std::int64_t i = r * stride + c, asked = prefetcher.eight(c);
          for (int k = 0; k < kGroup; ++k, i += stride, asked += prefetcher.step()) {
            ask(asked);
            f(i, c, part, a[k], b[k]);
          }
          V sa = sum8(a), sb = sum8(b);
          part.store(sum_a + c, r ? part.load(sum_a + c) + sa : sa);
          part.store(sum_b + c, r ? part.load(sum_b + c) + sb : sb);
        });
  }
  for (; r < n; ++r)
    each_vector<T>(
        width, [&](std::int64_t c, Part<T> part) __attribute__((always_inline)) {
          V a, b;
          f(r * stride + c, c, part, a, b);
          part.store(sum_a + c, r ? part.load(sum_a + c) + a : a);
          part.store(sum_b + c, r ? part.load(sum_b + c) + b : b);
        });
}

/// What rounding took from `sum`, that of a and b (TwoSum); 0 if that is not finite.
template <class V>
KASSETTE_FN V lost_of(const V& sum, const V& a, const V& b) {
  const V added = sum - a, lost = (a - (sum - added)) + (b - added);
  return xsimd::select(lost - lost == V(0), lost, V(0));
}

/// Moments of up to kBlock rows of up to kColumns columns.
template <class T>
KASSETTE_FN void block_moments(const T* x, std::int64_t n, std::int64_t stride, std::int64_t width, T* mean, T* rest,
                               T* squares) {
  using V = xsimd::batch<T>;
  alignas(64) T shift[kColumns], sum[kColumns];
  each_vector<T>(
      width, [&](std::int64_t c, Part<T> part) __attribute__((always_inline)) {
        V first = part.load(x + c);
        if (n >= kGroup) {
          V d[kGroup];
          for (int k = 0; k < kGroup; ++k) d[k] = part.load(x + k * stride + c);
          first = sum8(d) * V(T(1) / T(kGroup));
        }
        part.store(shift + c, first);
      });
  block_sums<T>(
      n, stride, width, sum, squares,
      [&](std::int64_t i, std::int64_t c, Part<T> part, V & a, V & b) __attribute__((always_inline)) {
        a = part.load(x + i) - part.load(shift + c);
        b = a * a;
      },
      [&](std::int64_t i) __attribute__((always_inline)) { prefetch(x, i); });
  const V share(T(1) / static_cast<T>(n));
  each_vector<T>(
      width, [&](std::int64_t c, Part<T> part) __attribute__((always_inline)) {
        V s = part.load(sum + c), beside = s * share, around = part.load(squares + c) - s * beside,
          from = part.load(shift + c), center = from + beside;
        part.store(mean + c, center);
        part.store(rest + c, lost_of(center, from, beside));
        part.store(squares + c, xsimd::select(around < V(T(0)), V(T(0)), around));
      });
}

template <class T>
void moments(const T* x, const RowMatrix& m, T* mean, T* rest, T* squares) {
  using V = xsimd::batch<T>;
  for (std::int64_t at = 0; at < m.width; at += kColumns) {
    std::int64_t width = m.width - at < kColumns ? m.width - at : kColumns;
    T *to_mean = mean + at, *to_rest = rest + at, *to_squares = squares + at;
    for (std::int64_t r = 0; r < m.n; r += kBlock) {
      std::int64_t n = m.n - r < kBlock ? m.n - r : kBlock;
      const T* from = x + r * m.stride + at;
      if (r == 0) {
        block_moments(from, n, m.stride, width, to_mean, to_rest, to_squares);
        continue;
      }
      alignas(64) T next[kColumns], next_rest[kColumns], more[kColumns];
      block_moments(from, n, m.stride, width, next, next_rest, more);
      const V share(static_cast<T>(n) / static_cast<T>(r + n)),
          both(static_cast<T>(r) * (static_cast<T>(n) / static_cast<T>(r + n)));
      each_vector<T>(
          width, [&](std::int64_t c, Part<T> part) __attribute__((always_inline)) {
            V old = part.load(to_mean + c), old_rest = part.load(to_rest + c),
              gap = (part.load(next + c) - old) + (part.load(next_rest + c) - old_rest), step = gap * share,
              center = old + step;
            part.store(to_mean + c, center);
            part.store(to_rest + c, old_rest + lost_of(center, old, step));
            part.store(to_squares + c, (part.load(to_squares + c) + part.load(more + c)) + gap * gap * both);
          });
    }
  }
}

template <class T>
void sums(const T* dy, const T* x, const RowMatrix& m, const T* mean, T* sum, T* product) {
  using V = xsimd::batch<T>;
  for (std::int64_t at = 0; at < m.width; at += kColumns) {
    std::int64_t width = m.width - at < kColumns ? m.width - at : kColumns;
    for (std::int64_t r = 0; r < m.n; r += kBlock) {
      std::int64_t n = m.n - r < kBlock ? m.n - r : kBlock;
      const T *u = dy + r * m.stride + at, *from = x + r * m.stride + at;
      alignas(64) T s[kColumns], p[kColumns];
      block_sums<T>(
          n, m.stride, width, s, p,
          [&](std::int64_t i, std::int64_t c, Part<T> part, V & a, V & b) __attribute__((always_inline)) {
            a = part.load(u + i);
            b = m::mul_no_nan(a, part.load(from + i) - part.load(mean + at + c));
          },
          [&](std::int64_t i) __attribute__((always_inline)) {
            prefetch(u, i);
            prefetch(from, i);
          });
      each_vector<T>(
          width, [&](std::int64_t c, Part<T> part) __attribute__((always_inline)) {
            T *to = sum + at + c, *also = product + at + c;
            part.store(to, r ? part.load(to) + part.load(s + c) : part.load(s + c));
            part.store(also, r ? part.load(also) + part.load(p + c) : part.load(p + c));
          });
    }
  }
}

/// y = value(element, part, parameters), eight rows at a time, for which the parameters of a vector of columns are
/// loaded once.
template <class T, class Parameters, class Value, class Ask>
KASSETTE_FN void by_columns(const RowMatrix& m, T* y, Parameters parameters, Value value, Ask ask) {
  const bool stream = streams(y, m);
  const std::int64_t stride = m.stride;  // a copy: for all that the compiler knows, storing a vector may change m
  Prefetcher<T> prefetcher(stride, m.width);
  for (std::int64_t r = 0; r < m.n; r += kGroup) {
    std::int64_t n = m.n - r < kGroup ? m.n - r : kGroup;
    prefetcher.start(r);
    each_vector<T>(
        m.width, [&](std::int64_t c, Part<T> part) __attribute__((always_inline)) {
          auto p = parameters(c, part);
          std::int64_t i = r * stride + c, asked = prefetcher.eight(c);
          for (std::int64_t k = 0; k < n; ++k, i += stride, asked += prefetcher.step()) {
            ask(asked);
            part.store(y + i, value(i, part, p), stream);
          }
        });
  }
  end_stream(stream);
}
template <class T, class Parameters, class Value>
KASSETTE_FN void by_rows(const RowMatrix& m, T* y, Parameters parameters, Value value) {
  bool stream = streams(y, m);
  for (std::int64_t r = 0; r < m.n; ++r) {
    auto p = parameters(m.alike ? 0 : r);
    each_vector<T>(
        m.width, [&](std::int64_t c, Part<T> part) __attribute__((always_inline)) {
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
void scale(const T* x, const RowMatrix& m, const T* mean, const T* factor, const T* shift, T* y) {
  using V = xsimd::batch<T>;
  auto value = [&](std::int64_t i, Part<T> part, const Affine<T>& p) __attribute__((always_inline)) {
    return (part.load(x + i) - p.mean) * p.scale + p.shift;
  };
  if constexpr (kRows) {
    by_rows<T>(
        m, y,
        [&](std::int64_t r) {
          return Affine<T>{V(mean[r]), V(factor[r]), V(shift ? shift[r] : T(0))};
        },
        value);
  } else {
    by_columns<T>(
        m, y,
        [&](std::int64_t c, Part<T> part) __attribute__((always_inline)) {
          return Affine<T>{part.load(mean + c), part.load(factor + c), shift ? part.load(shift + c) : V(T(0))};
        },
        value, [&](std::int64_t i) __attribute__((always_inline)) { prefetch(x, i); });
  }
}

template <class T, bool kRows>
void gradient(const T* dy, const T* x, const RowMatrix& m, const T* mean, const T* a, const T* b, const T* c, T* dx) {
  using V = xsimd::batch<T>;
  auto value = [&](std::int64_t i, Part<T> part, const Slope<T>& p) __attribute__((always_inline)) {
    return m::mul_no_nan(part.load(dy + i), p.a) + (m::mul_no_nan(p.b, part.load(x + i) - p.mean) + p.c);
  };
  if constexpr (kRows) {
    by_rows<T>(
        m, dx,
        [&](std::int64_t r) {
          return Slope<T>{V(mean[r]), V(a[r]), V(b[r]), V(c[r])};
        },
        value);
  } else {
    by_columns<T>(
        m, dx,
        [&](std::int64_t k, Part<T> part) __attribute__((always_inline)) {
          return Slope<T>{part.load(mean + k), part.load(a + k), part.load(b + k), part.load(c + k)};
        },
        value,
        [&](std::int64_t i) __attribute__((always_inline)) {
          prefetch(dy, i);
          prefetch(x, i);
        });
  }
}

template <class T>
constexpr NormalizationLoops<T> loops{moments<T>,         sums<T>,          scale<T, false>, scale<T, true>,
                                      gradient<T, false>, gradient<T, true>};

}  // namespace

constinit const NormalizationTable KASSETTE_LEVEL_NAME(normalization_table) = {loops<float>, loops<double>};

}  // namespace kassette::ops
