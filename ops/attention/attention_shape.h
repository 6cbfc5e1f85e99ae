// ops/attention/attention_shape.h - the sizes of attention, and where its mask has the number of a query and a key. For
// the kernels of the CPU and of CUDA.
#pragma once
#include "ops/attention/attention.h"
#include "ops/math/math.h"

namespace kassette::ops {

struct AttentionShape {
  std::int64_t batch, heads, queries, keys, width, value_width;
  std::int64_t mask_strides[4] = {0, 0, 0, 0};  // by sample, head, query and key
  double scale;
  bool causal, additive = false;
  AttentionShape(const TensorSpec& q, const TensorSpec& k, const TensorSpec& v, const TensorSpec* mask,
                 const AttentionAttrs& attrs)
      : batch(q.dims[0]), heads(q.dims[2]), queries(q.dims[1]), keys(k.dims[1]), width(q.dims[3]),
        value_width(v.dims[3]), scale(attrs.scale), causal(attrs.causal) {
    if (!mask) return;
    additive = mask->dtype.is_float();
    std::int64_t stride = 1;
    for (int i = mask->rank - 1; i >= 0; --i) {
      if (mask->dims[i] != 1) mask_strides[4 - mask->rank + i] = stride;
      stride *= mask->dims[i];
    }
  }
  /// The first element of a row of x (batch, n, heads, w).
  KASSETTE_FN std::int64_t row(std::int64_t b, std::int64_t i, std::int64_t h, std::int64_t n, std::int64_t w) const {
    return ((b * n + i) * heads + h) * w;
  }
  KASSETTE_FN std::int64_t mask_at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    return b * mask_strides[0] + h * mask_strides[1] + i * mask_strides[2] + j * mask_strides[3];
  }
  /// The number of keys that query i may see.
  KASSETTE_FN std::int64_t seen(std::int64_t i) const { return causal && i + 1 < keys ? i + 1 : keys; }
};

void attention_kernel(const OpCall& call);
void attention_grad_kernel(const OpCall& call);

}  // namespace kassette::ops
