// ops/convolution/conv_loops.h - the inner loops of convolution on the CPU: small tiles of results in registers, for
// each element type and CPU level.
#pragma once
#include <cstdint>

#include "devices/cpu/level.h"

namespace kassette::ops {

/// Computes the results of neighbouring windows, one per pixel i, for `columns` output channels j: out[i][j] = sum over
/// k of a_i[k] * b[k][j].
///
/// The values of a window are not gathered: they lie in `runs` stretches of `run` elements, stretch r at a +
/// offsets[r], and the window of the next pixel begins `a_step` elements further on. The weights, b, are packed: one
/// row of ConvLoops::columns numbers for each k.
template <class T>
struct ConvTile {
  const T* a;
  std::int64_t a_step;
  const std::int64_t* offsets;
  std::int64_t runs, run;
  const T* b;
  T* out;
  std::int64_t out_step;
  std::int64_t columns;     // at most ConvLoops::columns
  bool add;                 // add to the values in `out`
  const T* bias = nullptr;  // if set, added to the sums, one number for each column
  bool relu = false;        // with a bias only: then max(sum, 0)
};

/// The most columns of ConvLoops::dot_products, which computes a tile (without `add`) as dot products along the
/// windows. Its weights are packed in another order: for every vector of values of a stretch, one vector of weights per
/// column, filled up with zeros at the end of the stretch.
inline constexpr int kDotColumns = 4;

/// A part of a kernel gradient: out[i][j] += sum over pixels p of a_p[i] * b_p[j], for i < rows, j < columns. The sum
/// runs over `lines` lines of `pixels` pixels each.
template <class T>
struct KernelGradientTile {
  const T *a, *b;
  std::int64_t a_step, b_step;  // from pixel to pixel
  std::int64_t a_line, b_line;  // from line to line
  std::int64_t lines, pixels;
  T* out;
  std::int64_t out_step;  // from row to row
  std::int64_t columns;
};

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
  int rows, columns;  // the largest tile: pixels (rows of a kernel gradient) and columns
  int dots;           // the most results (pixels times columns) of one call of dot_products
  void (*tile)(const ConvTile<T>& t, std::int64_t pixels);
  void (*dot_products)(const ConvTile<T>& t, std::int64_t pixels);
  void (*kernel_gradient)(const KernelGradientTile<T>& t, std::int64_t rows);
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
