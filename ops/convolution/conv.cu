// ops/convolution/conv.cu - convolution on CUDA. cuDNN computes what it takes, where it is installed. Else, if results
// have many channels and sum many products, it is computed as matrix products (conv_panels.cu). For depthwise kernels
// and few channels one thread computes each result, in the order of the taps.
#include <algorithm>
#include <iterator>

#include "ops/convolution/conv_panels.cuh"
#include "ops/engine/teams.cuh"
#include "ops/convolution/windows.cuh"

namespace kassette::cuda {
namespace {

template <class T>
__global__ void convolve_each(Geometry g, const T* x, const T* w, T* y) {
  const std::int64_t n = g.batch * g.out_points() * g.c_out;
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const PixelIndex p(t, g.by_out.points, g.by_out.channels, g.channels_first);
    const std::int64_t own = g.by_multiplier(p.channel);  // the input channel, if depthwise
    Wide<T> sum = Wide<T>(0);
    g.each_under(p.point, [&](std::int64_t tap, std::int64_t at) {
      if (g.depthwise) {
        sum = sum + load(x + g.x_at(p.image, at, own)) * load(w + g.w_at(tap, 0, p.channel));
        return;
      }
      const T *from = x + g.x_at(p.image, at, 0), *by = w + g.w_at(tap, 0, p.channel);
      for (std::int64_t c = 0; c < g.c_in; ++c) sum = sum + load(from + c * g.x_step()) * load(by + c * g.c_out);
    });
    store(y + t, sum);
  }
}

template <class T>
__global__ void input_gradient_each(Geometry g, const T* dy, const T* w, T* dx) {
  const std::int64_t n = g.batch * g.in_points() * g.c_in, filters = g.depthwise ? g.by_multiplier.by : g.c_out;
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const PixelIndex p(t, g.by_in.points, g.by_in.channels, g.channels_first);
    const std::int64_t first = g.depthwise ? p.channel * filters : 0;
    Wide<T> sum = Wide<T>(0);
    g.each_over(p.point, [&](std::int64_t tap, std::int64_t at) {
      const T *from = dy + g.y_at(p.image, at, first), *by = w + g.w_at(tap, p.channel, first);
      for (std::int64_t f = 0; f < filters; ++f) sum = sum + load(from + f * g.y_step()) * load(by + f);
    });
    store(dx + t, sum);
  }
}

/// Steps through the points of the results of all images, and finds the point of x that a given tap reads for each.
class Cursor {
 public:
  KASSETTE_FN Cursor(const Geometry& g, std::int64_t tap, std::int64_t start) : g_(g) {
    for (int d = 2; d >= 0; --d) {
      shift_[d] = tap % g.window[d].size * g.window[d].dilation - g.before[d];
      tap /= g.window[d].size;
      const std::int64_t rest = g.by_out.axis[d](start);
      p_[d] = start - rest * g.out[d];
      start = rest;
    }
    image_ = start;
  }
  KASSETTE_FN void advance(std::int64_t by) {
    p_[2] += by;
    for (; p_[2] >= g_.out[2]; p_[2] -= g_.out[2]) {
      if (++p_[1] < g_.out[1]) continue;
      p_[1] = 0;
      if (++p_[0] < g_.out[0]) continue;
      p_[0] = 0;
      ++image_;
    }
  }
  KASSETTE_FN std::int64_t image() const { return image_; }
  KASSETTE_FN std::int64_t result() const { return (p_[0] * g_.out[1] + p_[1]) * g_.out[2] + p_[2]; }
  /// The point of x, or -1 if it is padding.
  KASSETTE_FN std::int64_t under() const {
    std::int64_t at = 0;
    for (int d = 0; d < 3; ++d) {
      const std::int64_t i = p_[d] * g_.window[d].stride.by + shift_[d];
      if (i < 0 || i >= g_.in[d]) return -1;
      at = at * g_.in[d] + i;
    }
    return at;
  }

 private:
  const Geometry& g_;
  std::int64_t image_, p_[3], shift_[3];
};

/// The sums of the kernel gradient over each of `parts` parts of all points, (part, weight). A team computes each sum.
/// If channels are last a team is one thread, and neighbouring threads read neighbouring channels; if they are first it
/// is a warp, whose threads read neighbouring points.
template <class Team, class T, class Out>
__global__ void kernel_gradient_parts(Geometry g, Divider by_weights, Divider by_parts, const T* x, const T* dy,
                                      Out* to) {
  const std::int64_t points = g.batch * g.out_points();
  for (std::int64_t o = Team::first(); o < by_weights.by * by_parts.by; o += Team::step()) {
    const std::int64_t part = by_weights(o), weight = o - part * by_weights.by, row = g.by_out.channels(weight),
                       f = weight - row * g.c_out, tap = g.depthwise ? row : g.by_in.channels(row),
                       c = g.depthwise ? g.by_multiplier(f) : row - tap * g.c_in;
    const std::int64_t first = by_parts(points * part) + Team::lane(), last = by_parts(points * (part + 1));
    Wide<T> sum = Wide<T>(0);
    Cursor cursor(g, tap, first);
    for (std::int64_t p = first; p < last; p += Team::kSize, cursor.advance(Team::kSize)) {
      const std::int64_t at = cursor.under();
      if (at >= 0)
        sum = sum + load(x + g.x_at(cursor.image(), at, c)) * load(dy + g.y_at(cursor.image(), cursor.result(), f));
    }
    sum = Team::reduce(sum, Sum<Wide<T>>{});
    if (Team::lane() == 0) store(to + o, sum);
  }
}
template <class T>
__global__ void add_parts(std::int64_t n, std::int64_t parts, const Wide<T>* partial, T* to) {
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    Wide<T> sum = partial[t];
    for (std::int64_t part = 1; part < parts; ++part) sum = sum + partial[part * n + t];
    store(to + t, sum);
  }
}
template <class Team, class T>
void kernel_gradient(const OpCall& call, const ConvShape& s) {
  constexpr std::int64_t kThreadsWanted = 1 << 18;  // as many as the largest devices run at once
  constexpr std::int64_t kGrain = 32;               // points for a thread, unless there are fewer
  const std::int64_t n = call.out[0]->numel(), points = s.batch * s.out_size();
  const std::int64_t parts =
      std::clamp<std::int64_t>(kThreadsWanted / (n * Team::kSize), 1, ceil_div(points, kGrain * Team::kSize));
  CudaDevice& device = device_of(call.device);
  const DeviceScratch partial(device, parts > 1 ? parts * n * static_cast<std::int64_t>(sizeof(Wide<T>)) : 0);
  auto sum = [&](auto* to) {
    launch(call.op.name, device, blocks_for(parts * n * Team::kSize),
           kernel_gradient_parts<Team, T, std::remove_pointer_t<decltype(to)>>, Geometry(s), Divider(n), Divider(parts),
           call.in[0].as<T>(), call.in[1].as<T>(), to);
  };
  if (parts == 1) return sum(call.out_as<T>());
  sum(static_cast<Wide<T>*>(partial.get()));
  launch(call.op.name, device, blocks_for(n), add_parts<T>, n, parts, static_cast<const Wide<T>*>(partial.get()),
         call.out_as<T>());
}

