// ops/pool_loops.h - the inner loops of pooling at one CPU level: one window, all channels.
#pragma once
#include <cstdint>

#include "devices/cpu/level.h"

namespace kassette {

/// Taps of one window that are no padding; tap i of channel c stands at at[i] + c.
template <class T>
struct PoolWindow {
  const std::int64_t* at;
  std::int64_t taps, channels;
};
template <class T>
struct PoolLoops {
  void (*max)(const PoolWindow<T>& w, const T* x, T* y);
  void (*max_spread)(const PoolWindow<T>& w, const T* x, const T* dy, T* dx);   // adds to dx
  void (*max_pick)(const PoolWindow<T>& w, const T* x, const T* z, T* y);
  void (*mean)(const PoolWindow<T>& w, const T* x, T* y);
  void (*mean_spread)(const PoolWindow<T>& w, const T* dy, T* dx);              // adds to dx
};
struct PoolTable {
  PoolLoops<float> f32;
  PoolLoops<double> f64;
};
KASSETTE_LEVEL_TABLES(PoolTable, pool_table)

}  // namespace kassette
