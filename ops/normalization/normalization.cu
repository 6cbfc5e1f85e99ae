// ops/normalization/normalization.cu - batch normalisation on CUDA, forward and backward. Formulae as in
// normalization.cpp.
#include <cmath>
#include <iterator>

#include "ops/reduce/reduce_groups.cuh"
#include "ops/normalization/normalization_kernels.h"

namespace kassette::cuda {
namespace {

template <class C>
struct MeanAndVariance {
  C *mean, *variance, *rest;
  __device__ void operator()(std::int64_t o, const Moments<C>& m) const {
    const ops::RoundedMean<C> r = m.mean();
    mean[o] = r.mean;
    rest[o] = r.rest;
    variance[o] = m.squares / m.n;
  }
};
/// Computes for each channel gamma / sqrt(variance + epsilon), and beta without the rest of the mean. Operands 0 and 1
/// are gamma and beta, null if the call has none.
template <class T>
struct Factors {
  const Wide<T>*variance, *rest;
  double epsilon;
  Wide<T>*factor, *shift;
  __device__ void operator()(const Operands& o, const std::int64_t (&at)[2], std::int64_t c) const {
    const double gamma = o.in[0] ? static_cast<double>(load(o.operand<T>(0) + at[0])) : 1;
    const double by = gamma / m::sqrt(static_cast<double>(variance[c]) + epsilon),
                 beta = o.in[1] ? static_cast<double>(load(o.operand<T>(1) + at[1])) : 0;
    factor[c] = static_cast<Wide<T>>(by);
    shift[c] = static_cast<Wide<T>>(beta - static_cast<double>(rest[c]) * by);
  }
};
/// y = (x - mean) * factor + shift. The offset of operand 1 is the channel.
template <class T>
struct Normalize {
  const T* x;
  const Wide<T>*mean, *factor, *shift;
  __device__ Wide<T> operator()(const Operands&, const std::int64_t (&at)[2], std::int64_t) const {
    return (load(x + at[0]) - mean[at[1]]) * factor[at[1]] + shift[at[1]];
  }
};

void run_normalize(const OpCall& call) {
  const TensorSpec &x = call.spec(0), &kept = *call.out[1];
  const unsigned mask = call.attrs.as<NormalizeAttrs>().axes.mask(x.rank);
  const Groups g(x, mask);
  const int gamma = gamma_at(call.attrs, 1), beta = beta_at(call.attrs, 1);
  for_dtype<Domain::floats>(x.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    using C = Wide<T>;
    const T* in = call.in[0].as<T>();
    C *mean = call.out_as<C>(1), *variance = call.out_as<C>(2), *rest = call.out_as<C>(3);
    reduce_groups<Moments<C>>(call, g, Spread<C>(), Plain<T>{{in}}, MeanAndVariance<C>{mean, variance, rest});
    DeviceScratch held(device_of(call.device), 2 * kept.numel() * static_cast<std::int64_t>(sizeof(C)));
    C *factor = static_cast<C*>(held.get()), *shift = factor + kept.numel();
    Operands o = broadcast<2>({gamma > 0 ? &call.spec(gamma) : &kept, beta > 0 ? &call.spec(beta) : &kept}, kept);
    if (gamma > 0) o.in[0] = call.in[gamma].data;
    if (beta > 0) o.in[1] = call.in[beta].data;
    launch_each<2>(call, Factors<T>{variance, rest, call.attrs.as<NormalizeAttrs>().epsilon, factor, shift}, o);
    launch_store<2, T>(call, Normalize<T>{in, mean, factor, shift}, operands_by_group(call, x, mask));
  });
}

// ---- backward -------------------------------------------------------------------------------------------------------
struct Two {
  double a, b;
};
struct SumTwo {
  Two identity{0, 0};
  __device__ Two operator()(Two a, Two b) const { return {a.a + b.a, a.b + b.b}; }
};
/// The map to dy and dy * (x - mean), for their sums.
template <class U>
struct Products {
  using T = U;
  static constexpr int kStreams = 2;
  const T* stream[2];  // dy and x
  const Wide<T>*mean, *rest;
  __device__ Two operator()(std::int64_t o, std::int64_t, const T& dy, const T& x) const {
    const Wide<T> d = load(&dy);
    return {static_cast<double>(d), static_cast<double>(m::mul_no_nan(d, (load(&x) - mean[o]) - rest[o]))};
  }
};
/// Computes the gradients of gamma and beta, and the factors of dx, from the sums. `gamma` has one number per channel,
/// or is null.
template <class T>
struct Slopes {
  const T* gamma;
  const Wide<T>* variance;
  double epsilon, count;
  T *dgamma, *dbeta;
  Wide<T>*a, *b, *c;
  __device__ void operator()(std::int64_t o, Two sums) const {
    const double r = 1 / m::sqrt(static_cast<double>(variance[o]) + epsilon),
                 g = gamma ? static_cast<double>(load(gamma + o)) * r : r;
    store(dgamma + o, static_cast<Wide<T>>(m::mul_no_nan(sums.b, r)));
    store(dbeta + o, static_cast<Wide<T>>(sums.a));
    a[o] = static_cast<Wide<T>>(g);
    b[o] = static_cast<Wide<T>>(m::mul_no_nan(sums.b / count, -g * r * r));
    c[o] = static_cast<Wide<T>>(m::mul_no_nan(sums.a / count, -g));
  }
};
/// dx = dy * a + (x - mean) * b + c. The offset of operand 1 is the channel.
template <class T>
struct NormalizeGrad {
  const T *dy, *x;
  const Wide<T>*mean, *rest, *a, *b, *c;
  __device__ Wide<T> operator()(const Operands&, const std::int64_t (&at)[2], std::int64_t) const {
    const std::int64_t o = at[1];
    return m::mul_no_nan(load(dy + at[0]), a[o]) + m::mul_no_nan(b[o], (load(x + at[0]) - mean[o]) - rest[o]) + c[o];
  }
};
template <class T>
struct Repeat {
  __device__ void operator()(const Operands& o, const std::int64_t (&at)[1], std::int64_t i) const {
    o.result<T>()[i] = o.operand<T>(0)[at[0]];
  }
};

void run_normalize_grad(const OpCall& call) {
  const TensorSpec &x = call.spec(1), &kept = call.spec(2);
  CudaDevice& device = device_of(call.device);
  if (x.numel() == 0) {
    for (int k : {1, 2}) device.zero(call.out[k]->data(), call.out[k]->bytes(), call.op.name);
    return;
  }
  const unsigned mask = call.attrs.as<NormalizeAttrs>().axes.mask(x.rank);
  const Groups g(x, mask);
  const std::int64_t channels = kept.numel();
  for_dtype<Domain::floats>(x.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    using C = Wide<T>;
    const T *dy = call.in[0].as<T>(), *in = call.in[1].as<T>(), *gamma = nullptr;
    DeviceScratch wide(device,
                       call.attrs.as<NormalizeAttrs>().gamma ? channels * static_cast<std::int64_t>(sizeof(T)) : 0);
    if (call.attrs.as<NormalizeAttrs>().gamma) {
      Operands o = broadcast<1>({&call.spec(5)}, kept);
      o.in[0] = call.in[5].data;
      o.out = wide.get();
      launch_each<1>(call, Repeat<T>(), o);
      gamma = static_cast<const T*>(wide.get());
    }
    DeviceScratch held(device, 3 * channels * static_cast<std::int64_t>(sizeof(C)));
    C *a = static_cast<C*>(held.get()), *b = a + channels, *c = b + channels;
    const C *mean = call.in[2].as<C>(), *variance = call.in[3].as<C>(), *rest = call.in[4].as<C>();
    reduce_groups<Two>(call, g, SumTwo(), Products<T>{{dy, in}, mean, rest},
                       Slopes<T>{gamma, variance, call.attrs.as<NormalizeAttrs>().epsilon,
                                 static_cast<double>(g.along.n), call.out_as<T>(1), call.out_as<T>(2), a, b, c});
    launch_store<2, T>(call, NormalizeGrad<T>{dy, in, mean, rest, a, b, c}, operands_by_group(call, x, mask));
  });
}

// ---- (x - mean) * scale + shift -------------------------------------------------------------------------------------
template <class T, int kArity>
struct CenterScale {
  __device__ Wide<T> operator()(const Operands& o, const std::int64_t (&at)[kArity], std::int64_t) const {
    using C = Wide<T>;
    C v = (load(o.operand<T>(0) + at[0]) - o.operand<C>(1)[at[1]]) * o.operand<C>(2)[at[2]];
    if constexpr (kArity > 3) v = v + o.operand<C>(3)[at[3]];
    return v;
  }
};
void run_center_scale(const OpCall& call) {
  for_dtype<Domain::floats>(call.spec(0).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    if (call.n_in > 3) launch_store<4, T>(call, CenterScale<T, 4>());
    else launch_store<3, T>(call, CenterScale<T, 3>());
  });
}

const PluginKernel kernels[] = {{"normalize_batch_in_training", run_normalize},
                                {"normalize_batch_in_training_grad", run_normalize_grad},
                                {"batch_normalization", run_center_scale}};

}  // namespace

Kernels normalization_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda
