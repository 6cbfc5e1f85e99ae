// ops/normalization.cpp - batch normalisation: one op forward, one op backward, and their adjoints to any order.
#include "ops/normalization.h"

#include "core/text.h"
#include "ops/axes.h"
#include "ops/expr.h"
#include "ops/normalization_kernels.h"

namespace kassette::ops {
namespace {

// ---- rules ----------------------------------------------------------------------------------------------------------
DType stat_dtype(DType d) { return d.size() < 4 ? float32 : d; }

/// Throws TypeError unless input i has that dtype, and ValueError unless it broadcasts to `shape`, that of x or of its
/// statistics, as far as both shapes are known.
void check_parameter(const OpCall& call, int i, const char* name, DType dtype, const TensorSpec& shape) {
  const TensorSpec &p = call.spec(i), &x = call.spec(0);
  if (p.dtype != dtype)
    fail<TypeError>({call.op.name}, "x is ", x.dtype, ", ", name, " is ", p.dtype, "; cast one of them (K::cast)");
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
Tensor along(const Tensor& t, const Tensor& x, std::int64_t code) { return unreduce(t, x, code); }
Tensor shared_along(const Tensor& t, const Tensor& x, std::int64_t code) {
  return apply1(unreduce_op, ReduceAttrs{code, /*divide=*/true}, {t, x});
}

/// dx, dgamma, dbeta.
struct Grads {
  Tensor out[3];
  Grads(const Attrs& attrs, const Tensor& dy, const Tensor& x, const Tensor& mean, const Tensor& var,
        const Tensor& gamma) {
    In in[5] = {dy, x, mean, var, gamma};
    apply(normalize_batch_grad_op, attrs, in, gamma.defined() ? 5 : 4, out, 3);
  }
};

void normalize_vjp(const VjpContext& r) {
  int gamma_in = gamma_at(r.attrs, 1), beta_in = beta_at(r.attrs, 1);
  Tensor x = r.in(0), gamma = gamma_in > 0 ? r.in(gamma_in) : Tensor();
  if (r.dy(0).defined()) {
    NormalizeAttrs attrs = r.attrs.as<NormalizeAttrs>();
    attrs.beta = false;
    Grads g(attrs, r.dy(0), x, r.out(1), r.out(2), gamma);
    if (r.wants(0)) r.din(0) = g.out[0];
    if (gamma_in > 0 && r.wants(gamma_in)) r.din(gamma_in) = g.out[1];
    if (beta_in > 0 && r.wants(beta_in)) r.din(beta_in) = g.out[2];
  }
  if (!r.wants(0)) return;
  if (r.dy(1).defined()) add_to(r.din(0), cast(shared_along(r.dy(1), x, r.attrs.as<NormalizeAttrs>().axes), x.dtype()));
  if (r.dy(2).defined()) {
    Tensor centered = cast(x, r.dy(2).dtype()) - along(r.out(1), x, r.attrs.as<NormalizeAttrs>().axes);
    add_to(r.din(0), cast(2.0 * centered * shared_along(r.dy(2), x, r.attrs.as<NormalizeAttrs>().axes), x.dtype()));
  }
}

/// With h = (x - mean) s, s = 1 / sqrt(var + epsilon), and N elements in a channel, the op computes dx = gamma s (dy -
/// sum(dy) / N - h sum(dy h) / N), dgamma = sum(dy h), dbeta = sum(dy). It is linear in dy, and symmetric: its adjoint
/// in dy is itself.
void normalize_grad_vjp(const VjpContext& r) {
  std::int64_t code = r.attrs.as<NormalizeAttrs>().axes;
  bool has_gamma = r.attrs.as<NormalizeAttrs>().gamma;
  Tensor x = r.in(1), mean = r.in(2), var = r.in(3), gamma = has_gamma ? r.in(4) : Tensor();
  DType narrow = x.dtype(), wide = mean.dtype();
  auto widen = [&](const Tensor& t) { return cast(t, wide); };
  Tensor s = 1.0 / sqrt(var + r.attrs.as<NormalizeAttrs>().epsilon), centered = widen(x) - along(mean, x, code),
         h = centered * along(s, x, code), dy = widen(r.in(0));
  const Tensor &u = r.dy(0), &v = r.dy(1), &w = r.dy(2);
  Tensor ddy, dh, ds;  // cotangents of dy, of h, and of s beside its part in h
  if (u.defined()) {
    Grads g(r.attrs, u, x, mean, var, gamma);
    ddy = widen(g.out[0]);
    Tensor uw = widen(u), factor = has_gamma ? widen(gamma) * s : s, sum_dyh = widen(r.out(1)),
           sum_uh = widen(g.out[1]);
    dh = -(dy * shared_along(factor * sum_uh, x, code) + uw * shared_along(factor * sum_dyh, x, code));
    Tensor inner =
        sum_by(uw * (dy - shared_along(widen(r.out(2)), x, code) - h * shared_along(sum_dyh, x, code)), code);
    if (has_gamma && r.wants(4)) r.din(4) = cast(s * inner, narrow);
    ds = has_gamma ? widen(gamma) * inner : inner;
  }
  if (v.defined()) {
    Tensor all = along(widen(v), x, code);
    add_to(ddy, h * all);
    add_to(dh, dy * all);
  }
  if (w.defined()) add_to(ddy, along(widen(w), x, code));
  if (r.wants(0) && ddy.defined()) r.din(0) = cast(ddy, narrow);
  if (!dh.defined()) return;
  if (r.wants(1)) r.din(1) = cast(dh * along(s, x, code), narrow);
  if (r.wants(2)) r.din(2) = -(sum_by(dh, code) * s);
  if (r.wants(3)) {
    add_to(ds, sum_by(dh * centered, code));
    r.din(3) = ds * (s * s * s) * -0.5;
  }
}

void center_scale_vjp(const VjpContext& r) {
  DType narrow = r.spec(0).dtype, wide = stat_dtype(narrow);
  Tensor dy = cast(r.dy(), wide);
  if (r.wants(0) || r.wants(1)) {
    Tensor g = dy * r.in(2);
    if (r.wants(0)) r.din(0) = cast(g, narrow);
    if (r.wants(1)) r.din(1) = -g;
  }
  if (r.wants(2)) r.din(2) = dy * (cast(r.in(0), wide) - r.in(1));
  if (r.n_in() > 3 && r.wants(3)) r.din(3) = dy;
}

}  // namespace

constinit const OpDef normalize_batch_op{.name = "normalize_batch_in_training",
                                         .rule = normalize_rule,
                                         .cpu = normalize_batch_kernel,
                                         .vjp = normalize_vjp,
                                         .saves_in = 3,
                                         .saves_out = 6,
                                         .n_out = 3};
constinit const OpDef normalize_batch_grad_op{.name = "normalize_batch_in_training_grad",
                                              .rule = normalize_grad_rule,
                                              .cpu = normalize_batch_grad_kernel,
                                              .vjp = normalize_grad_vjp,
                                              .saves_in = 31,
                                              .saves_out = 6,
                                              .n_out = 3};
constinit const OpDef center_scale_op{.name = "batch_normalization",
                                      .rule = center_scale_rule,
                                      .cpu = center_scale_kernel,
                                      .vjp = center_scale_vjp,
                                      .saves_in = 7};

Normalized normalize_batch(const Tensor& x, const Tensor& gamma, const Tensor& beta, std::int64_t code,
                           double epsilon) {
  const NormalizeAttrs attrs{code, epsilon, gamma.defined(), beta.defined()};
  In in[3] = {x};
  int n = 1;
  for (const Tensor* t : {&gamma, &beta})
    if (t->defined()) in[n++] = *t;
  Tensor out[3];
  apply(normalize_batch_op, attrs, in, n, out, 3);
  return {std::move(out[0]), std::move(out[1]), std::move(out[2])};
}

Tensor center_scale(const Tensor& x, const Tensor& mean, const Tensor& scale, const Tensor& shift) {
  if (shift.defined()) return apply1(center_scale_op, {x, mean, scale, shift});
  return apply1(center_scale_op, {x, mean, scale});
}

}  // namespace kassette::ops
