// ops/moving.cu - ops on CUDA that choose, convert, repeat and reorder elements: where, cast, broadcasts, permute, dropout.
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include <kassette/error.h>

#include "ops/axes.h"
#include "ops/elementwise.cuh"
#include "ops/moving.cuh"
#include "ops/philox.h"

namespace kassette::cuda {
namespace {

/// Calls f with a null pointer of an integer as wide as the elements: no NaN is touched.
template <class F>
void for_size(int size, F f) {
  if (size == 1) f(static_cast<std::uint8_t*>(nullptr));
  else if (size == 2) f(static_cast<std::uint16_t*>(nullptr));
  else if (size == 4) f(static_cast<std::uint32_t*>(nullptr));
  else f(static_cast<std::uint64_t*>(nullptr));
}

template <class T>
struct Choose {
  __device__ void operator()(const Operands& o, const std::int64_t (&at)[3], std::int64_t i) const {
    o.result<T>()[i] = o.operand<bool>(0)[at[0]] ? o.operand<T>(1)[at[1]] : o.operand<T>(2)[at[2]];
  }
};
void run_where(const Call& call) {
  for_size(call.out[0]->dtype.size(), [&](auto* p) { launch_each<3>(call, Choose<std::remove_pointer_t<decltype(p)>>{}); });
}

template <class T>
struct Copy {
  __device__ void operator()(const Operands& o, const std::int64_t (&at)[1], std::int64_t i) const {
    o.result<T>()[i] = o.operand<T>(0)[at[0]];
  }
};
void copy_elements(const Call& call, const Operands& o) {
  for_size(call.out[0]->dtype.size(), [&](auto* p) { launch_each<1>(call, Copy<std::remove_pointer_t<decltype(p)>>{}, o); });
}
void run_broadcast_to(const Call& call) { copy_elements(call, operands_of<1>(call)); }
void run_broadcast_like(const Call& call) {
  const Spec &x = call.spec(0), &like = call.spec(1);
  if (x.numel() == like.numel()) {
    host_services().share_input(call, 0);
    return;
  }
  bool fits = x.rank <= like.rank;
  for (int i = 0; fits && i < x.rank; ++i) fits = x.dims[i] == 1 || x.dims[i] == like.dims[like.rank - x.rank + i];
  if (!fits) throw ValueError("broadcast_like: the shapes do not broadcast");
  host_services().allocate_output(*call.out[0], call.device);
  copy_elements(call, operands_of<1>(call));
}

/// y, reduced along the axes of attrs.a, repeated along them; divided by their number where attrs.b says so.
template <class T>
struct Spread {
  Wide<T> count;
  __device__ void operator()(const Operands& o, const std::int64_t (&at)[1], std::int64_t i) const {
    store(o.result<T>() + i, static_cast<Wide<T>>(load(o.operand<T>(0) + at[0]) / count));
  }
};
void run_spread(const Call& call) {
  const Spec &y = call.spec(0), &like = call.spec(1);
  if (y.numel() == like.numel()) {
    host_services().share_input(call, 0);
    return;
  }
  host_services().allocate_output(*call.out[0], call.device);
  const std::int64_t code = call.attrs.a;
  Operands o{};
  o.in[0] = call.in[0].data;
  o.out = call.out[0]->data();
  o.n = like.numel();
  if (o.n == 0) return;
  std::int64_t strides[kMaxRank], step = 1;
  for (int i = like.rank - 1; i >= 0; --i) {
    bool repeated = (code & kAllAxes) || (code >> i & 1) || (code >> (8 + like.rank - 1 - i) & 1);
    strides[i] = repeated ? 0 : step;
    if (!repeated) step *= like.dims[i];
  }
  for (int i = 0; i < like.rank; ++i) push_axis<1>(o, like.dims[i], {strides[i]});
  if (!call.attrs.b) return copy_elements(call, o);
  for_dtype<Domain::numbers>(y.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_each<1>(call, Spread<T>{static_cast<Wide<T>>(o.n / y.numel())}, o);
  });
}

// ---- cast: by way of double or int64, both exact; the same rules as convert_one ----------------------------------------
template <class V>
__device__ void store_as(DType::Code to, void* out, std::int64_t i, V v) {
  auto saturated = [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    if constexpr (std::is_floating_point_v<V>) {
      constexpr double low = static_cast<double>(std::numeric_limits<T>::min());
      constexpr double above = static_cast<double>(std::numeric_limits<T>::max() / 2 + 1) * 2;
      if (!(v > low)) return v != v ? T(0) : std::numeric_limits<T>::min();
      return v >= above ? std::numeric_limits<T>::max() : static_cast<T>(v);
    } else {
      return static_cast<T>(v);
    }
  };
#define KASSETTE_TO(code, T) \
  case DType::code: static_cast<T*>(out)[i] = saturated(static_cast<T*>(nullptr)); break;
  switch (to) {
    case DType::kBool: static_cast<bool*>(out)[i] = v != V(0); break;
    KASSETTE_TO(kUint8, std::uint8_t)
    KASSETTE_TO(kUint16, std::uint16_t)
    KASSETTE_TO(kInt8, std::int8_t)
    KASSETTE_TO(kInt16, std::int16_t)
    KASSETTE_TO(kInt32, std::int32_t)
    KASSETTE_TO(kInt64, std::int64_t)
    case DType::kFloat16: store(static_cast<Half*>(out) + i, static_cast<float>(v)); break;
    case DType::kBfloat16: store(static_cast<BFloat16*>(out) + i, static_cast<float>(v)); break;
    case DType::kFloat64: static_cast<double*>(out)[i] = static_cast<double>(v); break;
    default: static_cast<float*>(out)[i] = static_cast<float>(v);
  }
#undef KASSETTE_TO
}
struct Convert {
  DType::Code from, to;
  __device__ void operator()(const Operands& o, const std::int64_t (&at)[1], std::int64_t i) const {
    const std::int64_t k = at[0];
    switch (from) {
      case DType::kBool: return store_as(to, o.out, i, static_cast<std::int64_t>(o.operand<bool>(0)[k]));
      case DType::kUint8: return store_as(to, o.out, i, static_cast<std::int64_t>(o.operand<std::uint8_t>(0)[k]));
      case DType::kUint16: return store_as(to, o.out, i, static_cast<std::int64_t>(o.operand<std::uint16_t>(0)[k]));
      case DType::kInt8: return store_as(to, o.out, i, static_cast<std::int64_t>(o.operand<std::int8_t>(0)[k]));
      case DType::kInt16: return store_as(to, o.out, i, static_cast<std::int64_t>(o.operand<std::int16_t>(0)[k]));
      case DType::kInt32: return store_as(to, o.out, i, static_cast<std::int64_t>(o.operand<std::int32_t>(0)[k]));
      case DType::kInt64: return store_as(to, o.out, i, o.operand<std::int64_t>(0)[k]);
      case DType::kFloat16: return store_as(to, o.out, i, static_cast<double>(load(o.operand<Half>(0) + k)));
      case DType::kBfloat16: return store_as(to, o.out, i, static_cast<double>(load(o.operand<BFloat16>(0) + k)));
      case DType::kFloat64: return store_as(to, o.out, i, o.operand<double>(0)[k]);
      default: return store_as(to, o.out, i, static_cast<double>(o.operand<float>(0)[k]));
    }
  }
};
void run_cast(const Call& call) { launch_each<1>(call, Convert{call.spec(0).dtype.code(), call.out[0]->dtype.code()}); }

// ---- permute -----------------------------------------------------------------------------------------------------------
void run_permute(const Call& call) {
  const Spec& x = call.spec(0);
  host_services().allocate_output(*call.out[0], call.device);
  const Spec& out = *call.out[0];
  std::int64_t from[kMaxRank], step = 1;
  for (int i = x.rank - 1; i >= 0; --i) {
    from[i] = step;
    step *= x.dims[i];
  }
  Operands o{};
  o.in[0] = call.in[0].data;
  o.out = call.out[0]->data();
  o.n = out.numel();
  for (int i = 0; i < out.rank; ++i) {   // attrs as in transpose.cpp: four bits an axis; b is -1 for all axes reversed
    int axis = call.attrs.b < 0 ? x.rank - 1 - i : static_cast<int>(call.attrs.a >> 4 * i & 15);
    push_axis<1>(o, out.dims[i], {from[axis]});
  }
  if (o.rank == 0) o.dims[o.rank++] = 1;
  copy_elements(call, o);
}

// ---- dropout: the mask from the key, the same words as on the CPU ------------------------------------------------------
template <class T>
struct Drop {
  RandomKey key;
  double scale;
  std::uint64_t below;
  // Operand 1 is the mask: it has no bytes, only a place for each of its words.
  __device__ void operator()(const Operands& o, const std::int64_t (&at)[2], std::int64_t i) const {
    T zero{};
    if (random_word(key, at[1]) < below) store(o.result<T>() + i, static_cast<Wide<T>>(load(o.operand<T>(0) + at[0]) * static_cast<Wide<T>>(scale)));
    else o.result<T>()[i] = zero;
  }
};
void run_dropout(const Call& call) {
  const Spec& x = call.spec(0);
  Operands o{};
  o.in[0] = call.in[0].data;
  o.out = call.out[0]->data();
  o.n = x.numel();
  if (o.n == 0) return;
  // The mask's shape (the third input, on the host): -1 stands for the size of x.
  std::int64_t mask[kMaxRank], step = 1, stride[2][kMaxRank];
  const int given = call.n_in > 2 ? static_cast<int>(call.spec(2).dims[0]) : x.rank;
  for (int i = 0; i < x.rank; ++i) {
    int j = i - (x.rank - given);
    std::int64_t n = call.n_in > 2 ? (j < 0 ? 1 : call.in[2].as<std::int64_t>()[j]) : -1;
    mask[i] = n < 0 ? x.dims[i] : n;
  }
  for (int i = x.rank - 1; i >= 0; --i) {
    stride[1][i] = mask[i] == 1 ? 0 : step;
    step *= mask[i];
  }
  step = 1;
  for (int i = x.rank - 1; i >= 0; --i) {
    stride[0][i] = step;
    step *= x.dims[i];
  }
  for (int i = 0; i < x.rank; ++i) push_axis<2>(o, x.dims[i], {stride[0][i], stride[1][i]});
  if (o.rank == 0) o.dims[o.rank++] = 1;
  RandomKey key;
  std::memcpy(&key, call.in[1].data, sizeof key);
  const double level = call.attrs.x;
  const double words = level > 0 ? std::ceil(std::min(level, 1.0) * 4294967296.0) : 0;
  for_dtype<Domain::floats>(x.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_each<2>(call, Drop<T>{key, 1 / (1 - level), (std::uint64_t(1) << 32) - static_cast<std::uint64_t>(words)}, o);
  });
}

