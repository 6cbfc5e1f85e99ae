// ops/elementwise/elementwise.cuh - elementwise kernels on a CUDA device, shared by the .cu files of the families:
// broadcasting, half types, launches.
#pragma once
#include <algorithm>
#include <type_traits>

#include "core/convert.h"
#include "devices/cuda/element.cuh"
#include "devices/cuda/launch.cuh"
#include "ops/engine/coalesce.h"
#include "ops/math/math.h"
#include "ops/shape/moving.cuh"
#include "ops/engine/op.h"
#include "ops/engine/packs.cuh"

namespace kassette::cuda {

/// Whether a domain has the element type T.
template <class T>
constexpr bool has_type(Domain domain) {
  if (domain == Domain::anything) return true;
  if (std::is_same_v<T, bool>) return domain == Domain::bools;
  return domain == Domain::numbers || domain == (std::is_integral_v<T> ? Domain::integers : Domain::floats);
}
/// Calls f with a null pointer to the element type of `dtype`; does nothing if the dtype is not of the domain.
template <Domain kDomain, class F>
void for_dtype(DType dtype, F f) {
  dispatch(dtype, [&](auto* p) {
    if constexpr (has_type<std::remove_pointer_t<decltype(p)>>(kDomain)) f(p);
  });
}

/// Divides by a number that is fixed at launch. Dividends below 2^31 take a multiplication and a shift (Granlund and
/// Montgomery, 1994).
struct Divider {
  std::int64_t by = 1;
  std::uint32_t factor = 1, shift = 0;
  Divider() = default;
  explicit Divider(std::int64_t divisor) : by(divisor > 0 ? divisor : 1) {
    if (by > 0x7fffffff) {  // dividends below 2^31 give 0
      factor = 0;
      shift = 31;
      return;
    }
    while ((std::int64_t(1) << shift) < by) ++shift;
    factor = static_cast<std::uint32_t>(
        (((std::uint64_t(1) << shift) - static_cast<std::uint64_t>(by)) << 32) / static_cast<std::uint64_t>(by) + 1);
  }
  /// n / by, for n >= 0.
  KASSETTE_FN std::int64_t operator()(std::int64_t n) const {
    if (n > 0x7fffffff) return n / by;
    const auto low = static_cast<std::uint32_t>(n);
    return (static_cast<std::uint32_t>(static_cast<std::uint64_t>(low) * factor >> 32) + low) >> shift;
  }
};

// -- operands ---------------------------------------------------------------------------------------------------------
inline constexpr int kMaxOperands = 4;

/// An output and operands that are broadcast to its shape. Neighbouring axes are joined if the strides of every operand
/// allow it.
struct Operands {
  const void* in[kMaxOperands];
  void* out;
  std::int64_t n;
  int rank;  // 1: every operand has a stride of 0 or 1
  std::int64_t dims[kMaxRank];
  std::int64_t strides[kMaxOperands][kMaxRank];
  Divider by[kMaxRank];  // dividers by dims