// Note [Zero cotangents]: the elements that are NaN are computed again, without the terms whose cotangent is 0.
/// A sum of products of which one factor is a cotangent.
template <bool kA>
struct TermsLeft {
  double sum = 0;
  __device__ void add(double a, double b) { sum += kA ? m::mul_no_nan(a, b) : m::mul_no_nan(b, a); }
};
template <bool kA, class T>
__global__ void convolve_again(Geometry g, const T* x, const T* w, T* y) {
  const std::int64_t n = g.batch * g.out_points() * g.c_out;
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    if (const Wide<T> have = load(y + t); have == have) continue;
    const PixelIndex p(t, g.by_out.points, g.by_out.channels, g.channels_first);
    const std::int64_t first = g.depthwise ? g.by_multiplier(p.channel) : 0, last = g.depthwise ? first + 1 : g.c_in;
    TermsLeft<kA> left;
    g.each_under(p.point, [&](std::int64_t tap, std::int64_t at) {
      for (std::int64_t c = first; c < last; ++c)
        left.add(load(x + g.x_at(p.image, at, c)), load(w + g.w_at(tap, c, p.channel)));
    });
    store(y + t, static_cast<Wide<T>>(left.sum));
  }
}
template <bool kA, class T>
__global__ void input_gradient_again(Geometry g, const T* dy, const T* w, T* dx) {
  const std::int64_t n = g.batch * g.in_points() * g.c_in, filters = g.depthwise ? g.by_multiplier.by : g.c_out;
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    if (const Wide<T> have = load(dx + t); have == have) continue;
    const PixelIndex p(t, g.by_in.points, g.by_in.channels, g.channels_first);
    const std::int64_t first = g.depthwise ? p.channel * filters : 0;
    TermsLeft<kA> left;
    g.each_over(p.point, [&](std::int64_t tap, std::int64_t at) {
      for (std::int64_t f = first; f < first + filters; ++f)
        left.add(load(dy + g.y_at(p.image, at, f)), load(w + g.w_at(tap, p.channel, f)));
    });
    store(dx + t, static_cast<Wide<T>>(left.sum));
  }
}
template <bool kA, class T>
__global__ void kernel_gradient_again(Geometry g, std::int64_t weights, const T* x, const T* dy, T* dw) {
  const std::int64_t points = g.batch * g.out_points();
  for (std::int64_t weight = Thread::first(); weight < weights; weight += Thread::step()) {
    if (const Wide<T> have = load(dw + weight); have == have) continue;
    const std::int64_t row = g.by_out.channels(weight), f = weight - row * g.c_out,
                       tap = g.depthwise ? row : g.by_in.channels(row),
                       c = g.depthwise ? g.by_multiplier(f) : row - tap * g.c_in;
    TermsLeft<kA> left;
    Cursor cursor(g, tap, 0);
    for (std::int64_t p = 0; p < points; ++p, cursor.advance(1)) {
      const std::int64_t at = cursor.under();
      if (at >= 0)
        left.add(load(x + g.x_at(cursor.image(), at, c)), load(dy + g.y_at(cursor.image(), cursor.result(), f)));
    }
    store(dw + weight, static_cast<Wide<T>>(left.sum));
  }
}
/// Calls f(std::true_type or std::false_type, null pointer to the element type) if a factor is a cotangent: true_type
/// if it is the first.
template <class F>
void if_cotangent(const OpCall& call, F f) {
  const Cotangent which = form_of(call.attrs).cotangent;
  if (which == Cotangent::neither) return;
  with_floats(call, [&](auto* p) {
    if (which == Cotangent::a) f(std::true_type(), p);
    else f(std::false_type(), p);
  });
}

/// Copies a kernel from our order, (taps, input channels, output channels), to that of CudnnCall::run(), or back.
void turn_kernel(const OpCall& call, const ConvShape& s, const void* from, void* to, bool back) {
  const std::int64_t taps = s.taps(), c_in = s.depthwise ? 1 : s.c_in;
  struct Axis {
    std::int64_t size, ours, theirs;
  } tap{taps, c_in * s.c_out, s.channels_first ? 1 : c_in}, in{c_in, s.c_out, s.channels_first ? taps : 1},
      out{s.c_out, 1, taps * c_in};
  Strided layout;
  // By descending strides of the target.
  const Axis* axes[] = {back ? &tap : &out, back || s.channels_first ? &in : &tap,
                        back               ? &out
                        : s.channels_first ? &tap
                                           : &in};
  for (const Axis* a : axes)
    if (a->size > 1) layout.push(a->size, back ? a->theirs : a->ours, back ? a->ours : a->theirs);
  copy_strided(call.op.name, device_of(call.device), layout, from, to, call.out[0]->dtype.size());
}
/// Computes a convolution or one of its gradients by cuDNN. Returns false if that does not take it. Depthwise kernels
/// are left to ours unless they are of a half type, as PyTorch does: grouped convolution is made for larger groups.
bool by_cudnn(const OpCall& call, const ConvShape& s, CudnnOp op) {
  const DeviceConvLimits& limits = *host_services().convolution;
  const DType dtype = call.out[0]->dtype;
  if (limits.way != DeviceConvLimits::automatic || (s.depthwise && dtype.size() != 2)) return false;
  CudaDevice& device = device_of(call.device);
  CudnnCall cudnn(call.op.name, device, op, cudnn_windows(s, dtype), limits.workspace);
  if (!cudnn) return false;
  const std::int64_t weights = s.taps() * (s.depthwise ? 1 : s.c_in) * s.c_out;
  const DeviceScratch kernel(device, weights * dtype.size());
  if (op != CudnnOp::kernel_gradient) {
    turn_kernel(call, s, call.in[1].data, kernel.get(), /*back=*/false);
    return cudnn.run(call.in[0].data, kernel.get(), call.out[0]->data());
  }
  if (!cudnn.run(call.in[0].data, call.in[1].data, kernel.get())) return false;
  turn_kernel(call, s, kernel.get(), call.out[0]->data(), /*back=*/true);
  return true;
}

