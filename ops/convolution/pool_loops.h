// ops/convolution/pool_loops.h - the inner loops of pooling, with a table for each CPU level: one window and several
// channels, or lines of windows and one channel.
#pragma once
#include <cstdint>

#include "devices/cpu/level.h"

namespace kassette::ops {

inline constexpr std::int64_t kMostTaps = 1024;  // that are added up one after another

/// The taps of one window that are not padding; tap i of channel c is element at[i] + c.
template <class T>
struct PoolWindow {
  const std::int64_t* at;
  std::int64_t taps, channels;
};
/// Lines of windows that padding does not cut along the last axis, in images with channels first. The windows of a line
/// are `stride` (1 or 2) elements apart, have at most kMostTaps elements if they are added up, and cover `columns` (>=
/// stride) elements of each of the rows at[i].
template <class T>
struct PoolLines {
  const std::int64_t* at;
  std::int64_t rows, columns, stride;
  std::int64_t lines, windows;  // the number of lines; of windows in each
  std::int64_t x_step, y_step;  // elements from a line to the next
};
/// The loops for one dtype.
template <class T>
struct PoolLoops {
  void (*max)(const PoolWindow<T>& w, const T* x, T* y);
  void (*max_grad)(const PoolWindow<T>& w, const T* x, const T* dy, T* dx);  // adds to dx
  void (*max_take)(const PoolWindow<T>& w, const T* x, const T* z, T* y);
  void (*mean)(const PoolWindow<T>& w, const T* x, T* y);
  void (*mean_grad)(const PoolWindow<T>& w, const T* dy, T* dx);  // adds to dx
  void (*max_lines)(const PoolLines<T>& w, const T* x, T* y);
  void (*mean_lines)(const PoolLines<T>& w, const T* x, T* y);
};
/// The loops of one CPU level.
struct PoolTable {
  PoolLoops<float> f32;
  PoolLoops<double> f64;
};
KASSETTE_LEVEL_TABLES(PoolTable, pool_table)

}  // namespace kassette::ops
