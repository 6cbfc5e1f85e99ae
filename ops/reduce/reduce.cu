// ops/reduce/reduce.cu - sum, prod, mean, max, min, their gradients' extremum_mask, and sum_to_like on CUDA.
#include <iterator>
#include <limits>

#include "ops/reduce/reduce_groups.cuh"

namespace kassette::cuda {
namespace {

template <class C>
struct Prod {
  C identity = C(1);
  __device__ C operator()(C a, C b) const { return static_cast<C>(a * b); }
};
template <class C>
struct Min {
  C identity =
      std::numeric_limits<C>::has_infinity ? std::numeric_limits<C>::infinity() : std::numeric_limits<C>::max();
  __device__ C operator()(C a, C b) const { return a != a ? a : b < a || b != b ? b : a; }
};

template <template <class> class Combine, bool kMean = false>
void run(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  const Groups g(x, call.attrs.as<ReduceAttrs>().axes.mask(x.rank));
  for_dtype<kMean ? Domain::floats : Domain::numbers>(x.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    using C = Wide<T>;
    const C divisor = kMean ? static_cast<C>(g.along.n) : C(1);
    reduce_groups<C>(call, g, Combine<C>(), Plain<T>{{call.in[0].as<T>()}}, Divided<T>{call.out_as<T>(), divisor});
  });
}

void run_sum_to_like(const OpCall& call) {
  const TensorSpec &x = call.spec(0), &like = call.spec(1);
  if (x.numel() == like.numel()) {
    host_services().share_input(call, 0);
    return;
  }
  const int lead = x.rank - like.rank;
  unsigned mask = (1u << lead) - 1;
  for (int i = 0; i < like.rank; ++i)
    if (like.dims[i] != x.dims[lead + i]) mask |= 1u << (lead + i);
  host_services().allocate_output(*call.out[0], call.device);
  for_dtype<Domain::numbers>(x.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    reduce_groups<Wide<T>>(call, Groups(x, mask), Sum<Wide<T>>(), Plain<T>{{call.in[0].as<T>()}},
                           Divided<T>{call.out_as<T>(), Wide<T>(1)});
  });
}

// ---- extremum_mask: 1 / k for the k elements equal to the group's extreme, else 0; NaN if that is NaN ---------------
template <class U>
struct Same {
  using T = U;
  static constexpr int kStreams = 1;
  const T* stream[1];
  const T* y;
  __device__ std::int64_t operator()(std::int64_t o, std::int64_t, const T& v) const { return load(&v) == load(y + o); }
};
struct Counted {
  std::int64_t* out;
  __device__ void operator()(std::int64_t o, std::int64_t v) const { out[o] = v; }
};
template <class T>
struct Share {
  const T *x, *y;
  const std::int64_t* count;
  __device__ double operator()(const Operands&, const std::int64_t (&at)[2], std::int64_t) const {
    const double same = load(x + at[0]) == load(y + at[1]);
    return same / static_cast<double>(count[at[1]]);
  }
};
void run_extremum_mask(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  if (x.numel() == 0) return;
  const unsigned mask = call.attrs.as<ReduceAttrs>().axes.mask(x.rank);
  const Groups g(x, mask);
  DeviceScratch held(device_of(call.device), g.kept.n * 8);
  std::int64_t* count = static_cast<std::int64_t*>(held.get());
  for_dtype<Domain::numbers>(x.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    const T *in = call.in[0].as<T>(), *y = call.in[1].as<T>();
    reduce_groups<std::int64_t>(call, g, Sum<std::int64_t>(), Same<T>{{in}, y}, Counted{count});
    launch_store<2, T>(call, Share<T>{in, y, count}, operands_by_group(call, x, mask));
  });
}

const PluginKernel kernels[] = {{"sum", run<Sum>},
                                {"prod", run<Prod>},
                                {"max", run<Max>},
                                {"min", run<Min>},
                                {"mean", run<Sum, true>},
                                {"extremum_mask", run_extremum_mask},
                                {"sum_to_like", run_sum_to_like}};

}  // namespace

Kernels reduce_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda
