// ops/random/rejection.cpp - draws from distributions whose parameters are tensors: gamma, Poisson, binomial.
#include "ops/random/rejection.h"

#include <cstring>
#include <type_traits>

#include "core/convert.h"
#include "devices/cpu/threads.h"
#include "ops/elementwise/elementwise.h"
#include "ops/engine/coalesce.h"
#include "ops/engine/dims.h"
#include "ops/engine/refusals.h"
#include "ops/random/generator.h"
#include "ops/random/random_attrs.h"

namespace kassette::ops {
namespace {

constexpr std::int64_t kGrain = 512;  // elements that are worth a thread

// Inputs: a key, the shape of the draw, and two parameters. All three shapes broadcast to the shape of the result, of
// which each element is drawn for itself.
void rejection_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec &a = call.spec(2), &b = call.spec(3);
  if (!a.dtype.is_float()) fail_not_float({call.op.name, "x"}, a.dtype);
  if (b.dtype != a.dtype) fail_dtypes(call.op, a.dtype, b.dtype);
  TensorSpec drawn, both;
  dims_from(call, 1, &drawn);
  drawn.dtype = a.dtype;
  broadcast_spec(call.op.name, drawn, a, &both);
  broadcast_spec(call.op.name, both, b, out);
  out->dtype = a.dtype;
}

void rejection_kernel(const OpCall& call) {
  const TensorDesc& out = *call.out[0];
  RandomKey key;
  std::memcpy(&key, call.in[0].data, sizeof key);
  const RejectionLaw law = call.attrs.as<RejectionAttrs>().law;
  std::int64_t strides[2][kMaxRank];
  for (int k = 0; k < 2; ++k) broadcast_strides(call.spec(2 + k), out, strides[k]);
  dispatch(out.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    if constexpr (std::is_floating_point_v<T> || kIsHalf<T>) {
      auto *a = call.in[2].as<T>(), *b = call.in[3].as<T>();
      T* to = call.out_as<T>();
      devices::parallel_for(out.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          std::int64_t at[2] = {0, 0}, rest = i;
          for (int d = out.rank - 1; d >= 0; --d) {
            for (int k = 0; k < 2; ++k) at[k] += rest % out.dims[d] * strides[k][d];
            rest /= out.dims[d];
          }
          to[i] = convert_one<T>(
              rejection_sample(law, key, i, convert_one<double>(a[at[0]]), convert_one<double>(b[at[1]])));
        }
      });
    }
  });
}

}  // namespace

constinit const OpDef random_rejection_op{
    .name = "random_rejection", .rule = rejection_rule, .cpu = rejection_kernel, .host = 3, .traits = kDraws};

Tensor random_rejection(const Tensor& key, const Tensor& dims, RejectionLaw law, const Tensor& a, const Tensor& b) {
  return apply1(random_rejection_op, RejectionAttrs{law}, {key, dims, a, b});
}

}  // namespace kassette::ops
