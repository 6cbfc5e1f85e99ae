// ops/elementwise/betainc.cpp - the regularized incomplete beta function, an elementwise op of three operands.
#include "core/text.h"
#include "ops/math/beta_inc.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/ternary.h"
#include "ops/engine/expr.h"

namespace kassette::ops {
namespace {

/// Bits 0, 1, 2 of kMask: a, b, x is a single element.
template <class T, int kMask>
void loop(const void* const* in, void* out, std::int64_t n, const Attrs&) {
  auto* a = static_cast<const T*>(in[0]);
  auto* b = static_cast<const T*>(in[1]);
  auto* x = static_cast<const T*>(in[2]);
  auto* o = static_cast<T*>(out);
  const T one_a = *a, one_b = *b, one_x = *x;  // `out` may be one of them
  for (std::int64_t i = 0; i < n; ++i)
    o[i] = static_cast<T>(m::beta_inc(kMask & 1 ? one_a : a[i], kMask & 2 ? one_b : b[i], kMask & 4 ? one_x : x[i]));
}

template <class T>
constexpr ElementwiseFns set{
    {loop<T, 0>, loop<T, 1>, loop<T, 2>, loop<T, 3>, loop<T, 4>, loop<T, 5>, loop<T, 6>, loop<T, 7>}};

const ElementwiseFns* find(DType dtype) {
  return dtype == float32 ? &set<float> : dtype == float64 ? &set<double> : nullptr;
}
constexpr ElementwiseLoops loops{find, 3, 512, false};

void rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec &a = call.spec(0), &b = call.spec(1), &x = call.spec(2);
  if (a.dtype != b.dtype) fail_dtypes(call.op, a.dtype, b.dtype);
  if (b.dtype != x.dtype) fail_dtypes(call.op, b.dtype, x.dtype);
  check_domain(call, Domain::floats);
  TensorSpec both;
  broadcast_spec("betainc", a, b, &both);
  broadcast_spec("betainc", both, x, out);
  out->dtype = x.dtype;
}

/// x^(a - 1) (1 - x)^(b - 1) / B(a, b).
Tensor density(const Tensor& a, const Tensor& b, const Tensor& x) {
  const Tensor powers = mul_no_nan(a - 1.0, log(x)) + mul_no_nan(b - 1.0, log1p(-x));
  return exp(powers + lgamma(a + b) - lgamma(a) - lgamma(b));
}
void gradient(const VjpContext& ctx) {
  if (ctx.wants(2)) ctx.din(2) = mul_no_nan(ctx.dy(), density(ctx.in(0), ctx.in(1), ctx.in(2)));
}

}  // namespace

constinit const OpDef betainc_op{.name = "betainc",
                                 .rule = rule,
                                 .cpu = elementwise_kernel,
                                 .vjp = gradient,
                                 .saves_in = 7,
                                 .loops = &loops,
                                 .inputs = "a b x"};

Tensor betainc(const Tensor& a, const Tensor& b, const Tensor& x) { return apply1(betainc_op, {a, b, x}); }

}  // namespace kassette::ops
