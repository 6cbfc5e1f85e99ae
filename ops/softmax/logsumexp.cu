// ops/softmax/logsumexp.cu - logsumexp and its gradient on CUDA: the largest, and the sum of exponentials below it.
#include <iterator>

#include "ops/reduce/reduce_groups.cuh"

namespace kassette::cuda {
namespace {

template <class T>
struct LogSum {
  T* out;
  __device__ void operator()(std::int64_t o, const Exponentials<Wide<T>>& e) const {
    store(out + o, m::log(e.sum) + e.shift());
  }
};
void run_logsumexp(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  for_dtype<Domain::floats>(x.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    using C = Wide<T>;
    reduce_groups<Exponentials<C>>(call, Groups(x, call.attrs.as<SoftmaxAttrs>().axes.mask(x.rank)), SumExp<C>(),
                                   Plain<T>{{call.in[0].as<T>()}}, LogSum<T>{call.out_as<T>()});
  });
}

/// Stores the Exponentials of each group.
template <class C>
struct Keep {
  Exponentials<C>* out;
  __device__ void operator()(std::int64_t o, const Exponentials<C>& e) const { out[o] = e; }
};
/// dx = dy * exp(x - max) / sum, and 0 where all elements are -inf. Operand 1 is the group.
template <class T>
struct LogSumGrad {
  const T *dy, *x;
  const Exponentials<Wide<T>>* of;
  __device__ Wide<T> operator()(const Operands&, const std::int64_t (&at)[2], std::int64_t) const {
    using C = Wide<T>;
    const Exponentials<C>& e = of[at[1]];
    const C d = load(dy + at[1]), factor = e.sum == C(0) || d == C(0) ? C(0) : d / e.sum;
    return factor == C(0) ? C(0) : m::exp(load(x + at[0]) - e.shift()) * factor;
  }
};
void run_logsumexp_grad(const OpCall& call) {
  const TensorSpec& x = call.spec(1);
  if (x.numel() == 0) return;
  const unsigned mask = call.attrs.as<SoftmaxAttrs>().axes.mask(x.rank);
  const Groups g(x, mask);
  for_dtype<Domain::floats>(x.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    using C = Wide<T>;
    const T* in = call.in[1].as<T>();
    DeviceScratch held(device_of(call.device), g.kept.n * static_cast<std::int64_t>(sizeof(Exponentials<C>)));
    auto* of = static_cast<Exponentials<C>*>(held.get());
    reduce_groups<Exponentials<C>>(call, g, SumExp<C>(), Plain<T>{{in}}, Keep<C>{of});
    launch_store<2, T>(call, LogSumGrad<T>{call.in[0].as<T>(), in, of}, operands_by_group(call, x, mask));
  });
}

const PluginKernel kernels[] = {{"logsumexp", run_logsumexp}, {"logsumexp_grad", run_logsumexp_grad}};

}  // namespace

Kernels logsumexp_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda
