// ops/conv.cu - convolution, pooling and bilinear enlargement on CUDA: a thread for each result, which sums in the order of the taps.
#include <iterator>

#include "ops/conv.h"
#include "ops/elementwise.cuh"
#include "ops/moving.cuh"
#include "ops/resize.h"
#include "ops/teams.cuh"

namespace kassette::cuda {
namespace {

/// The geometry, and where the elements of both tensors of images and of the kernel are. Channels: input of the kernel's, or depthwise.
struct Geometry {
  WindowAxis window[3];
  std::int64_t batch, c_in, c_out, in[3], out[3], before[3];
  bool channels_first, depthwise;

  explicit Geometry(const ConvShape& s) : batch(s.batch), c_in(s.c_in), c_out(s.c_out), channels_first(s.channels_first), depthwise(s.depthwise) {
    for (int d = 0; d < 3; ++d) {
      window[d] = s.window[d];
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
  /// The kernel between input channel c and output channel f.
  KASSETTE_FN std::int64_t w_at(std::int64_t tap, std::int64_t c, std::int64_t f) const { return depthwise ? tap * c_out + f : (tap * c_in + c) * c_out + f; }
  /// The point of x under a tap of the window at a point of the results, or -1 where that is padding.
  KASSETTE_FN std::int64_t under(std::int64_t point, std::int64_t tap) const {
    std::int64_t at = 0, scale = 1;
    for (int d = 2; d >= 0; --d) {
      const std::int64_t i = point % out[d] * window[d].stride + tap % window[d].size * window[d].dilation - before[d];
      point /= out[d];
      tap /= window[d].size;
      if (i < 0 || i >= in[d]) return -1;
      at += i * scale;
      scale *= in[d];
    }
    return at;
  }
  /// The point of the results whose window has this tap on a point of x, or -1.
  KASSETTE_FN std::int64_t over(std::int64_t point, std::int64_t tap) const {
    std::int64_t at = 0, scale = 1;
    for (int d = 2; d >= 0; --d) {
      const std::int64_t low = point % in[d] + before[d] - tap % window[d].size * window[d].dilation;
      point /= in[d];
      tap /= window[d].size;
      if (low < 0 || low % window[d].stride != 0 || low / window[d].stride >= out[d]) return -1;
      at += low / window[d].stride * scale;
      scale *= out[d];
    }
    return at;
  }
};

/// Image, point and channel of element t of a tensor of images.
struct Place {
  std::int64_t image, point, channel;
  KASSETTE_FN Place(std::int64_t t, std::int64_t points, std::int64_t channels, bool channels_first) {
    const std::int64_t inner = t % (points * channels);
    image = t / (points * channels);
    point = channels_first ? inner % points : inner / channels;
    channel = channels_first ? inner / points : inner % channels;
  }
};

template <class T>
__global__ void convolve_each(Geometry g, const T* x, const T* w, T* y) {
  const std::int64_t n = g.batch * g.out_points() * g.c_out, multiplier = g.c_out / g.c_in;
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const Place p(t, g.out_points(), g.c_out, g.channels_first);
    Wide<T> sum = Wide<T>(0);
    for (std::int64_t tap = 0; tap < g.taps(); ++tap) {
      const std::int64_t at = g.under(p.point, tap);
      if (at < 0) continue;
      if (g.depthwise) sum = sum + load(x + g.x_at(p.image, at, p.channel / multiplier)) * load(w + g.w_at(tap, 0, p.channel));
      else
        for (std::int64_t c = 0; c < g.c_in; ++c) sum = sum + load(x + g.x_at(p.image, at, c)) * load(w + g.w_at(tap, c, p.channel));
    }
    store(y + t, sum);
  }
}

template <class T>
__global__ void input_gradient_each(Geometry g, const T* dy, const T* w, T* dx) {
  const std::int64_t n = g.batch * g.in_points() * g.c_in, multiplier = g.c_out / g.c_in;
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const Place p(t, g.in_points(), g.c_in, g.channels_first);
    const std::int64_t first = g.depthwise ? p.channel * multiplier : 0, last = g.depthwise ? first + multiplier : g.c_out;
    Wide<T> sum = Wide<T>(0);
    for (std::int64_t tap = 0; tap < g.taps(); ++tap) {
      const std::int64_t at = g.over(p.point, tap);
      if (at < 0) continue;
      for (std::int64_t f = first; f < last; ++f) sum = sum + load(dy + g.y_at(p.image, at, f)) * load(w + g.w_at(tap, p.channel, f));
    }
    store(dx + t, sum);
  }
}

template <class T>
__global__ void kernel_gradient_each(Geometry g, const T* x, const T* dy, T* dw) {
  const std::int64_t block = g.depthwise ? g.c_out : g.c_in * g.c_out, n = g.taps() * block, multiplier = g.c_out / g.c_in;
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const std::int64_t tap = t / block, f = t % g.c_out, c = g.depthwise ? f / multiplier : t % block / g.c_out;
    Wide<T> sum = Wide<T>(0);
    for (std::int64_t image = 0; image < g.batch; ++image)
      for (std::int64_t point = 0; point < g.out_points(); ++point) {
        const std::int64_t at = g.under(point, tap);
        if (at >= 0) sum = sum + load(x + g.x_at(image, at, c)) * load(dy + g.y_at(image, point, f));
      }
    store(dw + t, sum);
  }
}

template <class F>
void with_floats(const Call& call, F&& f) {
  if (call.out[0]->numel() == 0) return;
  for_dtype<Domain::floats>(call.out[0]->dtype, f);
}
void run_convolution(const Call& call) {
  with_floats(call, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    const Geometry g(ConvShape(call.attrs, call.spec(0), call.spec(1), *call.out[0]));
    launch(call.op.name, device_of(call.device), blocks_for(call.out[0]->numel()), convolve_each<T>, g, call.in[0].as<T>(), call.in[1].as<T>(), call.out_as<T>());
  });
}
void run_input_gradient(const Call& call) {
  with_floats(call, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    const Geometry g(ConvShape(call.attrs, *call.out[0], call.spec(1), call.spec(0)));
    launch(call.op.name, device_of(call.device), blocks_for(call.out[0]->numel()), input_gradient_each<T>, g, call.in[0].as<T>(), call.in[1].as<T>(),
           call.out_as<T>());
  });
}
void run_kernel_gradient(const Call& call) {
  with_floats(call, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    const Geometry g(ConvShape(call.attrs, call.spec(0), *call.out[0], call.spec(1)));
    launch(call.op.name, device_of(call.device), blocks_for(call.out[0]->numel()), kernel_gradient_each<T>, g, call.in[0].as<T>(), call.in[1].as<T>(),
           call.out_as<T>());
  });
}

// ---- pooling ---------------------------------------------------------------------------------------------------------

/// The tap of the first of the greatest elements of a window; NaN is greater than all.
template <class T>
KASSETTE_FN std::int64_t greatest(const Geometry& g, const T* x, std::int64_t image, std::int64_t point, std::int64_t channel) {
  std::int64_t best = -1;
  Wide<T> high = Wide<T>(0);
  for (std::int64_t tap = 0; tap < g.taps(); ++tap) {
    const std::int64_t at = g.under(point, tap);
    if (at < 0) continue;
    const Wide<T> v = load(x + g.x_at(image, at, channel));
    if (best >= 0 && !(v > high) && !(v != v && high == high)) continue;
    best = tap;
    high = v;
  }
  return best;
}
template <class T>
__global__ void max_each(Geometry g, const T* x, const T* from, T* y) {
  const std::int64_t n = g.batch * g.out_points() * g.c_in;
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const Place p(t, g.out_points(), g.c_in, g.channels_first);
    y[t] = from[g.x_at(p.image, g.under(p.point, greatest(g, x, p.image, p.point, p.channel)), p.channel)];
  }
}
template <class T>
__global__ void max_spread_each(Geometry g, const T* x, const T* dy, T* dx) {
  const std::int64_t n = g.batch * g.in_points() * g.c_in;
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const Place p(t, g.in_points(), g.c_in, g.channels_first);
    Wide<T> sum = Wide<T>(0);
    // Windows in their order: later taps belong to earlier windows.
    for (std::int64_t tap = g.taps() - 1; tap >= 0; --tap) {
      const std::int64_t at = g.over(p.point, tap);
      if (at >= 0 && greatest(g, x, p.image, at, p.channel) == tap) sum = sum + load(dy + g.y_at(p.image, at, p.channel));
    }
    store(dx + t, sum);
  }
}
template <class T>
__global__ void mean_each(Geometry g, const T* x, T* y) {
  const std::int64_t n = g.batch * g.out_points() * g.c_in;
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const Place p(t, g.out_points(), g.c_in, g.channels_first);
    Wide<T> sum = Wide<T>(0);
    int count = 0;
    for (std::int64_t tap = 0; tap < g.taps(); ++tap) {
      const std::int64_t at = g.under(p.point, tap);
      if (at < 0) continue;
      sum = sum + load(x + g.x_at(p.image, at, p.channel));
      ++count;
    }
    store(y + t, sum / static_cast<Wide<T>>(count));
  }
}
template <class T>
__global__ void mean_spread_each(Geometry g, const T* dy, T* dx) {
  const std::int64_t n = g.batch * g.in_points() * g.c_in;
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const Place p(t, g.in_points(), g.c_in, g.channels_first);
    Wide<T> sum = Wide<T>(0);
    for (std::int64_t tap = g.taps() - 1; tap >= 0; --tap) {
      const std::int64_t at = g.over(p.point, tap);
      if (at < 0) continue;
      int count = 0;
      for (std::int64_t k = 0; k < g.taps(); ++k) count += g.under(at, k) >= 0;
      sum = sum + load(dy + g.y_at(p.image, at, p.channel)) / static_cast<Wide<T>>(count);
    }
    store(dx + t, sum);
  }
}
Geometry pool_geometry(const Call& call, const Spec& windows, const Spec& results) { return Geometry(ConvShape(call.attrs, windows, results)); }

