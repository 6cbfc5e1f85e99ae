// ops/attention/attention.cpp - scaled dot-product attention: rules, and gradients of any order. The first is an op of
// its own, which computes the weights again; those of higher order are compositions that hold them.
#include "ops/attention/attention.h"

#include <limits>

#include "core/text.h"
#include "ops/attention/attention_shape.h"
#include "ops/engine/dims.h"
#include "ops/engine/expr.h"
#include "ops/engine/stop.h"

namespace kassette::ops {
namespace {

constexpr const char* kNames[] = {"query", "key", "value", "mask"};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

DType wide_of(DType d) { return d.size() < 4 ? float32 : d; }
std::int64_t dim_of(const TensorSpec& x, int i) { return x.rank < 0 ? -1 : x.dims[i]; }
std::int64_t known(std::int64_t a, std::int64_t b) { return a >= 0 ? a : b; }

void check_pair(const OpCall& call, int a, int axis_a, int b, int axis_b, const char* what) {
  if (differ(dim_of(call.spec(a), axis_a), dim_of(call.spec(b), axis_b)))
    fail<ValueError>({call.op.name, kNames[b]}, "has shape ", call.spec(b), " and ", kNames[a], " ", call.spec(a),
                     kExpected, "they must have the same ", what);
}
void check_mask(const OpCall& call, const TensorSpec& shape) {
  const TensorSpec& m = call.spec(3);
  if (!m.dtype.is_bool() && m.dtype != call.spec(0).dtype)
    fail<TypeError>({call.op.name, "mask"}, "is ", m.dtype, " and query ", call.spec(0).dtype, kExpected,
                    "it must be bool, or have the dtype of query");
  bool fits = m.rank <= 4;
  for (int i = 0; fits && i < m.rank; ++i) fits = m.dims[i] == 1 || !differ(m.dims[i], shape.dims[4 - m.rank + i]);
  if (!fits)
    fail<ValueError>({call.op.name, "mask"}, "has shape ", m, kExpected, "it must broadcast to ", shape,
                     ", (batch, heads, queries, keys)");
}
void attention_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec &q = call.spec(0), &k = call.spec(1), &v = call.spec(2);
  if (!q.dtype.is_float()) fail_not_float({call.op.name, "query"}, q.dtype);
  for (int i = 0; i < 3; ++i) {
    if (call.spec(i).dtype != q.dtype)
      fail<TypeError>({call.op.name, kNames[i]}, "is ", call.spec(i).dtype, " and query ", q.dtype, kRemedy,
                      "cast one of them (K::cast)");
    if (call.spec(i).rank >= 0 && call.spec(i).rank != 4)
      fail<ValueError>({call.op.name, kNames[i]}, "has shape ", call.spec(i), kExpected,
                       "it must be (batch, length, heads, width)");
  }
  for (int i = 1; i < 3; ++i) {
    check_pair(call, 0, 0, i, 0, "batch");
    check_pair(call, 0, 2, i, 2, "heads");
  }
  check_pair(call, 0, 3, 1, 3, "width");
  check_pair(call, 1, 1, 2, 1, "length");
  TensorSpec shape;
  shape.dtype = wide_of(q.dtype);
  shape.rank = 4;
  shape.dims[0] = known(known(dim_of(q, 0), dim_of(k, 0)), dim_of(v, 0));
  shape.dims[1] = known(known(dim_of(q, 2), dim_of(k, 2)), dim_of(v, 2));
  shape.dims[2] = dim_of(q, 1);
  shape.dims[3] = known(dim_of(k, 1), dim_of(v, 1));
  if (call.attrs.as<AttentionAttrs>().masked) check_mask(call, shape);
  out[1].set(shape);
  out[1].rank = 3;
  out[0].set(shape);
  out[0].dtype = q.dtype;
  out[0].dims[1] = shape.dims[2];
  out[0].dims[2] = shape.dims[1];
  out[0].dims[3] = dim_of(v, 3);
}
/// Inputs: dy, query, key, value, the result, its logarithms and perhaps the mask.
void attention_grad_rule(const OpCall& call, TensorSpec* out) {
  for (int i = 0; i < 3; ++i) out[i].set(call.spec(i + 1));
}

/// The matrices of attention and of its gradient, with heads first.
struct Matrices {
  Tensor q, k, v, dy, p, dp, ds;
  double scale;
  Matrices(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, const Tensor& cotangent,
           const AttentionAttrs& attrs)
      : q(heads_first(query)), k(heads_first(key)), v(heads_first(value)), dy(heads_first(cotangent)),
        p(attention_weights(query, key, mask, attrs.scale, attrs.causal)), dp(matmul(dy, v, false, true, Cotangent::a)),
        ds(jacobian(dp)), scale(attrs.scale) {}
  /// The adjoint of softmax: p (x - sum(x p)).
  Tensor jacobian(const Tensor& x) const { return mul_no_nan(x - total(x), p); }
  Tensor total(const Tensor& x) const { return sum(mul_no_nan(x, p), -1, /*keepdims=*/true); }
};

void attention_vjp(const VjpContext& ctx) {
  const auto& attrs = ctx.attrs.as<AttentionAttrs>();
  const Tensor& dy = ctx.dy(0);
  const Tensor mask = attrs.masked ? ctx.in(3) : Tensor();
  if (!dy.defined()) return;
  if (ctx.wants(0) || ctx.wants(1) || ctx.wants(2)) {
    const Tensor q = ctx.in(0), k = ctx.in(1), v = ctx.in(2), y = ctx.out(0), logs = ctx.out(1);
    const In in[7] = {dy, q, k, v, y, logs, mask};
    Tensor out[3];
    apply(attention_grad_op, ctx.attrs, in, attrs.masked ? 7 : 6, out, 3);
    for (int i = 0; i < 3; ++i)
      if (ctx.wants(i)) ctx.din(i) = out[i];
  }
  if (attrs.masked && mask.dtype().is_float() && ctx.wants(3))
    ctx.din(3) = sum_to_like(Matrices(ctx.in(0), ctx.in(1), ctx.in(2), mask, dy, attrs).ds, mask);
}
// With p = softmax(s), s = scale q k^T + mask, dp = dy v^T and ds = p (dp - sum(dp p)) the op's results are scale ds k,
// scale ds^T q and p^T dy. Their cotangents a, b and c meet ds in scale (a k^T + q b^T), and p in dy c^T.
void attention_grad_vjp(const VjpContext& ctx) {
  const auto& attrs = ctx.attrs.as<AttentionAttrs>();
  const Tensor mask = attrs.masked ? ctx.in(6) : Tensor();
  const Matrices m(ctx.in(1), ctx.in(2), ctx.in(3), mask, ctx.in(0), attrs);
  auto cotangent = [&](int i) {
    return ctx.dy(i).defined() ? heads_first(ctx.dy(i)) : zeros_of(i == 0 ? m.q : i == 1 ? m.k : m.v);
  };
  const Tensor a = cotangent(0), b = cotangent(1), c = cotangent(2);
  constexpr auto kA = Cotangent::a, kB = Cotangent::b;
  const Tensor to_ds = (matmul(a, m.k, false, true, kA) + matmul(m.q, b, false, true, kB)) * m.scale;
  const Tensor to_dp = m.jacobian(to_ds);
  const Tensor to_p =
      mul_no_nan(to_ds, m.dp - m.total(m.dp)) - mul_no_nan(m.total(to_ds), m.dp) + matmul(m.dy, c, false, true, kB);
  const Tensor to_s = m.jacobian(to_p);
  if (ctx.wants(0)) ctx.din(0) = heads_first(matmul(m.p, c, false, false, kB) + matmul(to_dp, m.v, false, false, kA));
  if (ctx.wants(1))
    ctx.din(1) = heads_first((matmul(m.ds, b, false, false, kB) + matmul(to_s, m.k, false, false, kA)) * m.scale);
  if (ctx.wants(2))
    ctx.din(2) = heads_first((matmul(m.ds, a, true, false, kB) + matmul(to_s, m.q, true, false, kA)) * m.scale);
  if (ctx.wants(3)) ctx.din(3) = heads_first(matmul(to_dp, m.dy, true, false, kA));
  if (attrs.masked && mask.dtype().is_float() && ctx.wants(6)) ctx.din(6) = sum_to_like(to_s, mask);
}

}  // namespace

