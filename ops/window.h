// ops/window.h - a window that slides along an axis: the one geometry of convolution, pooling and their gradients. Read by g++ and nvcc.
#pragma once
#include <cstdint>

namespace kassette {

enum class Padding : std::uint8_t {
  valid,    // no padding
  same,     // out = ceil(n / stride); of the zeros, the odd one stands at the end
  causal    // zeros before the first element alone: output t reads nothing after t * stride
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
  /// The taps of position p that stand on one of n elements: [first, last).
  constexpr std::int64_t first_tap(std::int64_t n, std::int64_t p) const {
    std::int64_t from = p * stride - before(n);
    return from >= 0 ? 0 : (-from + dilation - 1) / dilation;
  }
  constexpr std::int64_t last_tap(std::int64_t n, std::int64_t p) const {
    std::int64_t from = p * stride - before(n), fit = from >= n ? 0 : (n - from - 1) / dilation + 1;
    return fit < size ? fit : size;
  }
};

}  // namespace kassette
