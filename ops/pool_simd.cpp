// ops/pool_simd.cpp - the inner loops of pooling; compiled once per CPU level.
#include "ops/simd.h"

#include "ops/pool_loops.h"

namespace kassette {
namespace {

/// A number that is NaN stays.
template <class T>
KASSETTE_FN typename Vec<T>::V greatest(const PoolWindow<T>& w, const T* x, std::int64_t c, const Part<T>& part) {
  auto best = part.load(x + w.at[0] + c);
  for (std::int64_t i = 1; i < w.taps; ++i) {
    const auto v = part.load(x + w.at[i] + c);
    best = xsimd::select((v > best) | xsimd::isnan(v), v, best);
  }
  return best;
}

template <class T>
void max(const PoolWindow<T>& w, const T* x, T* y) {
  each_vector<T>(w.channels, [&](std::int64_t c, const Part<T>& part) { part.store(y + c, greatest(w, x, c, part)); });
}

/// f(tap, lanes whose first greatest element that tap is), for all taps.
template <class T, class F>
KASSETTE_FN void at_greatest(const PoolWindow<T>& w, const T* x, std::int64_t c, const Part<T>& part, F f) {
  const auto best = greatest(w, x, c, part);
  auto open = best == best;
  open = open | !open;   // all lanes: those that have not found theirs
  for (std::int64_t i = 0; i < w.taps; ++i) {
    const auto v = part.load(x + w.at[i] + c);
    const auto here = open & ((v == best) | xsimd::isnan(v));
    f(i, here);
    open = open & !here;
  }
}
template <class T>
void max_spread(const PoolWindow<T>& w, const T* x, const T* dy, T* dx) {
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
void max_pick(const PoolWindow<T>& w, const T* x, const T* z, T* y) {
  using V = typename Vec<T>::V;
  each_vector<T>(w.channels, [&](std::int64_t c, const Part<T>& part) {
    V taken(T(0));
    at_greatest(w, x, c, part, [&](std::int64_t i, const auto& here) { taken = xsimd::select(here, part.load(z + w.at[i] + c), taken); });
    part.store(y + c, taken);
  });
}

template <class T>
void mean(const PoolWindow<T>& w, const T* x, T* y) {
  using V = typename Vec<T>::V;
  const V n(static_cast<T>(w.taps));
  each_vector<T>(w.channels, [&](std::int64_t c, const Part<T>& part) {
    V sum = part.load(x + w.at[0] + c);
    for (std::int64_t i = 1; i < w.taps; ++i) sum = sum + part.load(x + w.at[i] + c);
    part.store(y + c, sum / n);
  });
}
template <class T>
void mean_spread(const PoolWindow<T>& w, const T* dy, T* dx) {
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

template <class T>
constexpr PoolLoops<T> loops{max<T>, max_spread<T>, max_pick<T>, mean<T>, mean_spread<T>};

}  // namespace

constinit const PoolTable KASSETTE_LEVEL_NAME(pool_table) = {loops<float>, loops<double>};

}  // namespace kassette