constinit const OpDef attention_op{.name = "attention",
                                   .rule = attention_rule,
                                   .cpu = attention_kernel,
                                   .vjp = attention_vjp,
                                   .saves_in = 0b1111,
                                   .saves_out = 0b11,
                                   .n_out = 2,
                                   .inputs = "query key value mask"};
constinit const OpDef attention_grad_op{.name = "attention_grad",
                                        .rule = attention_grad_rule,
                                        .cpu = attention_grad_kernel,
                                        .vjp = attention_grad_vjp,
                                        .saves_in = 0b1001111,
                                        .n_out = 3,
                                        .inputs = "dy query key value y logs mask"};

Tensor heads_first(const Tensor& x) { return permute(x, {0, 2, 1, 3}); }

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, double scale,
                 bool causal) {
  const In in[4] = {query, key, value, mask};
  Tensor out[2];
  apply(attention_op, AttentionAttrs{scale, causal, mask.defined()}, in, mask.defined() ? 4 : 3, out, 2);
  return out[0];
}
Tensor attention_weights(const Tensor& query, const Tensor& key, const Tensor& mask, double scale, bool causal) {
  Tensor s = matmul(heads_first(query), heads_first(key), false, true) * scale;
  if (mask.defined()) s = mask.dtype().is_bool() ? where(mask, s, -kInfinity) : s + mask;
  if (causal) {
    const Tensor ones = zeros_of(s) + 1.0;
    s = where(less_equal(cumsum(ones, -1), cumsum(ones, -2)), s, -kInfinity);
  }
  const Tensor most = stop_gradient(max(s, -1, /*keepdims=*/true));
  const Tensor e = exp(s - where(equal(most, -kInfinity), 0.0, most)), total = sum(e, -1, /*keepdims=*/true);
  return e / where(equal(total, 0.0), 1.0, total);
}

}  // namespace kassette::ops
