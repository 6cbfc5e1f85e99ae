// ops/random/rejection.cu - draws of the gamma, Poisson and binomial distributions on CUDA.
#include <cstring>

#include "ops/elementwise/elementwise.cuh"
#include "ops/random/random_attrs.h"
#include "ops/random/rejection.h"

namespace kassette::cuda {
namespace {

template <class T>
struct Rejection {
  RandomKey key;
  RejectionLaw law;
  __device__ void operator()(const Operands& o, const std::int64_t (&at)[2], std::int64_t i) const {
    const double a = load(o.operand<T>(0) + at[0]), b = load(o.operand<T>(1) + at[1]);
    store(o.result<T>() + i, static_cast<Wide<T>>(ops::rejection_sample(law, key, i, a, b)));
  }
};

void run_rejection(const OpCall& call) {
  RandomKey key;
  std::memcpy(&key, call.in[0].data, sizeof key);
  const RejectionLaw law = call.attrs.as<RejectionAttrs>().law;
  const TensorSpec* specs[] = {&call.spec(2), &call.spec(3)};
  Operands o = broadcast<2>(specs, *call.out[0]);
  for (int k = 0; k < 2; ++k) o.in[k] = call.in[2 + k].data;
  o.out = call.out[0]->data();
  for_dtype<Domain::floats>(call.out[0]->dtype, [&](auto* p) {
    launch_each<2>(call, Rejection<std::remove_pointer_t<decltype(p)>>{key, law}, o);
  });
}
constexpr PluginKernel kernels[] = {{"random_rejection", run_rejection}};

}  // namespace

Kernels rejection_kernels() { return {kernels, 1}; }

}  // namespace kassette::cuda
