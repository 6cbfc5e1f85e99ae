// ops/convolution/window.h - a window that slides along an axis: the geometry of convolution, pooling and their
// gradients. Compiled by g++ and nvcc.
#pragma once
#include <cassert>
#include <cstdint>

#include "core/ceil_div.h"

namespace kassette::ops {

/// Where zeros are added before a window slides over an axis, as in Keras.
enum class Padding : std::uint8_t {
  valid,  // no padding
  same,   // out = ceil(n / stride); an odd number of zeros has the extra one at the end
  causal  // zeros only before the first element: output t reads no element after t * stride
};

/// A window of `size` taps, which are `dilation` elements apart. It moves in steps of `stride`. All are at least 1.
struct WindowAxis {
  std::int64_t size = 1, stride = 1, dilation = 1;
  Padding padding = Padding::valid;

  /// Elements from the first tap to the last.
  constexpr std::int64_t extent() const { return (size - 1) * dilation + 1; }
  /// The number of positions over n elements; 0 if the window does not fit.
  constexpr std::int64_t positions(std::int64_t n) const {
    switch (padding) {
      case Padding::same: return (n + stride - 1) / stride;
      case Padding::causal: return (n + stride - 1) / stride;
      default: return n < extent() ? 0 : (n - extent()) / stride + 1;
    }
  }
  /// The number of zeros before the first of n elements: position p begins at element p * stride - before(n).
  constexpr std::int64_t before(std::int64_t n) const {
    if (padding == Padding::valid) return 0;
    if (padding == Padding::causal) return extent() - 1;
    std::int64_t missing = (positions(n) - 1) * stride + extent() - n;
    return missing > 0 ? missing / 2 : 0;
  }
};

// Note [Correlations]
// A convolution and its input gradient are both correlations: along an axis, result p is a weighted sum of the elements
// p * step + start + t * tap_step, t < taps. The input gradient of a convolution with stride s consists of s
// correlations, one for each remainder of the result's index modulo s, each with every s-th tap of the kernel.
// So one driver serves both.

/// One axis of a correlation. Result p is written to out_start + p * out_step. Tap t is multiplied by kernel element
/// weight_start + t * weight_step.
struct CorrelationAxis {
  std::int64_t results, step, start, taps, tap_step;
  std::int64_t out_start = 0, out_step = 1, weight_start = 0, weight_step = 1;

  constexpr std::int64_t weight(std::int64_t tap) const { return weight_start + tap * weight_step; }
  constexpr std::int64_t low(std::int64_t first) const { return first * step + start; }
  /// The number of elements from the first to the last one that `count` neighbouring results read.
  constexpr std::int64_t span(std::int64_t count) const { return (count - 1) * step + (taps - 1) * tap_step + 1; }
};

/// The correlation of a convolution from `in` elements to `out` results.
constexpr CorrelationAxis forward_axis(const WindowAxis& w, std::int64_t in, std::int64_t out) {
  return {.results = out, .step = w.stride, .start = -w.before(in), .taps = w.size, .tap_step = w.dilation};
}

/// The correlation of the input gradient for the results whose index modulo the stride is `remainder`. It may have no
/// taps if the stride exceeds the kernel.
constexpr CorrelationAxis backward_axis(const WindowAxis& w, std::int64_t in, std::int64_t remainder) {
  assert(w.stride == 1 || w.dilation == 1);
  const std::int64_t before = w.before(in);
  if (w.stride == 1)
    return {.results = in,
            .step = 1,
            .start = before - (w.size - 1) * w.dilation,
            .taps = w.size,
            .tap_step = w.dilation,
            .weight_start = w.size - 1,
            .weight_step = -1};
  const std::int64_t tap = (remainder + before) % w.stride, at = (remainder + before) / w.stride;
  const std::int64_t taps = tap < w.size ? ceil_div(w.size - tap, w.stride) : 0;
  return {.results = in > remainder ? ceil_div(in - remainder, w.stride) : 0,
          .step = 1,
          .start = at - (taps - 1),
          .taps = taps,
          .tap_step = 1,
          .out_start = remainder,
          .out_step = w.stride,
          .weight_start = tap + w.stride * (taps - 1),
          .weight_step = -w.stride};
}

}  // namespace kassette::ops
