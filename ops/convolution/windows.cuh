// ops/convolution/windows.cuh - windows over images on a CUDA device: the elements that a window covers, and the
// windows that cover an element.
#pragma once
#include "devices/cuda/cudnn.h"
#include "ops/convolution/conv.h"
#include "ops/elementwise/elementwise.cuh"

namespace kassette::cuda {

/// Dividers by the sizes of an image, or of its results, and the number of its channels.
struct ImageDividers {
  Divider axis[3], points, channels;
  ImageDividers(const std::int64_t (&size)[3], std::int64_t channels_)
      : axis{Divider(size[0]), Divider(size[1]), Divider(size[2])}, points(size[0] * size[1] * size[2]),
        channels(channels_) {}
};

/// A ConvShape in the form that direct kernels take: a trivially copyable argument. A point is the row-major number of
/// a pixel (or voxel).
struct Geometry {
  /// An axis of the window. Unlike WindowAxis it has no padding bytes (the reason is in
  /// tests/emulated_cuda/cuda_runtime.h).
  struct Axis {
    std::int64_t size, dilation;
    Divider stride;
  };
  Axis window[3];
  std::int64_t batch, c_in, c_out, in[3], out[3], before[3];
  ImageDividers by_in, by_out;
  Divider by_multiplier;
  bool channels_first, depthwise;

  explicit Geometry(const ConvShape& s)
      : batch(s.batch), c_in(s.c_in), c_out(s.c_out), by_in(s.in, s.c_in), by_out(s.out, s.c_out),
        by_multiplier(s.c_out / s.c_in), channels_first(s.channels_first), depthwise(s.depthwise) {
    for (int d = 0; d < 3; ++d) {
      window[d] = {s.window[d].size, s.window[d].dilation, Divider(s.window[d].stride)};
      in[d] = s.in[d];
      out[d] = s.out[d];
      before[d] = s.window[d].before(s.in[d]);
    }
  }
  KASSETTE_FN std::int64_t in_points() const { return in[0] * in[1] * in[2]; }
  KASSETTE_FN std::int64_t out_points() const { return out[0] * out[1] * out[2]; }
  KASSETTE_FN std::int64_t taps() const { return window[0].size * window[1].size * window[2].size; }
  KASSETTE_FN std::int64_t x_at(std::int64_t image, std::int64_t point, std::int64_t c) const {
    return channels_first ? (image * c_in + c) * in_points() + point : (image * in_points() + point) * c_in + c;
  }
  KASSETTE_FN std::int64_t y_at(std::int64_t image, std::int64_t point, std::int64_t c) const {
    return channels_first ? (image * c_out + c) * out_points() + point : (image * out_points() + point) * c_out + c;
  }
  /// The distance in elements from one channel of x, or of the results, to the next.
  KASSETTE_FN std::int64_t x_step() const { return channels_first ? in_points() : 1; }
  KASSETTE_FN std::int64_t y_step() const { return channels_first ? out_points() : 1; }
  /// The offset of the kernel's weight for a tap, input channel c and output channel f.
  KASSETTE_FN std::int64_t w_at(std::int64_t tap, std::int64_t c, std::int64_t f) const {
    return depthwise ? tap * c_out + f : (tap * c_in + c) * c_out + f;
  }

  /// Calls f(tap, point of x) for the taps of the window at a point of the results, in order, without those in the
  /// padding.
  template <class F>
  KASSETTE_FN void each_under(std::int64_t point, F f) const {
    std::int64_t low[3];
    for (int d = 2; d >= 0; --d) {
      const std::int64_t rest = by_out.axis[d](point);
      low[d] = (point - rest * out[d]) * window[d].stride.by - before[d];
      point = rest;
    }
    for (std::int64_t a = 0, i = low[0]; a < window[0].size; ++a, i += window[0].dilation) {
      if (i < 0 || i >= in[0]) continue;
      for (std::int64_t b = 0, j = low[1]; b < window[1].size; ++b, j += window[1].dilation) {
        if (j < 0 || j >= in[1]) continue;
        for (std::int64_t c = 0, k = low[2]; c < window[2].size; ++c, k += window[2].dilation)
          if (k >= 0 && k < in[2]) f((a * window[1].size + b) * window[2].size + c, (i * in[1] + j) * in[2] + k);
      }
    }
  }
  /// Calls f(tap, point of the results) for the windows that cover a point of x, in order. Taps descend: later taps
  /// belong to earlier windows.
  template <class F>
  KASSETTE_FN void each_over(std::int64_t point, F f) const {
    std::int64_t high[3];
    for (int d = 2; d >= 0; --d) {
      const std::int64_t rest = by_in.axis[d](point);
      high[d] = point - rest * in[d] + before[d];
      point = rest;
    }
    for (std::int64_t a = window[0].size - 1; a >= 0; --a) {
      const std::int64_t i = over(0, high[0] - a * window[0].dilation);
      if (i < 0) continue;
      for (std::int64_t b = window[1].size - 1; b >= 0; --b) {
        const std::int64_t j = over(1, high[1] - b * window[1].dilation);
        if (j < 0) continue;
        for (std::int64_t c = window[2].size - 1; c >= 0; --c) {
          const std::int64_t k = over(2, high[2] - c * window[2].dilation);
          if (k >= 0) f((a * window[1].size + b) * window[2].size + c, (i * out[1] + j) * out[2] + k);
        }
      }
    }
  }
  /// The number of elements of x, without padding, that the window at a point of the results covers. It is not dilated.
  KASSETTE_FN std::int64_t shown(std::int64_t point) const {
    std::int64_t n = 1;
    for (int d = 2; d >= 0; --d) {
      const std::int64_t rest = by_out.axis[d](point);
      const std::int64_t low = (point - rest * out[d]) * window[d].stride.by - before[d], fit = in[d] - low;
      n *= (fit < window[d].size ? fit : window[d].size) - (low < 0 ? -low : 0);
      point = rest;
    }
    return n;
  }

 private:
  /// The position along axis d whose window begins `distance` elements after that of position 0; -1 if there is none.
  KASSETTE_FN std::int64_t over(int d, std::int64_t distance) const {
    if (distance < 0) return -1;
    const std::int64_t p = window[d].stride(distance);
    return p * window[d].stride.by == distance && p < out[d] ? p : -1;
  }
};

/// A ConvShape in the form that cuDNN takes.
inline CudnnWindows cudnn_windows(const ConvShape& s, DType dtype) {
  CudnnWindows w{.dtype = dtype,
                 .channels_first = s.channels_first,
                 .batch = s.batch,
                 .c_in = s.c_in,
                 .c_out = s.c_out,
                 .groups = s.depthwise ? s.c_in : 1};
  for (int d = 0; d < 3; ++d) {
    w.in[d] = s.in[d];
    w.out[d] = s.out[d];
    w.size[d] = s.window[d].size;
    w.stride[d] = s.window[d].stride;
    w.dilation[d] = s.window[d].dilation;
    w.before[d] = s.window[d].before(s.in[d]);
  }
  return w;
}

/// The image, point and channel of element t of a tensor of images.
struct PixelIndex {
  std::int64_t image, point, channel;
  KASSETTE_FN PixelIndex(std::int64_t t, const Divider& points, const Divider& channels, bool channels_first) {
    const std::int64_t outer = channels_first ? points(t) : channels(t);
    image = channels_first ? channels(outer) : points(outer);
    if (channels_first) {
      point = t - outer * points.by;
      channel = outer - image * channels.by;
    } else {
      channel = t - outer * channels.by;
      point = outer - image * points.by;
    }
  }
};

/// Calls f with a null pointer to the output's element type. Does nothing if the output is empty.
template <class F>
void with_floats(const OpCall& call, F&& f) {
  if (call.out[0]->numel() == 0) return;
  for_dtype<Domain::floats>(call.out[0]->dtype, f);
}

}  // namespace kassette::cuda
