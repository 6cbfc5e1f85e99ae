// ops/normalization_kernels.h - what the rows of batch normalisation and their kernels share.
#pragma once
#include "ops/op.h"

namespace kassette {

/// attrs.b of normalize_batch_row and its gradient: which of the optional inputs are there.
inline constexpr std::int64_t kGamma = 1, kBeta = 2;
/// Where gamma and beta are among the inputs; -1 where they are not. `first`: how many inputs are always there.
inline int gamma_at(const Attrs& attrs, int first) { return attrs.b & kGamma ? first : -1; }
inline int beta_at(const Attrs& attrs, int first) { return attrs.b & kBeta ? first + ((attrs.b & kGamma) != 0) : -1; }

void normalize_batch_kernel(const Call& call);
void normalize_batch_grad_kernel(const Call& call);
void center_scale_kernel(const Call& call);

}  // namespace kassette