void run_max(const Call& call) {
  with_floats(call, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch(call.op.name, device_of(call.device), blocks_for(call.out[0]->numel()), max_each<T>, pool_geometry(call, call.spec(0), *call.out[0]),
           call.in[0].as<T>(), call.in[call.n_in - 1].as<T>(), call.out_as<T>());
  });
}
void run_max_spread(const Call& call) {
  with_floats(call, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch(call.op.name, device_of(call.device), blocks_for(call.out[0]->numel()), max_spread_each<T>, pool_geometry(call, call.spec(0), call.spec(1)),
           call.in[0].as<T>(), call.in[1].as<T>(), call.out_as<T>());
  });
}
void run_mean(const Call& call) {
  with_floats(call, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch(call.op.name, device_of(call.device), blocks_for(call.out[0]->numel()), mean_each<T>, pool_geometry(call, call.spec(0), *call.out[0]),
           call.in[0].as<T>(), call.out_as<T>());
  });
}
void run_mean_spread(const Call& call) {
  with_floats(call, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch(call.op.name, device_of(call.device), blocks_for(call.out[0]->numel()), mean_spread_each<T>, pool_geometry(call, *call.out[0], call.spec(0)),
           call.in[0].as<T>(), call.out_as<T>());
  });
}

// ---- bilinear enlargement --------------------------------------------------------------------------------------------

