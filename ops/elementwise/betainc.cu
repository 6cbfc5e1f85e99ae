// ops/elementwise/betainc.cu - the regularized incomplete beta function on CUDA.
#include "ops/math/beta_inc.h"
#include "ops/elementwise/elementwise.cuh"

namespace kassette::cuda {
namespace {

template <class T>
struct BetaInc {
  __device__ void operator()(const Operands& o, const std::int64_t (&at)[3], std::int64_t i) const {
    const double a = load(o.operand<T>(0) + at[0]), b = load(o.operand<T>(1) + at[1]),
                 x = load(o.operand<T>(2) + at[2]);
    store(o.result<T>() + i, static_cast<Wide<T>>(ops::m::beta_inc(a, b, x)));
  }
};

void run_betainc(const OpCall& call) {
  for_dtype<Domain::floats>(call.spec(2).dtype,
                            [&](auto* p) { launch_each<3>(call, BetaInc<std::remove_pointer_t<decltype(p)>>{}); });
}
constexpr PluginKernel kernels[] = {{"betainc", run_betainc}};

}  // namespace

Kernels betainc_kernels() { return {kernels, 1}; }

}  // namespace kassette::cuda
