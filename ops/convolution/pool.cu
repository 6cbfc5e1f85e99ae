// ops/convolution/pool.cu - pooling on CUDA. Where cuDNN is installed it computes maxima, means and the gradient of
// means; that of maxima goes to the first of equal ones, which cuDNN does not promise. In our kernels each thread
// computes one element of the output; gradients sum over the windows that cover it, in order and without atomics.
#include <iterator>

#include "ops/engine/teams.cuh"
#include "ops/convolution/windows.cuh"

namespace kassette::cuda {
namespace {

/// The point of the first maximum of a window; NaN is greater than all numbers.
template <class T>
KASSETTE_FN std::int64_t greatest(const Geometry& g, const T* x, std::int64_t image, std::int64_t point,
                                  std::int64_t channel) {
  std::int64_t best = -1;
  Wide<T> high = Wide<T>(0);
  g.each_under(point, [&](std::int64_t, std::int64_t at) {
    const Wide<T> v = load(x + g.x_at(image, at, channel));
    if (best >= 0 && !(v > high) && !(v != v && high == high)) return;
    best = at;
    high = v;
  });
  return best;
}
/// The element of `from` at the maximum of a window of x; `from` is x itself in maximum pooling.
template <class T>
struct Max {
  Geometry g;
  const T *x, *from;
  KASSETTE_FN Wide<T> operator()(const PixelIndex& p) const {
    return load(from + g.x_at(p.image, greatest(g, x, p.image, p.point, p.channel), p.channel));
  }
};
template <class T>
struct MaxGrad {
  Geometry g;
  const T *x, *dy;
  KASSETTE_FN Wide<T> operator()(const PixelIndex& p) const {
    Wide<T> sum = Wide<T>(0);
    g.each_over(p.point, [&](std::int64_t, std::int64_t at) {
      if (greatest(g, x, p.image, at, p.channel) == p.point) sum = sum + load(dy + g.y_at(p.image, at, p.channel));
    });
    return sum;
  }
};
template <class T>
struct Mean {
  Geometry g;
  const T* x;
  KASSETTE_FN Wide<T> operator()(const PixelIndex& p) const {
    Wide<T> sum = Wide<T>(0);
    g.each_under(p.point, [&](std::int64_t, std::int64_t at) { sum = sum + load(x + g.x_at(p.image, at, p.channel)); });
    return sum / static_cast<Wide<T>>(g.shown(p.point));
  }
};
template <class T>
struct MeanGrad {
  Geometry g;
  const T* dy;
  KASSETTE_FN Wide<T> operator()(const PixelIndex& p) const {
    Wide<T> sum = Wide<T>(0);
    g.each_over(p.point, [&](std::int64_t, std::int64_t at) {
      sum = sum + load(dy + g.y_at(p.image, at, p.channel)) / static_cast<Wide<T>>(g.shown(at));
    });
    return sum;
  }
};

/// Sets each of n elements to f(its place).
template <class T, class F>
__global__ void fill_each(F f, std::int64_t n, Divider by_points, T* to) {
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step())
    store(to + t, f(PixelIndex(t, by_points, f.g.by_in.channels, f.g.channels_first)));
}
/// Sets the elements of the output to F<T>{geometry, inputs...}(place), with the geometry between `windows` and
/// `results`.
template <template <class> class F, class... In>
void fill_output(const OpCall& call, const TensorSpec& windows, const TensorSpec& results, In... inputs) {
  with_floats(call, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    const Geometry g(ConvShape(call.attrs, windows, results));
    const std::int64_t n = call.out[0]->numel();
    launch(call.op.name, device_of(call.device), blocks_for(n), fill_each<T, F<T>>,
           F<T>{g, call.in[inputs].template as<T>()...}, n, (&results == call.out[0] ? g.by_out : g.by_in).points,
           call.out_as<T>());
  });
}

/// Pools input 0 by cuDNN. Returns false if that does not take it.
bool by_cudnn(const OpCall& call, CudnnOp op, const TensorSpec& windows, const TensorSpec& results) {
  if (call.n_in > 1 && op == CudnnOp::max_pool) return false;  // max_pool_take
  if (call.out[0]->numel() == 0) return true;
  const ConvShape s(call.attrs, windows, results);
  CudnnCall cudnn(call.op.name, device_of(call.device), op, cudnn_windows(s, call.out[0]->dtype));
  return cudnn && cudnn.run(call.in[0].data, nullptr, call.out[0]->data());
}

void run_max(const OpCall& call) {
  if (!by_cudnn(call, CudnnOp::max_pool, call.spec(0), *call.out[0]))
    fill_output<Max>(call, call.spec(0), *call.out[0], 0, call.n_in - 1);
}
void run_max_grad(const OpCall& call) { fill_output<MaxGrad>(call, call.spec(0), call.spec(1), 0, 1); }
void run_mean(const OpCall& call) {
  if (!by_cudnn(call, CudnnOp::mean_pool, call.spec(0), *call.out[0]))
    fill_output<Mean>(call, call.spec(0), *call.out[0], 0);
}
void run_mean_grad(const OpCall& call) {
  if (!by_cudnn(call, CudnnOp::mean_pool_gradient, *call.out[0], call.spec(0)))
    fill_output<MeanGrad>(call, *call.out[0], call.spec(0), 0);
}

const PluginKernel kernels[] = {{"max_pool", run_max},
                                {"max_pool_grad", run_max_grad},
                                {"max_pool_take", run_max},
                                {"avg_pool", run_mean},
                                {"avg_pool_grad", run_mean_grad}};

}  // namespace

Kernels pool_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda
