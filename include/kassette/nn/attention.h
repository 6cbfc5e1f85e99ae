// include/kassette/nn/attention.h - scaled dot-product attention.
#ifndef KASSETTE_NN_ATTENTION_H
#define KASSETTE_NN_ATTENTION_H
#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace nn {

/// The arguments of dot_product_attention by name: `nn::dot_product_attention(q, k, v, {.is_causal = true})`.
struct AttentionOptions {
  Named only_by_name{0};
  Tensor bias = {};        // floats that are added to the scores
  Tensor mask = {};        // bool: false where a key is not seen
  Scalar scale = None;     // of the scores; 1 / sqrt(width) if None
  bool is_causal = false;  // query t sees keys 0 to t
  double dropout = 0;      // the probability that a weight becomes 0; the others are divided by 1 - dropout
  Scalar seed = None;      // of dropout
};
/// softmax(query key^T scale + bias) value for each sample and head, where query is (batch, queries, heads, width), key
/// (batch, keys, heads, width) and value (batch, keys, heads, value width); the result is (batch, queries, heads, value
/// width). bias and mask broadcast to (batch, heads, queries, keys). A query that sees no key gives zeros. Key and
/// value may have fewer heads than query, by a factor: heads in a row share one.
///
/// Half types are computed in float32. The memory is linear in the numbers of queries and keys, for the gradient as
/// well, except with dropout, for the gradient of a bias and for gradients of higher order, which hold the weights.
/// Throws ValueError for shapes that do not fit, TypeError for dtypes that differ.
KASSETTE_API Tensor dot_product_attention(const Operand& query, const Operand& key, const Operand& value,
                                          const AttentionOptions& options = {});

}  // namespace nn
}  // namespace kassette

#endif  // KASSETTE_NN_ATTENTION_H
