// ops/shape/moving.cu - ops on CUDA that select, convert, repeat and generate elements: where, cast, broadcasts,
// ranges, identity matrices.
#include <iterator>
#include <limits>

#include "core/half.h"
#include "ops/engine/axes.h"
#include "ops/elementwise/elementwise.cuh"
#include "ops/shape/moving.cuh"

namespace kassette::cuda {
namespace {

template <class T>
struct Choose {
  __device__ T operator()(const Operands& o, const std::int64_t (&at)[3], std::int64_t) const {
    return o.operand<bool>(0)[at[0]] ? o.operand<T>(1)[at[1]] : o.operand<T>(2)[at[2]];
  }
};
void run_where(const OpCall& call) {
  for_size(call.out[0]->dtype.size(), [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_store<3, T>(call, Choose<T>{});
  });
}

template <class T>
struct Copy {
  __device__ T operator()(const Operands& o, const std::int64_t (&at)[1], std::int64_t) const {
    return o.operand<T>(0)[at[0]];
  }
};
void copy_elements(const OpCall& call, const Operands& o) {
  for_size(call.out[0]->dtype.size(), [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_store<1, T>(call, Copy<T>{}, o);
  });
}
void run_broadcast_like(const OpCall& call) {
  const TensorSpec &x = call.spec(0), &like = call.spec(1);
  if (x.numel() == like.numel()) {
    host_services().share_input(call, 0);
    return;
  }
  host_services().allocate_output(*call.out[0], call.device);
  copy_elements(call, operands_of<1>(call));
}

/// y, the result of a reduction, repeated along the reduced axes and divided by the number of repetitions.
template <class T>
struct Unreduce {
  Wide<T> count;
  __device__ Wide<T> operator()(const Operands& o, const std::int64_t (&at)[1], std::int64_t) const {
    return static_cast<Wide<T>>(load(o.operand<T>(0) + at[0]) / count);
  }
};
void run_unreduce(const OpCall& call) {
  const TensorSpec &y = call.spec(0), &like = call.spec(1);
  if (y.numel() == like.numel()) {
    host_services().share_input(call, 0);
    return;
  }
  host_services().allocate_output(*call.out[0], call.device);
  const unsigned mask = call.attrs.as<ReduceAttrs>().axes.mask(like.rank);
  Operands o{};
  o.in[0] = call.in[0].data;
  o.out = call.out[0]->data();
  o.n = like.numel();
  if (o.n == 0) return;
  std::int64_t strides[kMaxRank], step = 1;
  for (int i = like.rank - 1; i >= 0; --i) {
    bool repeated = mask >> i & 1;
    strides[i] = repeated ? 0 : step;
    if (!repeated) step *= like.dims[i];
  }
  for (int i = 0; i < like.rank; ++i) push_axis<1>(o, like.dims[i], {strides[i]});
  if (!call.attrs.as<ReduceAttrs>().divide) return copy_elements(call, o);
  for_dtype<Domain::numbers>(y.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_store<1, T>(call, Unreduce<T>{static_cast<Wide<T>>(o.n / y.numel())}, o);
  });
}

// ---- cast: via double, int64 or uint64, whichever is exact for the input; the same rules as convert_one -------------
template <class T>
using Exact = std::conditional_t<std::is_same_v<T, std::uint64_t>, std::uint64_t,
                                 std::conditional_t<std::is_integral_v<T>, std::int64_t, double>>;
template <class T, class V>
__device__ void store_converted(T* out, V v) {
  if constexpr (std::is_same_v<T, bool>) {
    *out = v != V(0);
  } else if constexpr (!std::is_integral_v<T>) {
    store(out, v);
  } else if constexpr (std::is_integral_v<V>) {
    *out = static_cast<T>(v);
  } else {
    constexpr double low = static_cast<double>(std::numeric_limits<T>::min());
    constexpr double above = static_cast<double>(std::numeric_limits<T>::max() / 2 + 1) * 2;
    if (!(v > low)) *out = v != v ? T(0) : std::numeric_limits<T>::min();
    else *out = v >= above ? std::numeric_limits<T>::max() : static_cast<T>(v);
  }
}
template <class V>
__device__ void store_as(DType::Code to, void* out, std::int64_t i, V v) {
#define KASSETTE_CASE(constant, code, T, name) \
  case DType::code: return store_converted(static_cast<T*>(out) + i, v);
  switch (to) {
    KASSETTE_DTYPES(KASSETTE_CASE)
    default: return;
  }
#undef KASSETTE_CASE
}
template <class T>
__global__ void convert_each(std::int64_t n, const T* x, DType::Code to, void* out) {
  const std::int64_t step = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += kAtOnce * step) {
    Exact<T> v[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) v[u] = static_cast<Exact<T>>(load(x + (i + u * step < n ? i + u * step : i)));
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u)
      if (i + u * step < n) store_as(to, out, i + u * step, v[u]);
  }
}

