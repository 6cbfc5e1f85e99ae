// ops/elementwise/binary.cu - the binary elementwise ops on CUDA, from the one source in binary_ops.h.
#include <array>

#include "devices/cuda/faults.cuh"
#include "ops/elementwise/binary_ops.h"
#include "ops/elementwise/elementwise.cuh"

namespace kassette::cuda {
namespace {

template <class Op>
struct Each {
  template <class V>
  __device__ auto operator()(V a, V b) const {
    return Op::value(a, b);
  }
};

/// An integer op that refuses some values of its second operand.
template <class Op, class T>
struct Checked {
  Faults faults;
  __device__ T operator()(const Operands& o, const std::int64_t (&at)[2], std::int64_t i) const {
    const T b = o.operand<T>(1)[at[1]];
    const bool refused = Op::refuses(b);
    if (refused) report(faults, Op::refusal, i);
    return refused ? T(0) : static_cast<T>(Op::value(o.operand<T>(0)[at[0]], b));
  }
};

template <class Op>
void run(const OpCall& call) {
  for_dtype<Op::takes>(call.spec(1).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    if constexpr (std::is_integral_v<T> && requires(T t) { Op::refuses(t); })
      launch_store<2, T>(call, Checked<Op, T>{device_of(call.device).faults()});
    else launch_values<T, 2>(call, Each<Op>{});
  });
}

template <class... Ops>
constexpr std::array<PluginKernel, sizeof...(Ops)> table(OpList<Ops...>) {
  return {{{Ops::name, run<Ops>}...}};
}
constexpr auto kernels = table(BinaryOps{});

}  // namespace

Kernels binary_kernels() { return {kernels.data(), static_cast<int>(kernels.size())}; }

}  // namespace kassette::cuda
