// ops/attention/attention.h - scaled dot-product attention as functions of tensors.
#pragma once
#include "ops/engine/op.h"

namespace kassette::ops {

struct AttentionAttrs {
  static constexpr const char* attrs_name = "attention";
  double scale;
  bool causal;  // query t sees the keys 0 to t
  bool masked;  // there is a mask, the last input
};

/// softmax(query key^T scale + mask) value for each sample and head. query is (batch, queries, heads, width), key and
/// value are (batch, keys, heads, width), and so is the result with its queries. The mask, which may be empty,
/// broadcasts to (batch, heads, queries, keys): bool, false where a key is not seen, or numbers that are added. A query
/// that sees no key gives zeros.
Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, double scale,
                 bool causal);
/// The weights alone, (batch, heads, queries, keys).
Tensor attention_weights(const Tensor& query, const Tensor& key, const Tensor& mask, double scale, bool causal);
/// A tensor of (batch, n, heads, width) with heads before n, and back.
Tensor heads_first(const Tensor& x);

/// attention_op has a second output, the logarithms of the sums of exponentials, (batch, heads, queries).
extern const OpDef attention_op, attention_grad_op;

}  // namespace kassette::ops
