// ops/elementwise/compare.cu - comparisons and logical ops on CUDA, from the one source in compare_ops.h.
#include <array>

#include "ops/elementwise/compare_ops.h"
#include "ops/elementwise/elementwise.cuh"

namespace kassette::cuda {
namespace {

template <class Op>
struct Each {
  template <class V>
  __device__ bool operator()(V a, V b) const {
    return Op::value(a, b);
  }
};
struct Not {
  __device__ bool operator()(bool a) const { return !a; }
};

template <class Op>
void run(const OpCall& call) {
  for_dtype<Op::takes>(call.spec(1).dtype,
                       [&](auto* p) { launch_values<std::remove_pointer_t<decltype(p)>, 2, bool>(call, Each<Op>{}); });
}

template <class... Ops>
constexpr std::array<PluginKernel, sizeof...(Ops) + 1> table(OpList<Ops...>) {
  return {{{Ops::name, run<Ops>}..., {"logical_not", [](const OpCall& call) { launch_values<bool, 1>(call, Not{}); }}}};
}
const auto kernels = table(CompareOps{});

}  // namespace

Kernels compare_kernels() { return {kernels.data(), static_cast<int>(kernels.size())}; }

}  // namespace kassette::cuda
