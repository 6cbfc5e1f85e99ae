// ops/unary.cu - the unary elementwise ops on CUDA, from the one source in unary_ops.h.
#include <array>

#include "ops/elementwise.cuh"
#include "ops/unary_ops.h"

namespace kassette::cuda {
namespace {

template <class Op, class T>
struct Each {
  Params p;
  __device__ void operator()(const Operands& o, const std::int64_t (&at)[1], std::int64_t i) const {
    Wide<T> x = load(o.operand<T>(0) + at[0]);
    store(o.result<T>() + i, static_cast<Wide<T>>(Op::value(x, p)));
  }
};

template <class Op>
void run(const Call& call) {
  for_dtype<Op::takes>(call.spec(0).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    launch_each<1>(call, Each<Op, T>{params_of(call.attrs)});
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
