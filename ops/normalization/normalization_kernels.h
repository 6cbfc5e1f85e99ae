// ops/normalization/normalization_kernels.h - the attributes and CPU kernels of the ops of batch normalisation.
#pragma once
#include "ops/engine/axes.h"

namespace kassette::ops {

/// The attributes of normalize_batch_op and of its gradient.
struct NormalizeAttrs {
  static constexpr const char* attrs_name = "normalize_batch";
  AxisSet axes;
  double epsilon;
  bool gamma, beta;  // whether the call has these inputs
};
/// The index of the input gamma or beta; -1 if the call has none. `first` is the number of inputs that every call has.
inline int gamma_at(const Attrs& attrs, int first) { return attrs.as<NormalizeAttrs>().gamma ? first : -1; }
inline int beta_at(const Attrs& attrs, int first) {
  const NormalizeAttrs& a = attrs.as<NormalizeAttrs>();
  return a.beta ? first + a.gamma : -1;
}

void normalize_batch_kernel(const OpCall& call);
void normalize_batch_grad_kernel(const OpCall& call);
void center_scale_kernel(const OpCall& call);

}  // namespace kassette::ops