/// The weight that element `from` of n has in result `to` of n * factor.
template <class T>
KASSETTE_FN T share(std::int64_t from, std::int64_t to, std::int64_t n, std::int64_t factor) {
  const T t = static_cast<T>(to % factor) / static_cast<T>(factor);
  if (to / factor == from) return from + 1 < n ? 1 - t : T(1);
  return to / factor + 1 == from ? t : T(0);
}
template <class T>
__global__ void enlarge_each(ResizeShape s, const T* x, T* y) {
  const std::int64_t columns = s.columns * s.column_factor, n = s.outer * s.rows * s.row_factor * columns * s.inner;
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const std::int64_t inner = t % s.inner, j = t / s.inner % columns, i = t / s.inner / columns % (s.rows * s.row_factor),
                       outer = t / s.inner / columns / (s.rows * s.row_factor);
    const std::int64_t a = i / s.row_factor, b = a + 1 < s.rows ? a + 1 : a, c = j / s.column_factor, d = c + 1 < s.columns ? c + 1 : c;
    const T down = static_cast<T>(i % s.row_factor) / static_cast<T>(s.row_factor), right = static_cast<T>(j % s.column_factor) / static_cast<T>(s.column_factor);
    auto at = [&](std::int64_t row, std::int64_t column) { return x[((outer * s.rows + row) * s.columns + column) * s.inner + inner]; };
    const T above = at(a, c) + (at(a, d) - at(a, c)) * right, below = at(b, c) + (at(b, d) - at(b, c)) * right;
    y[t] = above + (below - above) * down;
  }
}
template <class T>
__global__ void enlarge_gradient_each(ResizeShape s, const T* dy, T* dx) {
  const std::int64_t columns = s.columns * s.column_factor, rows = s.rows * s.row_factor, n = s.outer * s.rows * s.columns * s.inner;
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const std::int64_t inner = t % s.inner, c = t / s.inner % s.columns, r = t / s.inner / s.columns % s.rows, outer = t / s.inner / s.columns / s.rows;
    const std::int64_t first_row = r > 0 ? (r - 1) * s.row_factor : 0, first_column = c > 0 ? (c - 1) * s.column_factor : 0;
    T sum = T(0);
    for (std::int64_t j = first_column; j < (c + 1) * s.column_factor; ++j) {
      T down = T(0);
      for (std::int64_t i = first_row; i < (r + 1) * s.row_factor; ++i)
        down = down + dy[((outer * rows + i) * columns + j) * s.inner + inner] * share<T>(r, i, s.rows, s.row_factor);
      sum = sum + down * share<T>(c, j, s.columns, s.column_factor);
    }
    dx[t] = sum;
  }
}
template <class F>
void with_float_or_double(const Call& call, F&& f) {
  if (call.out[0]->numel() == 0) return;
  if (call.out[0]->dtype == float64) f(static_cast<double*>(nullptr));
  else f(static_cast<float*>(nullptr));
}
void run_enlarge(const Call& call) {
  with_float_or_double(call, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch(call.op.name, device_of(call.device), blocks_for(call.out[0]->numel()), enlarge_each<T>, ResizeShape(call.attrs, call.spec(0)), call.in[0].as<T>(),
           call.out_as<T>());
  });
}
void run_enlarge_gradient(const Call& call) {
  with_float_or_double(call, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch(call.op.name, device_of(call.device), blocks_for(call.out[0]->numel()), enlarge_gradient_each<T>, ResizeShape(call.attrs, *call.out[0]),
           call.in[0].as<T>(), call.out_as<T>());
  });
}

const PluginKernel kernels[] = {{"convolution", run_convolution},
                                {"convolution_input_gradient", run_input_gradient},
                                {"convolution_kernel_gradient", run_kernel_gradient},
                                {"max_pool", run_max},
                                {"max_pool_spread", run_max_spread},
                                {"max_pool_pick", run_max},
                                {"avg_pool", run_mean},
                                {"avg_pool_spread", run_mean_spread},
                                {"resize_bilinear", run_enlarge},
                                {"resize_bilinear_gradient", run_enlarge_gradient}};

}  // namespace

Kernels conv_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda
