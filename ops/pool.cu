// ops/pool.cu - pooling on CUDA: a thread for each result, which sums over the windows that show it in their order: no atomics.
#include <iterator>

#include "ops/teams.cuh"
#include "ops/windows.cuh"

namespace kassette::cuda {
namespace {

/// The point of the first of the greatest elements of a window; NaN is greater than all.
template <class T>
KASSETTE_FN std::int64_t greatest(const Geometry& g, const T* x, std::int64_t image, std::int64_t point, std::int64_t channel) {
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
template <class T>
__global__ void max_each(Geometry g, const T* x, const T* from, T* y) {
  const std::int64_t n = g.batch * g.out_points() * g.c_in;
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const Place p(t, g.out_points(), g.c_in, g.channels_first);
    y[t] = from[g.x_at(p.image, greatest(g, x, p.image, p.point, p.channel), p.channel)];
  }
}
template <class T>
__global__ void max_spread_each(Geometry g, const T* x, const T* dy, T* dx) {
  const std::int64_t n = g.batch * g.in_points() * g.c_in;
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const Place p(t, g.in_points(), g.c_in, g.channels_first);
    Wide<T> sum = Wide<T>(0);
    g.each_over(p.point, [&](std::int64_t, std::int64_t at) {
      if (greatest(g, x, p.image, at, p.channel) == p.point) sum = sum + load(dy + g.y_at(p.image, at, p.channel));
    });
    store(dx + t, sum);
  }
}
template <class T>
__global__ void mean_each(Geometry g, const T* x, T* y) {
  const std::int64_t n = g.batch * g.out_points() * g.c_in;
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const Place p(t, g.out_points(), g.c_in, g.channels_first);
    Wide<T> sum = Wide<T>(0);
    g.each_under(p.point, [&](std::int64_t, std::int64_t at) { sum = sum + load(x + g.x_at(p.image, at, p.channel)); });
    store(y + t, sum / static_cast<Wide<T>>(g.shown(p.point)));
  }
}
template <class T>
__global__ void mean_spread_each(Geometry g, const T* dy, T* dx) {
  const std::int64_t n = g.batch * g.in_points() * g.c_in;
  for (std::int64_t t = Thread::first(); t < n; t += Thread::step()) {
    const Place p(t, g.in_points(), g.c_in, g.channels_first);
    Wide<T> sum = Wide<T>(0);
    g.each_over(p.point, [&](std::int64_t, std::int64_t at) {
      sum = sum + load(dy + g.y_at(p.image, at, p.channel)) / static_cast<Wide<T>>(g.shown(at));
    });
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

const PluginKernel kernels[] = {{"max_pool", run_max},
                                {"max_pool_spread", run_max_spread},
                                {"max_pool_pick", run_max},
                                {"avg_pool", run_mean},
                                {"avg_pool_spread", run_mean_spread}};

}  // namespace

Kernels pool_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda
