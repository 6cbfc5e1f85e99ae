// ops/binary.cu - the binary elementwise ops on CUDA, from the one source in binary_ops.h.
#include <array>
#include <string>
#include <vector>

#include <kassette/error.h>

#include "ops/binary_ops.h"
#include "ops/elementwise.cuh"

namespace kassette::cuda {
namespace {

template <class Op, class T>
struct Each {
  __device__ void operator()(const Operands& o, const std::int64_t (&at)[2], std::int64_t i) const {
    Wide<T> a = load(o.operand<T>(0) + at[0]), b = load(o.operand<T>(1) + at[1]);
    store(o.result<T>() + i, static_cast<Wide<T>>(Op::value(a, b)));
  }
};

/// What an op refuses in its second operand is an error here too: the operand comes to the host for it.
template <class Op, class T>
void check_second(const Call& call) {
  if constexpr (std::is_integral_v<T> && requires(T t) { Op::refuses(t); }) {
    std::vector<T> b(static_cast<std::size_t>(call.spec(1).numel()));
    if (b.empty()) return;
    device_of(call.device).copy_to_host(b.data(), call.in[1].data, static_cast<std::int64_t>(b.size() * sizeof(T)));
    for (T v : b)
      if (const char* why = Op::refuses(v)) throw ValueError((std::string(Op::name) + ": " + why).c_str());
  }
}

template <class Op>
void run(const Call& call) {
  for_dtype<Op::takes>(call.spec(1).dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    check_second<Op, T>(call);
    launch_each<2>(call, Each<Op, T>{});
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
