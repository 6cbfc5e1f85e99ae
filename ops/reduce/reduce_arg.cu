// ops/reduce/reduce_arg.cu - any and all, argmax and argmin, in_top_k on CUDA.
#include <iterator>

#include "ops/reduce/reduce_groups.cuh"

namespace kassette::cuda {
namespace {

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

template <class U>
struct Larger {
  using T = U;
  static constexpr int kStreams = 1;
  const T* stream[1];
  const std::int64_t* ids;
  std::int64_t n;
  __device__ std::int64_t operator()(std::int64_t o, std::int64_t, const T& p) const {
    const Wide<T> v = load(&p);
    const std::int64_t id = ids[o];
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
    reduce_groups<std::int64_t>(call, Groups(p, 2), Sum<std::int64_t>(),
                                Larger<T>{{call.in[0].as<T>()}, call.in[1].as<std::int64_t>(), p.dims[1]},
                                Below{call.out_as<bool>(), call.attrs.as<InTopKAttrs>().k});
  });
}

const PluginKernel kernels[] = {{"any", run_logical<Or>},
                                {"all", run_logical<And>},
                                {"argmax", run_arg<true>},
                                {"argmin", run_arg<false>},
                                {"in_top_k", run_in_top_k}};

}  // namespace

Kernels reduce_arg_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda
