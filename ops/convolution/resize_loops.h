// ops/convolution/resize_loops.h - the inner loops of bilinear enlargement at one CPU level.
#pragma once
#include <cstdint>

#include "devices/cpu/level.h"

namespace kassette::ops {

/// Loops over n elements of a line.
template <class T>
struct ResizeLoops {
  void (*blend)(const T* a, const T* b, T t, std::int64_t n, T* to,
                bool stream);                                  // to = a + (b - a) * t, past the caches if `stream`
  void (*add_scaled)(const T* x, T t, std::int64_t n, T* to);  // to += x * t
};
/// The loops of one CPU level.
struct ResizeTable {
  ResizeLoops<float> f32;
  ResizeLoops<double> f64;
};
KASSETTE_LEVEL_TABLES(ResizeTable, resize_table)

}  // namespace kassette::ops
