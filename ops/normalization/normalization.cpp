// ops/normalization/normalization.cpp - batch normalisation: one op forward, one op backward, and their adjoints to any
// order.
#include "ops/normalization/normalization.h"

#include "core/text.h"
#include "ops/engine/axes.h"
#include "ops/engine/expr.h"
#include "ops/normalization/normalization_kernels.h"
#include "ops/reduce/variance.h"

namespace kassette::ops {
namespace {

// ---- rules ----------------------------------------------------------------------------------------------------------
DType stat_dtype(DType d) { return d.size() < 4 ? float32 : d; }

/// Throws TypeError unless input i has that dtype, and ValueError unless it broadcasts to `shape`, that of x or of its
/// statistics, as far as both shapes are known.
void check_parameter(const OpCall& call, int i, const char* name, DType dtype, const TensorSpec& shape) {
  const TensorSpec &p = call.spec(i), &x = call.spec(0);
  if (p.dtype != dtype)
    fail<TypeError>({call.op.name}, "x is ", x.dtype, ", ", name, " is ", p.dtype, kRemedy,
                    "cast one of them (K::cast)");
  bool ok = p.rank < 0 || shape.rank < 0 || p.rank <= shape.rank;
  for (int k = 0; ok && shape.rank >= 0 && k < p.rank; ++k)
    ok = p.dims[k] == 1 || !differ(p.dims[k], shape.dims[shape.rank - p.rank + k]);
  if (!ok)
    fail<ValueError>({call.op.name}, name, " ", p, " does not broadcast to ", shape, ", the shape of x",
                     &shape == &x ? "" : text(' ', x, " without the reduced axes"));
}
void check_float(const OpCall& call, const TensorSpec& x) {
  if (!x.dtype.is_float()) fail_not_float({call.op.name, "x"}, x.dtype);
}

void normalize_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec& x = call.spec(0);
  check_float(call, x);
  out[0].set(x);
  reduced_spec(call.op.name, call.attrs.as<NormalizeAttrs>().axes, x, &out[1], "reduction_axes");
  int next = 1;
  if (call.attrs.as<NormalizeAttrs>().gamma) check_parameter(call, next++, "gamma", x.dtype, out[1]);
  if (call.attrs.as<NormalizeAttrs>().beta) check_parameter(call, next++, "beta", x.dtype, out[1]);
  out[1].dtype = stat_dtype(x.dtype);
  out[2].set(out[1]);
  out[3].set(out[1]);
}
void normalize_grad_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec &x = call.spec(1), &mean = call.spec(2);
  out[0].set(x);
  out[1].set(mean);
  out[1].dtype = x.dtype;
  out[2].set(out[1]);
}
void center_scale_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec& x = call.spec(0);
  check_float(call, x);
  constexpr const char* kNames[] = {"x", "mean", "gamma / sqrt(var + epsilon)", "beta"};
  for (int i = 1; i < call.n_in; ++i) check_parameter(call, i, kNames[i], stat_dtype(x.dtype), x);
  out->set(x);
}

// ---- adjoints -------------------------------------------------------------------------------------------------------
void add_to(Tensor& sum, Tensor term) { sum = sum.defined() ? sum + term : std::move(term); }

/// along(): a statistic repeated along the reduced axes of x. shared_along(): the same, divided by the number of
/// repetitions.
Tensor along(const Tensor& t, const Tensor& x, AxisSet axes) { return unreduce(t, x, axes); }
Tensor shared_along(const Tensor& t, const Tensor& x, AxisSet axes) {
  return apply1(unreduce_op, ReduceAttrs{axes, /*divide=*/true}, {t, x});
}

/// dx, dgamma, dbeta.
struct Grads {
  Tensor out[3];
  Grads(const Attrs& attrs, const Tensor& dy, const Tensor& x, const Tensor& mean, const Tensor& var,
        const Tensor& rest, const Tensor& gamma) {
    In in[6] = {dy, x, mean, var, rest, gamma};
    apply(normalize_batch_grad_op, attrs, in, gamma.defined() ? 6 : 5, out, 3);
  }
};

void normalize_vjp(const VjpContext& ctx) {
  int gamma_in = gamma_at(ctx.attrs, 1), beta_in = beta_at(ctx.attrs, 1);
  Tensor x = ctx.in(0), gamma = gamma_in > 0 ? ctx.in(gamma_in) : Tensor();
  if (ctx.dy(0).defined()) {
    NormalizeAttrs attrs = ctx.attrs.as<NormalizeAttrs>();
    attrs.beta = false;
    Grads g(attrs, ctx.dy(0), x, ctx.out(1), ctx.out(2), ctx.out(3), gamma);
    if (ctx.wants(0)) ctx.din(0) = g.out[0];
    if (gamma_in > 0 && ctx.wants(gamma_in)) ctx.din(gamma_in) = g.out[1];
    if (beta_in > 0 && ctx.wants(beta_in)) ctx.din(beta_in) = g.out[2];
  }
  if (!ctx.wants(0)) return;
  if (ctx.dy(1).defined())
    add_to(ctx.din(0), cast(shared_along(ctx.dy(1), x, ctx.attrs.as<NormalizeAttrs>().axes), x.dtype()));
  if (ctx.dy(2).defined()) {
    Tensor centered = center(cast(x, ctx.dy(2).dtype()), ctx.attrs.as<NormalizeAttrs>().axes);
    add_to(ctx.din(0), cast(mul_no_nan(shared_along(ctx.dy(2), x, ctx.attrs.as<NormalizeAttrs>().axes), 2.0 * centered),
                            x.dtype()));
  }
}

