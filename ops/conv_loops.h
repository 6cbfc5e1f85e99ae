// ops/conv_loops.h - the inner loops of convolution: small tiles of results held in registers, for an element type at one CPU level.
#pragma once
#include <cstdint>

#include "devices/cpu/level.h"

namespace kassette {

/// Results of `pixels` neighbouring windows for `columns` output channels: out[i][j] = sum over k of a_i[k] * b[k][j].
///
/// The K values of a window are not gathered: they stand in `runs` stretches of `run` elements, stretch r at a + offsets[r], and the window
/// of the next pixel begins `a_step` elements on. The weights, b, are packed: K rows of ConvLoops::columns numbers.
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
  bool add;                 // to what is in `out`
  const T* bias = nullptr;  // added to the sums, one for each column
  bool relu = false;        // and then zeros in place of what is below them
};

/// The same for few columns, as dot products along the windows. The weights are packed otherwise: for as many values of a stretch as a vector
/// holds, a vector of each column, with zeros behind the end of the stretch.
inline constexpr int kDotColumns = 4;

/// A part of the gradient of a kernel: out[i][j] += sum over pixels p of a_p[i] * b_p[j], i < rows, j < columns. Pixels are those of `lines`
/// lines of `pixels` each.
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

/// Depthwise: out[p][c] = sum over taps of a_p[offsets[tap] + c] * b[weights[tap] + c], c < channels; `add`: plus what is in `out`.
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
  bool add;
};

/// Depthwise: out[weights[tap] + c] += sum over pixels of a_p[offsets[tap] + c] * b_p[c].
template <class T>
struct DepthwiseGradientLine {
  const T *a, *b;
  std::int64_t a_step, b_step;
  const std::int64_t *offsets, *weights;
  std::int64_t taps;
  T* out;
  std::int64_t pixels, channels;
};

template <class T>
struct ConvLoops {
  int rows, columns;  // the largest tile
  int dots;           // the most results of one call of dot_products
  void (*tile)(const ConvTile<T>& t, std::int64_t pixels);
  void (*dot_products)(const ConvTile<T>& t, std::int64_t pixels);
  void (*kernel_gradient)(const KernelGradientTile<T>& t, std::int64_t rows);
  void (*depthwise)(const DepthwiseLine<T>& t);
  void (*depthwise_gradient)(const DepthwiseGradientLine<T>& t);
};
struct ConvTable {
  ConvLoops<float> f32;
  ConvLoops<double> f64;
};
KASSETTE_LEVEL_TABLES(ConvTable, conv_table)

}  // namespace kassette
