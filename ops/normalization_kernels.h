// ops/normalization_kernels.h - what the rows of batch normalisation and their kernels share.
#pragma once
#include "ops/op.h"

namespace kassette {

/// The attributes of normalize_batch_op and of its gradient.
struct NormalizeAttrs {
  static constexpr const char* attrs_name = "normalize_batch";
  std::int64_t axes;  // as encode_axes gives them
  double epsilon;
  bool gamma, beta;  // which of the optional inputs are there
};
/// Where gamma and beta are among the inputs; -1 where they are not. `first`: how many inputs are always there.
inline int gamma_at(const Attrs& attrs, int first) { return attrs.as<NormalizeAttrs>().gamma ? first : -1; }
inline int beta_at(const Attrs& attrs, int first) {
  const NormalizeAttrs& a = attrs.as<NormalizeAttrs>();
  return a.beta ? first + a.gamma : -1;
}

void normalize_batch_kernel(const OpCall& call);
void normalize_batch_grad_kernel(const OpCall& call);
void center_scale_kernel(const OpCall& call);

}  // namespace kassette