/// The rounding of the mean, an output of its own, has no cotangent: it is a part of the mean.
/// With h = (x - mean) s, s = 1 / sqrt(var + epsilon), and N elements in a channel, the op computes dx = gamma s (dy -
/// sum(dy) / N - h sum(dy h) / N), dgamma = sum(dy h), dbeta = sum(dy). It is linear in dy, and symmetric: its adjoint
/// in dy is itself.
void normalize_grad_vjp(const VjpContext& ctx) {
  const AxisSet axes = ctx.attrs.as<NormalizeAttrs>().axes;
  bool has_gamma = ctx.attrs.as<NormalizeAttrs>().gamma;
  Tensor x = ctx.in(1), mean = ctx.in(2), var = ctx.in(3), rest = ctx.in(4), gamma = has_gamma ? ctx.in(5) : Tensor();
  DType narrow = x.dtype(), wide = mean.dtype();
  auto widen = [&](const Tensor& t) { return cast(t, wide); };
  Tensor s = 1.0 / sqrt(var + ctx.attrs.as<NormalizeAttrs>().epsilon),
         centered = (widen(x) - along(mean, x, axes)) - along(rest, x, axes), h = centered * along(s, x, axes),
         dy = widen(ctx.in(0));
  const Tensor &u = ctx.dy(0), &v = ctx.dy(1), &w = ctx.dy(2);
  Tensor ddy, dh, ds;  // cotangents of dy, of h, and of s beside its part in h
  if (u.defined()) {
    Grads g(ctx.attrs, u, x, mean, var, rest, gamma);
    ddy = widen(g.out[0]);
    Tensor uw = widen(u), factor = has_gamma ? widen(gamma) * s : s, sum_dyh = widen(ctx.out(1)),
           sum_uh = widen(g.out[1]);
    dh = -(mul_no_nan(dy, shared_along(mul_no_nan(sum_uh, factor), x, axes)) +
           mul_no_nan(uw, shared_along(mul_no_nan(sum_dyh, factor), x, axes)));
    Tensor left = dy - shared_along(widen(ctx.out(2)), x, axes) - mul_no_nan(shared_along(sum_dyh, x, axes), h);
    Tensor inner = sum_by(mul_no_nan(uw, left), axes);
    if (has_gamma && ctx.wants(5)) ctx.din(5) = cast(mul_no_nan(inner, s), narrow);
    ds = has_gamma ? mul_no_nan(inner, widen(gamma)) : inner;
  }
  if (v.defined()) {
    Tensor all = along(widen(v), x, axes);
    add_to(ddy, mul_no_nan(all, h));
    add_to(dh, mul_no_nan(all, dy));
  }
  if (w.defined()) add_to(ddy, along(widen(w), x, axes));
  if (ctx.wants(0) && ddy.defined()) ctx.din(0) = cast(ddy, narrow);
  if (!dh.defined()) return;
  if (ctx.wants(1)) ctx.din(1) = cast(mul_no_nan(dh, along(s, x, axes)), narrow);
  if (ctx.wants(2)) ctx.din(2) = -mul_no_nan(sum_by(dh, axes), s);
  if (ctx.wants(3)) {
    add_to(ds, sum_by(mul_no_nan(dh, centered), axes));
    ctx.din(3) = mul_no_nan(ds, s * s * s * -0.5);
  }
}

void center_scale_vjp(const VjpContext& ctx) {
  DType narrow = ctx.spec(0).dtype, wide = stat_dtype(narrow);
  Tensor dy = cast(ctx.dy(), wide);
  if (ctx.wants(0) || ctx.wants(1)) {
    Tensor g = mul_no_nan(dy, ctx.in(2));
    if (ctx.wants(0)) ctx.din(0) = cast(g, narrow);
    if (ctx.wants(1)) ctx.din(1) = -g;
  }
  if (ctx.wants(2)) ctx.din(2) = mul_no_nan(dy, cast(ctx.in(0), wide) - ctx.in(1));
  if (ctx.n_in() > 3 && ctx.wants(3)) ctx.din(3) = dy;
}

}  // namespace

constinit const OpDef normalize_batch_op{.name = "normalize_batch_in_training",
                                         .rule = normalize_rule,
                                         .cpu = normalize_batch_kernel,
                                         .vjp = normalize_vjp,
                                         .saves_in = 3,
                                         .saves_out = 14,
                                         .n_out = 4};
constinit const OpDef normalize_batch_grad_op{.name = "normalize_batch_in_training_grad",
                                              .rule = normalize_grad_rule,
                                              .cpu = normalize_batch_grad_kernel,
                                              .vjp = normalize_grad_vjp,
                                              .saves_in = 63,
                                              .saves_out = 6,
                                              .n_out = 3};
constinit const OpDef center_scale_op{.name = "batch_normalization",
                                      .rule = center_scale_rule,
                                      .cpu = center_scale_kernel,
                                      .vjp = center_scale_vjp,
                                      .saves_in = 7};

Normalized normalize_batch(const Tensor& x, const Tensor& gamma, const Tensor& beta, AxisSet axes, double epsilon) {
  const NormalizeAttrs attrs{axes, epsilon, gamma.defined(), beta.defined()};
  In in[3] = {x};
  int n = 1;
  for (const Tensor* t : {&gamma, &beta})
    if (t->defined()) in[n++] = *t;
  Tensor out[4];
  apply(normalize_batch_op, attrs, in, n, out, 4);
  return {std::move(out[0]), std::move(out[1]), std::move(out[2])};
}

Tensor center_scale(const Tensor& x, const Tensor& mean, const Tensor& scale, const Tensor& shift) {
  if (shift.defined()) return apply1(center_scale_op, {x, mean, scale, shift});
  return apply1(center_scale_op, {x, mean, scale});
}

}  // namespace kassette::ops