  template <class T>
  __device__ const T* operand(int k) const {
    return static_cast<const T*>(in[k]);
  }
  template <class T>
  __device__ T* result() const {
    return static_cast<T*>(out);
  }
};

/// Appends an axis of n elements of the output, with the strides of the operands along it; joins it to the last axis if
/// possible.
template <int kArity>
void push_axis(Operands& o, std::int64_t n, const std::int64_t (&stride)[kArity]) {
  if (n == 1) return;
  push_coalesced(o.rank, o.dims, n, kArity, [&](int k) { return Along{o.strides[k], stride[k]}; });
  o.by[o.rank - 1] = Divider(o.dims[o.rank - 1]);
}

/// Returns the layout of operands of these shapes, broadcast to `out`; pointers are null.
template <int kArity>
Operands broadcast(const TensorSpec* const (&specs)[kArity], const TensorSpec& out) {
  Operands o{};
  o.n = out.numel();
  std::int64_t strides[kArity][kMaxRank];
  for (int k = 0; k < kArity; ++k) broadcast_strides(*specs[k], out, strides[k]);
  for (int i = 0; i < out.rank; ++i) {
    std::int64_t stride[kArity];
    for (int k = 0; k < kArity; ++k) stride[k] = strides[k][i];
    push_axis<kArity>(o, out.dims[i], stride);
  }
  if (o.rank == 0) o.dims[o.rank++] = 1;  // one element: the strides are 0
  return o;
}
/// Returns the first kArity inputs of a call, broadcast to output 0.
template <int kArity>
Operands operands_of(const OpCall& call) {
  const TensorSpec* specs[kArity];
  for (int k = 0; k < kArity; ++k) specs[k] = &call.spec(k);
  Operands o = broadcast<kArity>(specs, *call.out[0]);
  for (int k = 0; k < kArity; ++k) o.in[k] = call.in[k].data;
  o.out = call.out[0]->data();
  return o;
}

/// Returns the operands of a unary function over n contiguous elements.
inline Operands unary_operands(const void* in, void* out, std::int64_t n) {
  Operands o{};
  o.in[0] = in;
  o.out = out;
  o.n = n;
  o.rank = 1;
  o.dims[0] = n;
  o.strides[0][0] = 1;
  return o;
}

/// Sets `at` to the offsets of the operands' elements for element i of the output.
template <int kArity>
__device__ inline void locate(const Operands& o, std::int64_t i, std::int64_t (&at)[kArity]) {
#pragma unroll
  for (int k = 0; k < kArity; ++k) at[k] = 0;
#pragma unroll 1
  for (int d = o.rank - 1; d > 0; --d) {
    const std::int64_t rest = o.by[d](i), c = i - rest * o.dims[d];
#pragma unroll
    for (int k = 0; k < kArity; ++k) at[k] += c * o.strides[k][d];
    i = rest;
  }
#pragma unroll
  for (int k = 0; k < kArity; ++k) at[k] += i * o.strides[k][0];
}

/// Calls f(operands, offset of each operand's element, index of the output's element) for every element of the output.
template <int kArity, class F>
__global__ void run_each(F f, Operands o) {
  const std::int64_t step = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < o.n; i += step) {
    std::int64_t at[kArity];
    locate<kArity>(o, i, at);
    f(o, at, i);
  }
}

template <int kArity, class F>
void launch_each(const OpCall& call, F f, const Operands& o) {
  if (o.n == 0) return;
  launch(call.op.name, device_of(call.device), blocks_for(o.n), run_each<kArity, F>, f, o);
}
template <int kArity, class F>
void launch_each(const OpCall& call, F f) {
  launch_each<kArity>(call, f, operands_of<kArity>(call));
}

inline constexpr int kAtOnce = 4;  // elements that a thread reads before it stores the first

/// Stores f(operands, offset of each operand's element, index of the output's element) in every element of the output.
/// A load is not moved before a store, since the two may overlap; so all loads of kAtOnce elements come first.
template <int kArity, class R, class F>
__global__ void store_each(F f, Operands o) {
  const std::int64_t step = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < o.n; i += kAtOnce * step) {
    // Instead of an element past the end a thread reads its first one again, which nobody else writes.
    auto place = [&](int u) { return i + u * step < o.n ? i + u * step : i; };
    std::int64_t at[kAtOnce][kArity];
    decltype(f(o, at[0], i)) v[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) locate<kArity>(o, place(u), at[u]);
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) v[u] = f(o, at[u], place(u));
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u)
      if (i + u * step < o.n) store(o.result<R>() + i + u * step, v[u]);
  }
}

/// The output has elements of R.
template <int kArity, class R, class F>
void launch_store(const OpCall& call, F f, const Operands& o) {
  if (o.n == 0) return;
  launch(call.op.name, device_of(call.device), blocks_for(ceil_div(o.n, kAtOnce)), store_each<kArity, R, F>, f, o);
}
template <int kArity, class R, class F>
void launch_store(const OpCall& call, F f) {
  launch_store<kArity, R>(call, f, operands_of<kArity>(call));
}

// ---- operands of one dtype ------------------------------------------------------------------------------------------
/// The value of f(an element of each operand). Operands have elements of T, which f takes as Wide<T>; the result has
/// elements of R.
template <class T, int kArity, class F, class R>
struct Valued {
  F f;
  __device__ Wide<R> value(const Wide<T> (&x)[kArity]) const {
    if constexpr (kArity == 1) return static_cast<Wide<R>>(f(x[0]));
    else return static_cast<Wide<R>>(f(x[0], x[1]));
  }
  __device__ Wide<R> operator()(const Operands& o, const std::int64_t (&at)[kArity], std::int64_t) const {
    Wide<T> x[kArity];
#pragma unroll
    for (int k = 0; k < kArity; ++k) x[k] = load(o.operand<T>(k) + at[k]);
    return value(x);
  }
};

/// Changes `o` to count packs along the last axis. If that is the only axis, `rest` elements are left after the last
/// pack. Returns false, with `o` unusable, if packs are not aligned or do not fill the last axis.
template <class T, class R, int kArity>
bool count_in_packs(Operands& o, std::int64_t& rest) {
  const int last = o.rank - 1;
  std::int64_t& n = o.dims[last];
  rest = o.rank == 1 ? n % kPack<T> : 0;
  bool fits = (n - rest) % kPack<T> == 0 && n > rest &&
              reinterpret_cast<std::uintptr_t>(o.out) % alignof(Packed<R, kPack<T>>) == 0;
  for (int k = 0; k < kArity; ++k) {
    std::int64_t& stride = o.strides[k][last];
    // An operand with n elements along the last axis has multiples of n as its other strides, so its packs stay
    // aligned.
    fits = fits && (stride == 0 || (stride == 1 && packs_at(static_cast<const T*>(o.in[k]))));
    stride *= kPack<T>;
  }
  n /= kPack<T>;
  o.by[last] = Divider(n);
  o.n = (o.n - rest) / kPack<T>;
  return fits;
}
/// Runs Valued a pack at a time: element by element, too little would be on its way from memory.
template <class T, int kArity, class F, class R>
__global__ void run_packs(Valued<T, kArity, F, R> f, Operands o, std::int64_t rest) {
  const std::int64_t first = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x,
                     step = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = first; i < o.n; i += step) {
    std::int64_t at[kArity];
    locate<kArity>(o, i, at);
    Packed<T> in[kArity];
    Packed<R, kPack<T>> out;
#pragma unroll
    for (int k = 0; k < kArity; ++k) {
      const T* from = o.operand<T>(k) + at[k];
      if (o.strides[k][o.rank - 1]) {
        in[k] = *reinterpret_cast<const Packed<T>*>(from);
      } else {
#pragma unroll
        for (T& v : in[k].v) v = *from;
      }
    }
#pragma unroll
    for (int e = 0; e < kPack<T>; ++e) {
      Wide<T> x[kArity];
#pragma unroll
      for (int k = 0; k < kArity; ++k) x[k] = load(&in[k].v[e]);
      store(&out.v[e], f.value(x));
    }
    reinterpret_cast<Packed<R, kPack<T>>*>(o.out)[i] = out;
  }
  for (std::int64_t i = o.n * kPack<T> + first; i < o.n * kPack<T> + rest; i += step) {
    std::int64_t at[kArity];
#pragma unroll
    for (int k = 0; k < kArity; ++k) at[k] = o.strides[k][0] ? i : 0;
    store(o.result<R>() + i, f(o, at, i));
  }
}

/// Stores f(an element of each of the first kArity inputs) in output 0. Inputs have elements of T, which f takes as
/// Wide<T>; the output has elements of R.
template <class T, int kArity, class R = T, class F>
void launch_values(const OpCall& call, F f) {
  const Operands o = operands_of<kArity>(call);
  const Valued<T, kArity, F, R> valued{f};
  if constexpr (!std::is_integral_v<T> || !std::is_same_v<T, R>) {  // not for integers: twice the kernels to compile
    Operands packs = o;
    std::int64_t rest;
    if (count_in_packs<T, R, kArity>(packs, rest))
      return launch(call.op.name, device_of(call.device), blocks_for(packs.n), run_packs<T, kArity, F, R>, valued,
                    packs, rest);
  }
  launch_store<kArity, R>(call, valued, o);
}

/// The kernels of a family of ops, with the ops' names. NAME.cu returns its family's from NAME_kernels(), which
/// plugin.cu declares and calls; ops/CMakeLists.txt finds the families.
struct Kernels {
  const PluginKernel* first;
  int n;
};

}  // namespace kassette::cuda
