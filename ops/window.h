// ops/window.h - a window that slides along an axis: the one geometry of convolution, pooling and their gradients. Read by g++ and nvcc.
#pragma once
#include <cassert>
#include <cstdint>

#include "core/ceil_div.h"

namespace kassette {

enum class Padding : std::uint8_t {
  valid,  // no padding
  same,   // out = ceil(n / stride); of the zeros, the odd one stands at the end
  causal  // zeros before the first element alone: output t reads nothing after t * stride
};

/// A window of `size` taps, `dilation` elements apart, which moves by `stride`. All are at least 1.
struct WindowAxis {
  std::int64_t size = 1, stride = 1, dilation = 1;
  Padding padding = Padding::valid;

  bool operator==(const WindowAxis&) const = default;
  /// Elements from the first tap to the last.
  constexpr std::int64_t extent() const { return (size - 1) * dilation + 1; }
  /// The number of positions over n elements; 0 or less where the window does not fit once.
  constexpr std::int64_t positions(std::int64_t n) const {
    switch (padding) {
      case Padding::same: return (n + stride - 1) / stride;
      case Padding::causal: return (n + stride - 1) / stride;
      default: return n < extent() ? 0 : (n - extent()) / stride + 1;
    }
  }
  /// Zeros before the first of n elements: position p begins at element p * stride - before(n).
  constexpr std::int64_t before(std::int64_t n) const {
    if (padding == Padding::valid) return 0;
    if (padding == Padding::causal) return extent() - 1;
    std::int64_t missing = (positions(n) - 1) * stride + extent() - n;
    return missing > 0 ? missing / 2 : 0;
  }
};

// Note [Correlations]
// A convolution and its input gradient are sums of the same kind: result p of an axis reads the elements p * step + start + t * tap_step,
// t < taps. For the input gradient of a convolution with stride s the results of one remainder modulo s form a correlation each, with
// every s-th tap of the kernel. So one driver serves both.

/// One axis of a correlation. Result p stands at out_start + p * out_step. Tap t has weight weight_start + t *
/// weight_step of the kernel.
struct Line {
  std::int64_t results, step, start, taps, tap_step;
  std::int64_t out_start = 0, out_step = 1, weight_start = 0, weight_step = 1;

  constexpr std::int64_t weight(std::int64_t tap) const { return weight_start + tap * weight_step; }
  constexpr std::int64_t low(std::int64_t first) const { return first * step + start; }
  /// Elements that `count` neighbouring results span.
  constexpr std::int64_t span(std::int64_t count) const { return (count - 1) * step + (taps - 1) * tap_step + 1; }
};

constexpr Line forward_line(const WindowAxis& w, std::int64_t in, std::int64_t out) {
  return {.results = out, .step = w.stride, .start = -w.before(in), .taps = w.size, .tap_step = w.dilation};
}

/// The results that are `phase` modulo the stride. Without a tap where the stride is larger than the kernel.
constexpr Line backward_line(const WindowAxis& w, std::int64_t in, std::int64_t phase) {
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
  const std::int64_t tap = (phase + before) % w.stride, at = (phase + before) / w.stride;
  const std::int64_t taps = tap < w.size ? ceil_div(w.size - tap, w.stride) : 0;
  return {.results = in > phase ? ceil_div(in - phase, w.stride) : 0,
          .step = 1,
          .start = at - (taps - 1),
          .taps = taps,
          .tap_step = 1,
          .out_start = phase,
          .out_step = w.stride,
          .weight_start = tap + w.stride * (taps - 1),
          .weight_step = -w.stride};
}

}  // namespace kassette
