// ops/reduce/reduce.cu - reductions over axes on CUDA: sum, prod, mean, max, min, var, std, logsumexp and what their
// gradients use, any, all, argmax, argmin, in_top_k, ties, and sum_to_like.
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

// ---- var, std -------------------------------------------------------------------------------------------------------
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
  T* out;
  __device__ void operator()(const Operands&, const std::int64_t (&at)[2], std::int64_t i) const {
    store(out + i, (load(x + at[0]) - mean[at[1]]) - rest[at[1]]);
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
    launch_each<2>(call, Centered<T>{in, mean, rest, call.out_as<T>()}, operands_by_group(x, mask));
  });
}

// ---- logsumexp: the largest, and the sum of exponentials below it ---------------------------------------------------
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
  T* out;
  __device__ void operator()(const Operands&, const std::int64_t (&at)[2], std::int64_t i) const {
    using C = Wide<T>;
    const Exponentials<C>& e = of[at[1]];
    const C d = load(dy + at[1]), factor = e.sum == C(0) || d == C(0) ? C(0) : d / e.sum;
    store(out + i, factor == C(0) ? C(0) : m::exp(load(x + at[0]) - e.shift()) * factor);
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
    launch_each<2>(call, LogSumGrad<T>{call.in[0].as<T>(), in, of, call.out_as<T>()}, operands_by_group(x, mask));
  });
}

// ---- any, all -------------------------------------------------------------------------------------------------------
template <class U>
struct Truth {
  using T = U;
  static constexpr int kStreams = 1;
  const T* stream[1];
  __device__ int operator()(std::int64_t, std::int64_t, const T& v) const { return load(&v) != Wide<T>(0); }
};
struct Or {
  int identity = 0;
  __device__ int operator()(int a, int b) const { return a | b; }
};
struct And {
  int identity = 1;
  __device__ int operator()(int a, int b) const { return a & b; }
};
struct AsBool {
  bool* out;
  __device__ void operator()(std::int64_t o, int v) const { out[o] = v != 0; }
};
template <class Combine>
void run_logical(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  for_dtype<Domain::anything>(x.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    reduce_groups<int>(call, Groups(x, call.attrs.as<ReduceAttrs>().axes.mask(x.rank)), Combine(),
                       Truth<T>{{call.in[0].as<T>()}}, AsBool{call.out_as<bool>()});
  });
}

// ---- argmax, argmin: the extreme and its first index ----------------------------------------------------------------
template <class C>
struct ExtremeAt {
  C value;
  std::int64_t at;  // -1: no element yet
};
template <class C, bool kMax>
struct Best {
  ExtremeAt<C> identity{C(), -1};
  __device__ bool better(C a, C b) const { return kMax ? a > b : a < b; }
  __device__ ExtremeAt<C> operator()(ExtremeAt<C> a, ExtremeAt<C> b) const {
    if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
    const bool nan_a = a.value != a.value, nan_b = b.value != b.value;
    if (nan_a != nan_b) return nan_a ? a : b;
    if (!nan_a && better(a.value, b.value)) return a;
    if (!nan_a && better(b.value, a.value)) return b;
    return a.at < b.at ? a : b;
  }
};
template <class U>
struct Placed {
  using T = U;
  static constexpr int kStreams = 1;
  const T* stream[1];
  __device__ ExtremeAt<Wide<T>> operator()(std::int64_t, std::int64_t i, const T& v) const { return {load(&v), i}; }
};
template <class C>
struct Where {
  std::int64_t* out;
  __device__ void operator()(std::int64_t o, ExtremeAt<C> v) const { out[o] = v.at; }
};
template <bool kMax>
void run_arg(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  for_dtype<Domain::anything>(x.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    using C = Wide<T>;
    reduce_groups<ExtremeAt<C>>(call, Groups(x, call.attrs.as<ReduceAttrs>().axes.mask(x.rank)), Best<C, kMax>(),
                                Placed<T>{{call.in[0].as<T>()}}, Where<C>{call.out_as<std::int64_t>()});
  });
}

// ---- in_top_k: counts the predictions above the target's ------------------------------------------------------------
constexpr std::int64_t kNever = std::int64_t(1) << 40;  // a prediction that is not finite makes the count negative

template <class U, class I>
struct Larger {
  using T = U;
  static constexpr int kStreams = 1;
  const T* stream[1];
  const I* ids;
  std::int64_t n;
  __device__ std::int64_t operator()(std::int64_t o, std::int64_t, const T& p) const {
    const Wide<T> v = load(&p);
    const auto id = static_cast<std::int64_t>(ids[o]);
    if (!(v - v == Wide<T>(0)) || id < 0 || id >= n) return -kNever;
    return v > load(stream[0] + o * n + id);
  }
};
struct Below {
  bool* out;
  std::int64_t k;
  __device__ void operator()(std::int64_t o, std::int64_t v) const { out[o] = v >= 0 && v < k; }
};
void run_in_top_k(const OpCall& call) {
  const TensorSpec& p = call.spec(0);
  if (p.dims[1] == 0) return device_of(call.device).zero(call.out[0]->data(), call.out[0]->bytes(), call.op.name);
  for_dtype<Domain::floats>(p.dtype, [&](auto* t) {
    using T = std::remove_pointer_t<decltype(t)>;
    for_dtype<Domain::integers>(call.spec(1).dtype, [&](auto* i) {
      using I = std::remove_pointer_t<decltype(i)>;
      reduce_groups<std::int64_t>(call, Groups(p, 2), Sum<std::int64_t>(),
                                  Larger<T, I>{{call.in[0].as<T>()}, call.in[1].as<I>(), p.dims[1]},
                                  Below{call.out_as<bool>(), call.attrs.as<InTopKAttrs>().k});
    });
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
  T* out;
  __device__ void operator()(const Operands&, const std::int64_t (&at)[2], std::int64_t i) const {
    const double same = load(x + at[0]) == load(y + at[1]);
    store(out + i, same / static_cast<double>(count[at[1]]));
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
    launch_each<2>(call, Share<T>{in, y, count, call.out_as<T>()}, operands_by_group(x, mask));
  });
}

const PluginKernel kernels[] = {{"sum", run<Sum>},
                                {"prod", run<Prod>},
                                {"max", run<Max>},
                                {"min", run<Min>},
                                {"mean", run<Sum, true>},
                                {"var", run_var<false>},
                                {"std", run_var<true>},
                                {"center", run_center},
                                {"logsumexp", run_logsumexp},
                                {"logsumexp_grad", run_logsumexp_grad},
                                {"any", run_logical<Or>},
                                {"all", run_logical<And>},
                                {"argmax", run_arg<true>},
                                {"argmin", run_arg<false>},
                                {"extremum_mask", run_extremum_mask},
                                {"in_top_k", run_in_top_k},
                                {"sum_to_like", run_sum_to_like}};

}  // namespace

Kernels reduce_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda
