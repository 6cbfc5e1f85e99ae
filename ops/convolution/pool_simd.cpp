// ops/convolution/pool_simd.cpp - the inner loops of pooling; compiled once per CPU level.
#include <algorithm>
#include <utility>

#include "ops/elementwise/simd.h"

#include "ops/convolution/pool_loops.h"

namespace kassette::ops {
namespace {

/// The maximum of `best` and v in each lane; NaN wins.
template <class V>
KASSETTE_FN V greater(const V& best, const V& v) {
  return xsimd::select((v > best) | xsimd::isnan(v), v, best);
}
template <class T>
KASSETTE_FN typename Vec<T>::V greatest(const PoolWindow<T>& w, const T* x, std::int64_t c, const Part<T>& part) {
  auto best = part.load(x + w.at[0] + c);
  for (std::int64_t i = 1; i < w.taps; ++i) best = greater(best, part.load(x + w.at[i] + c));
  return best;
}

template <class T>
void max(const PoolWindow<T>& w, const T* x, T* y) {
  each_vector<T>(w.channels, [&](std::int64_t c, const Part<T>& part) { part.store(y + c, greatest(w, x, c, part)); });
}

/// Calls f(tap, lanes whose first maximum is that tap) for all taps.
template <class T, class F>
KASSETTE_FN void at_greatest(const PoolWindow<T>& w, const T* x, std::int64_t c, const Part<T>& part, F f) {
  const auto best = greatest(w, x, c, part);
  auto open = best == best;
  open = open | !open;  // true in all lanes: those whose maximum is still to be found
  for (std::int64_t i = 0; i < w.taps; ++i) {
    const auto v = part.load(x + w.at[i] + c);
    const auto here = open & ((v == best) | xsimd::isnan(v));
    f(i, here);
    open = open & !here;
  }
}
template <class T>
void max_grad(const PoolWindow<T>& w, const T* x, const T* dy, T* dx) {
  using V = typename Vec<T>::V;
  each_vector<T>(w.channels, [&](std::int64_t c, const Part<T>& part) {
    const V slope = part.load(dy + c);
    at_greatest(w, x, c, part, [&](std::int64_t i, const auto& here) {
      T* to = dx + w.at[i] + c;
      part.store(to, part.load(to) + xsimd::select(here, slope, V(T(0))));
    });
  });
}
template <class T>
void max_take(const PoolWindow<T>& w, const T* x, const T* z, T* y) {
  using V = typename Vec<T>::V;
  each_vector<T>(w.channels, [&](std::int64_t c, const Part<T>& part) {
    V taken(T(0));
    at_greatest(w, x, c, part, [&](std::int64_t i, const auto& here) {
      taken = xsimd::select(here, part.load(z + w.at[i] + c), taken);
    });
    part.store(y + c, taken);
  });
}

template <class T>
void mean(const PoolWindow<T>& w, const T* x, T* y) {
  using V = typename Vec<T>::V;
  const V n(static_cast<T>(w.taps));
  each_vector<T>(w.channels, [&](std::int64_t c, const Part<T>& part) {
    // Sums of blocks are added up, so that rounding errors do not grow with the window.
    V sum(T(0));
    for (std::int64_t i = 0; i < w.taps;) {
      const std::int64_t end = w.taps - i < kMostTaps ? w.taps : i + kMostTaps;
      V block = part.load(x + w.at[i] + c);
      for (++i; i < end; ++i) block = block + part.load(x + w.at[i] + c);
      sum = sum + block;
    }
    part.store(y + c, sum / n);
  });
}
template <class T>
void mean_grad(const PoolWindow<T>& w, const T* dy, T* dx) {
  using V = typename Vec<T>::V;
  const V n(static_cast<T>(w.taps));
  each_vector<T>(w.channels, [&](std::int64_t c, const Part<T>& part) {
    const V share = part.load(dy + c) / n;
    for (std::int64_t i = 0; i < w.taps; ++i) {
      T* to = dx + w.at[i] + c;
      part.store(to, part.load(to) + share);
    }
  });
}

/// Elements kFirst, kFirst + 2, ... of two vectors.
template <class T, int kFirst, int... i>
KASSETTE_FN typename Vec<T>::V every_second(const typename Vec<T>::V& a, const typename Vec<T>::V& b,
                                            std::integer_sequence<int, i...>) {
  using R = typename Vec<T>::V::register_type;
  return typename Vec<T>::V(
      static_cast<R>(__builtin_shufflevector(static_cast<R>(a), static_cast<R>(b), (2 * i + kFirst)...)));
}
/// Elements 0, kStride, ... from p on, as many as the part has. With stride 2 it also reads a neighbour of each: the
/// one after it if `first`, else the one before it.
template <class T, int kStride>
KASSETTE_FN typename Vec<T>::V columns(const T* p, bool first, const Part<T>& part) {
  if constexpr (kStride == 1) return part.load(p);
  constexpr int w = static_cast<int>(Vec<T>::kWidth);
  const T* from = first ? p : p - 1;  // the elements are the first or the second ones of pairs
  const auto a = Part<T>{2 * part.n}.load(from);
  const auto b = 2 * part.n > w ? Part<T>{2 * part.n - w}.load(from + w) : a;
  constexpr std::make_integer_sequence<int, w> all{};
  return first ? every_second<T, 0>(a, b, all) : every_second<T, 1>(a, b, all);
}
/// y = finish(reduce(...reduce(first element, second)..., last)) for each window, with its elements in row-major order.
template <class T, int kStride, class Reduce, class Finish>
KASSETTE_FN void reduce_lines(const PoolLines<T>& w, const T* x, T* y, Reduce reduce, Finish finish) {
  for (std::int64_t line = 0; line < w.lines; ++line, x += w.x_step, y += w.y_step)
    each_vector<T>(
        w.windows, [&](std::int64_t i, const Part<T>& part) __attribute__((always_inline)) {
          const T* from = x + i * kStride;
          auto v = columns<T, kStride>(from + w.at[0], true, part);
          for (std::int64_t row = 0; row < w.rows; ++row)
            for (std::int64_t c = row == 0 ? 1 : 0; c < w.columns; ++c)
              v = reduce(v, columns<T, kStride>(from + w.at[row] + c, c == 0, part));
          part.store(y + i, finish(v));
        });
}
template <class T, class Reduce, class Finish>
KASSETTE_FN void reduce_lines(const PoolLines<T>& w, const T* x, T* y, Reduce reduce, Finish finish) {
  if (w.stride == 1) reduce_lines<T, 1>(w, x, y, reduce, finish);
  else reduce_lines<T, 2>(w, x, y, reduce, finish);
}
template <class T>
void max_lines(const PoolLines<T>& w, const T* x, T* y) {
  using V = typename Vec<T>::V;
  reduce_lines(
      w, x, y, [](const V& best, const V& v) __attribute__((always_inline)) { return greater(best, v); },
      [](const V& v) __attribute__((always_inline)) { return v; });
}
template <class T>
void mean_lines(const PoolLines<T>& w, const T* x, T* y) {
  using V = typename Vec<T>::V;
  const V n(static_cast<T>(w.rows * w.columns));
  reduce_lines(
      w, x, y, [](const V& sum, const V& v) __attribute__((always_inline)) { return sum + v; },
      [&](const V& v) __attribute__((always_inline)) { return v / n; });
}

template <class T>
constexpr PoolLoops<T> loops{max<T>, max_grad<T>, max_take<T>, mean<T>, mean_grad<T>, max_lines<T>, mean_lines<T>};

}  // namespace

constinit const PoolTable KASSETTE_LEVEL_NAME(pool_table) = {loops<float>, loops<double>};

}  // namespace kassette::ops
