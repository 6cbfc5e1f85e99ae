// ops/reduce/variance.cu - var, std, and the centering that their gradients use, on CUDA.
#include <iterator>

#include "ops/reduce/reduce_groups.cuh"

namespace kassette::cuda {
namespace {

template <class T, bool kRoot>
struct Spreading {
  T* out;
  __device__ void operator()(std::int64_t o, const Moments<Wide<T>>& m) const {
    const Wide<T> v = m.squares / m.n;
    store(out + o, kRoot ? m::sqrt(v) : v);
  }
};
template <bool kRoot>
void run_var(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  for_dtype<Domain::floats>(x.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    using C = Wide<T>;
    reduce_groups<Moments<C>>(call, Groups(x, call.attrs.as<ReduceAttrs>().axes.mask(x.rank)), Spread<C>(),
                              Plain<T>{{call.in[0].as<T>()}}, Spreading<T, kRoot>{call.out_as<T>()});
  });
}

/// Stores the mean of each group, and what its rounding took.
template <class C>
struct KeepMean {
  C *mean, *rest;
  __device__ void operator()(std::int64_t o, const Moments<C>& m) const {
    const ops::RoundedMean<C> r = m.mean();
    mean[o] = r.mean;
    rest[o] = r.rest;
  }
};
/// (x - mean) - rest. Operand 1 is the group.
template <class T>
struct Centered {
  const T* x;
  const Wide<T>*mean, *rest;
  __device__ Wide<T> operator()(const Operands&, const std::int64_t (&at)[2], std::int64_t) const {
    return (load(x + at[0]) - mean[at[1]]) - rest[at[1]];
  }
};
void run_center(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  if (x.numel() == 0) return;
  const unsigned mask = call.attrs.as<ReduceAttrs>().axes.mask(x.rank);
  const Groups g(x, mask);
  for_dtype<Domain::floats>(x.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    using C = Wide<T>;
    const T* in = call.in[0].as<T>();
    DeviceScratch held(device_of(call.device), 2 * g.kept.n * static_cast<std::int64_t>(sizeof(C)));
    C *mean = static_cast<C*>(held.get()), *rest = mean + g.kept.n;
    reduce_groups<Moments<C>>(call, g, Spread<C>(), Plain<T>{{in}}, KeepMean<C>{mean, rest});
    launch_store<2, T>(call, Centered<T>{in, mean, rest}, operands_by_group(call, x, mask));
  });
}

const PluginKernel kernels[] = {{"var", run_var<false>}, {"std", run_var<true>}, {"center", run_center}};

}  // namespace

Kernels variance_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda
