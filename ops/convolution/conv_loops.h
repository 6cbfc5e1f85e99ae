// ops/convolution/conv_loops.h - the inner loops of convolution on the CPU that are not blocks of a product
// (devices/cpu/gemm.h), for each element type and CPU level.
#pragma once
#include <cstdint>

#include "devices/cpu/gemm.h"

namespace kassette::ops {

/// The most columns of ConvLoops::dot_products, which computes a block of results (without `add`) as dot products along
/// the windows. Its weights are packed in another order: for every vector of values of a stretch, one vector of weights
/// per column, filled up with zeros at the end of the stretch.
inline constexpr int kDotColumns = 4;

/// A line of a depthwise convolution: out[p][c] = sum over taps of a_p[offsets[tap] + c] * b[weights[tap] + c], for c <
/// channels.
template <class T>
struct DepthwiseLine {
  const T* a;
  std::int64_t a_step;
  const std::int64_t *offsets, *weights;
  std::int64_t taps;
  const T* b;
  T* out;
  std::int64_t out_step;
  std::int64_t pixels, channels;
};

/// A line of the kernel gradient of a depthwise convolution: out[weights[tap] + c] += sum over pixels p of
/// a_p[offsets[tap] + c] * b_p[c].
template <class T>
struct DepthwiseGradientLine {
  const T *a, *b;
  std::int64_t a_step, b_step;
  const std::int64_t *offsets, *weights;
  std::int64_t taps;
  T* out;
  std::int64_t pixels, channels;
};

/// The loops for one element type at one CPU level.
template <class T>
struct ConvLoops {
  int dots;  // the most results (pixels times columns) of one call of dot_products
  void (*dot_products)(const devices::GemmBlock<T>& t, std::int64_t pixels);
  void (*depthwise)(const DepthwiseLine<T>& t);
  void (*depthwise_gradient)(const DepthwiseGradientLine<T>& t);
};
/// The loops of one CPU level.
struct ConvTable {
  ConvLoops<float> f32;
  ConvLoops<double> f64;
};
KASSETTE_LEVEL_TABLES(ConvTable, conv_table)

}  // namespace kassette::ops
