// ops/compare.cu - comparisons and logical ops on CUDA, from the one source in compare_ops.h.
#include <array>

#include "ops/compare_ops.h"
#include "ops/elementwise.cuh"

namespace kassette::cuda {
namespace {

template <class Op, class T>
struct Each {
  __device__ void operator()(const Operands& o, const std::int64_t (&at)[2], std::int64_t i) const {
    Wide<T> a = load(o.operand<T>(0) + at[0]), b = load(o.operand<T>(1) + at[1]);
    o.result<bool>()[i] = Op::value(a, b);
  }
};
struct Not {
  __device__ void operator()(const Operands& o, const std::int64_t (&at)[1], std::int64_t i) const {
    o.result<bool>()[i] = !o.operand<bool>(0)[at[0]];
  }
};

template <class Op>
void run(const OpCall& call) {
  for_dtype<Op::takes>(call.spec(1).dtype,
                       [&](auto* p) { launch_each<2>(call, Each<Op, std::remove_pointer_t<decltype(p)>>{}); });
}

template <class... Ops>
constexpr std::array<PluginKernel, sizeof...(Ops) + 1> table(OpList<Ops...>) {
  return {{{Ops::name, run<Ops>}..., {"logical_not", [](const OpCall& call) { launch_each<1>(call, Not{}); }}}};
}
const auto kernels = table(CompareOps{});

}  // namespace

Kernels compare_kernels() { return {kernels.data(), static_cast<int>(kernels.size())}; }

}  // namespace kassette::cuda