struct Same {
  __device__ float operator()(float v) const { return v; }
};
/// Calls f with a null pointer to the element type of `dtype` and returns true, if elements are computed as floats.
template <class F>
bool for_floats(DType dtype, F f) {
  if (dtype == float32) f(static_cast<float*>(nullptr));
  else if (dtype == float16) f(static_cast<Half*>(nullptr));
  else if (dtype == bfloat16) f(static_cast<BFloat16*>(nullptr));
  else return false;
  return true;
}
void run_cast(const OpCall& call) {
  const DType from = call.spec(0).dtype, to = call.out[0]->dtype;
  // Casts between float16, bfloat16 and float32 read and write packs.
  bool done = false;
  for_floats(from, [&](auto* p) {
    done = for_floats(to, [&](auto* q) {
      launch_values<std::remove_pointer_t<decltype(p)>, 1, std::remove_pointer_t<decltype(q)>>(call, Same{});
    });
  });
  if (done || call.out[0]->numel() == 0) return;
  for_dtype<Domain::anything>(from, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    const std::int64_t n = call.out[0]->numel();
    launch(call.op.name, device_of(call.device), blocks_for(ceil_div(n, kAtOnce)), convert_each<T>, n,
           call.in[0].as<T>(), to.code(), static_cast<void*>(call.out[0]->data()));
  });
}

// ---- ranges and identity matrices -----------------------------------------------------------------------------------
/// The value of a scalar on the host.
template <class R>
R number(const InputView& a) {
  R v = R(0);
  for_dtype<Domain::anything>(a.desc->dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    if constexpr (std::is_arithmetic_v<T>) v = static_cast<R>(*a.as<T>());
    else v = static_cast<R>(to_float(*a.as<T>()));
  });
  return v;
}
template <class R>
__global__ void range_each(std::int64_t n, R start, R step, DType::Code to, void* out) {
  const std::int64_t by = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += by)
    store_as(to, out, i, static_cast<R>(start + static_cast<R>(i) * step));
}
template <class R>
void range(const OpCall& call) {
  const TensorDesc& out = *call.out[0];
  launch(call.op.name, device_of(call.device), blocks_for(out.numel()), range_each<R>, out.numel(),
         number<R>(call.in[0]), number<R>(call.in[2]), out.dtype.code(), static_cast<void*>(out.data()));
}
void run_arange(const OpCall& call) {
  if (call.out[0]->numel() == 0) return;
  bool floats = false;
  for (int i = 0; i < 3; ++i) floats = floats || call.spec(i).dtype.is_float();
  if (floats) range<double>(call);
  else if (call.out[0]->dtype == uint64) range<std::uint64_t>(call);
  else range<std::int64_t>(call);
}
__global__ void eye_each(std::int64_t n, Divider by_columns, DType::Code to, void* out) {
  const std::int64_t by = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += by) {
    const std::int64_t row = by_columns(i);
    store_as(to, out, i, std::int64_t(i - row * by_columns.by == row));
  }
}
void run_eye(const OpCall& call) {
  const TensorDesc& out = *call.out[0];
  if (out.numel() == 0) return;
  launch(call.op.name, device_of(call.device), blocks_for(out.numel()), eye_each, out.numel(), Divider(out.dims[1]),
         out.dtype.code(), static_cast<void*>(out.data()));
}

const PluginKernel kernels[] = {
    {"where", run_where},       {"cast", run_cast},     {"broadcast_like", run_broadcast_like},
    {"unreduce", run_unreduce}, {"arange", run_arange}, {"eye", run_eye}};

}  // namespace

Kernels moving_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda
