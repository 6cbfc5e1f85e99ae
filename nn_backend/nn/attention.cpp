// nn_backend/nn/attention.cpp - scaled dot-product attention.
#include <kassette/nn/attention.h>

#include <kassette/backend/random.h>

#include <cmath>
#include <limits>

#include "nn_backend/nn/arguments.h"
#include "ops/attention/attention.h"
#include "ops/engine/expr.h"
#include "ops/shape/checked.h"

namespace kassette::nn {

using namespace ops;

namespace {

constexpr const char* kWhat = "dot_product_attention";

bool shares_heads(const TensorSpec& x, const TensorSpec& query) {
  return x.rank == 4 && query.rank == 4 && x.dims[2] > 0 && query.dims[2] >= 0 && x.dims[2] != query.dims[2] &&
         query.dims[2] % x.dims[2] == 0;
}
/// x with as many heads as query has, each repeated for those in a row that share it.
Tensor shared_heads(const char* name, const Tensor& x, const Tensor& query) {
  const TensorDesc &d = Access::desc(x), &q = Access::desc(query);
  if (shares_heads(d, q)) return repeat_elements(x, q.dims[2] / d.dims[2], 2);
  return d.known() && q.known() ? x : checked(x, query, [name](const TensorSpec& own, const TensorSpec& of_query) {
    if (shares_heads(own, of_query))
      fail<ValueError>({kWhat, name}, "has shape ", own, " and query ", of_query, kExpected,
                       "the heads must be known when a function is made, unless they are as many");
  });
}
/// Bias and mask as one: what is not seen is -inf.
Tensor joined_mask(const AttentionOptions& options, DType dtype) {
  if (options.mask.defined() && !options.mask.dtype().is_bool())
    fail<TypeError>({kWhat, "mask"}, "is ", options.mask.dtype(), kExpected, "it must be bool", kRemedy,
                    "numbers that are added to the scores are `bias`");
  if (!options.bias.defined()) return options.mask;
  check_floats(options.bias, {kWhat, "bias"});
  const Tensor bias = cast(options.bias, dtype);
  return options.mask.defined() ? where(options.mask, bias, -std::numeric_limits<double>::infinity()) : bias;
}
double scale_of(const AttentionOptions& options, const Tensor& query) {
  if (!options.scale.is_none()) return number_as(float64, options.scale, {kWhat, "scale"});
  const TensorDesc& q = Access::desc(query);
  if (q.rank >= 1 && q.dims[q.rank - 1] >= 0)
    return 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, q.dims[q.rank - 1])));
  fail<ValueError>({kWhat, "query"}, "of shape ", query.shape(), kExpected, "its width must be known", kRemedy,
                   "give a scale");
}

}  // namespace

Tensor dot_product_attention(const Operand& query, const Operand& key, const Operand& value,
                             const AttentionOptions& options) {
  return attribute_errors(kWhat, [&] {
    const ArrayArg q(query, {kWhat, "query"});
    check_floats(q, {kWhat, "query"});
    const DType own = q.tensor().dtype();
    const ArrayArg k(key, {kWhat, "key"}, own), v(value, {kWhat, "value"}, own);
    const DType dtype = numpy::promoted(numpy::promoted(own, k.tensor().dtype(), kWhat), v.tensor().dtype(), kWhat);
    const Tensor a = cast(q, dtype), b = shared_heads("key", cast(k, dtype), a),
                 c = shared_heads("value", cast(v, dtype), a);
    const Tensor mask = joined_mask(options, dtype);
    const double scale = scale_of(options, a);
    if (!(options.dropout >= 0 && options.dropout < 1))
      fail<ValueError>({kWhat, "dropout"}, "is ", options.dropout, kExpected, "it must be at least 0 and below 1");
    if (options.dropout == 0) return attention(a, b, c, mask, scale, options.is_causal);
    const Tensor weights = attention_weights(a, b, mask, scale, options.is_causal);
    return heads_first(matmul(backend::dropout(weights, options.dropout, None, options.seed), heads_first(c)));
  });
}

}  // namespace kassette::nn