const PluginKernel kernels[] = {{"where", run_where},       {"cast", run_cast},
                                {"broadcast_to", run_broadcast_to}, {"broadcast_like", run_broadcast_like},
                                {"spread", run_spread},     {"permute_dimensions", run_permute},
                                {"dropout", run_dropout}};

struct Reorder {
  std::int64_t n;
  Strided layout;
};
template <class T>
__global__ void reorder(Reorder r, const T* from, T* to) {
  const std::int64_t step = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < r.n; i += step) {
    std::int64_t rest = i, at_from = 0, at_to = 0;
    for (int d = r.layout.rank - 1; d >= 0; --d) {
      std::int64_t c = rest % r.layout.dims[d];
      rest /= r.layout.dims[d];
      at_from += c * r.layout.from[d];
      at_to += c * r.layout.to[d];
    }
    to[at_to] = from[at_from];
  }
}

}  // namespace

void copy_strided(cudaStream_t stream, const Strided& layout, const void* from, void* to, int size) {
  Reorder r{1, layout};
  for (int d = 0; d < layout.rank; ++d) r.n *= layout.dims[d];
  if (r.n == 0) return;
  for_size(size, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    reorder<T><<<blocks_for(r.n), kThreads, 0, stream>>>(r, static_cast<const T*>(from), static_cast<T*>(to));
  });
  check(cudaGetLastError(), "copy");
}

Kernels moving_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda
