// ops/elementwise/unary.cu - the unary elementwise ops on CUDA, compiled from the definitions in unary_ops.h.
#include <array>

#include "ops/elementwise/elementwise.cuh"
#include "ops/elementwise/unary_ops.h"

namespace kassette::cuda {
namespace {

template <class Op>
struct Each {
  UnaryFunction<Op> f;
  template <class V>
  __device__ auto operator()(V x) const {
    return f(x);
  }
};

template <class Op>
void run(const OpCall& call) {
  for_dtype<Op::takes>(call.spec(0).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_values<T, 1>(call, Each<Op>{UnaryFunction<Op>(call.attrs)});
  });
}

template <class... Ops>
constexpr std::array<PluginKernel, sizeof...(Ops)> table(OpList<Ops...>) {
  return {{{Ops::name, run<Ops>}...}};
}
constexpr auto kernels = table(UnaryOps{});

}  // namespace

Kernels unary_kernels() { return {kernels.data(), static_cast<int>(kernels.size())}; }

}  // namespace kassette::cuda