/// True if there is nothing to sum, so that the result is empty or, set here, zeros.
bool nothing(const OpCall& call) {
  const TensorDesc& out = *call.out[0];
  if (out.numel() == 0) return true;
  if (call.spec(0).numel() > 0 && call.spec(1).numel() > 0) return false;
  device_of(call.device).zero(out.data(), out.bytes(), call.op.name);
  return true;
}
void run_convolution(const OpCall& call) {
  if (nothing(call)) return;
  const ConvShape s(call.attrs, call.spec(0), call.spec(1), *call.out[0]);
  auto launch_each = [&](auto* p, auto kernel) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch(call.op.name, device_of(call.device), blocks_for(call.out[0]->numel()), kernel, Geometry(s),
           call.in[0].as<T>(), call.in[1].as<T>(), call.out_as<T>());
  };
  const bool done = by_cudnn(call, s, CudnnOp::convolution);
  if (!done && by_panels(s, s.taps() * s.c_in, s.c_out)) convolve_by_panels(call, s);
  else if (!done)
    with_floats(call, [&](auto* p) { launch_each(p, convolve_each<std::remove_pointer_t<decltype(p)>>); });
  if_cotangent(call, [&](auto a, auto* p) {
    launch_each(p, convolve_again<decltype(a)::value, std::remove_pointer_t<decltype(p)>>);
  });
}
void run_input_gradient(const OpCall& call) {
  if (nothing(call)) return;
  const ConvShape s(call.attrs, *call.out[0], call.spec(1), call.spec(0));
  auto launch_each = [&](auto* p, auto kernel) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch(call.op.name, device_of(call.device), blocks_for(call.out[0]->numel()), kernel, Geometry(s),
           call.in[0].as<T>(), call.in[1].as<T>(), call.out_as<T>());
  };
  const bool done = by_cudnn(call, s, CudnnOp::input_gradient);
  if (!done && by_panels(s, s.taps() * s.c_out, s.c_in)) input_gradient_by_panels(call, s);
  else if (!done)
    with_floats(call, [&](auto* p) { launch_each(p, input_gradient_each<std::remove_pointer_t<decltype(p)>>); });
  if_cotangent(call, [&](auto a, auto* p) {
    launch_each(p, input_gradient_again<decltype(a)::value, std::remove_pointer_t<decltype(p)>>);
  });
}
void run_kernel_gradient(const OpCall& call) {
  if (nothing(call)) return;
  const ConvShape s(call.attrs, call.spec(0), *call.out[0], call.spec(1));
  const bool done = by_cudnn(call, s, CudnnOp::kernel_gradient);
  if (!done && by_panels(s, s.taps() * s.c_in, s.c_out)) {
    kernel_gradient_by_panels(call, s);
  } else if (!done) {
    with_floats(call, [&](auto* p) {
      using T = std::remove_pointer_t<decltype(p)>;
      if (s.channels_first) kernel_gradient<Warp, T>(call, s);
      else kernel_gradient<Thread, T>(call, s);
    });
  }
  if_cotangent(call, [&](auto a, auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    const std::int64_t n = call.out[0]->numel();
    launch(call.op.name, device_of(call.device), blocks_for(n), kernel_gradient_again<decltype(a)::value, T>,
           Geometry(s), n, call.in[0].as<T>(), call.in[1].as<T>(), call.out_as<T>());
  });
}

const PluginKernel kernels[] = {{"convolution", run_convolution},
                                {"convolution_input_gradient", run_input_gradient},
                                {"convolution_kernel_gradient", run_kernel_gradient}};

}  // namespace

Kernels conv_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda
