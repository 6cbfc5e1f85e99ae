// ops/softmax/probability_losses.cpp - cross entropies of probabilities (not logits), with adjoints of any order.
// Probabilities are clipped to [epsilon, 1 - epsilon]; epsilon is an attribute.
#include <cmath>

#include "ops/engine/expr.h"
#include "ops/softmax/softmax_kernels.h"

namespace kassette::ops {
namespace {

// ---- kernels --------------------------------------------------------------------------------------------------------
/// The bounds to which probabilities are clipped.
template <class T>
struct Between {
  T low, high;
  explicit Between(const OpCall& call)
      : low(static_cast<T>(call.attrs.as<SoftmaxAttrs>().epsilon)),
        high(static_cast<T>(1 - call.attrs.as<SoftmaxAttrs>().epsilon)) {}
  T clip(T q) const { return q < low ? low : q > high ? high : q; }  // NaN stays
  bool inside(T q) const { return q >= low && q <= high; }
};
constexpr auto probability_run = [](const auto& f) {
  using T = std::remove_pointer_t<decltype(f.out())>;
  AxisView a(f.call, f.call.spec(1));
  const Between<T> bounds(f.call);
  const T *t = f.in(0), *p = f.in(1);
  if (a.n == 0) std::fill_n(f.out(), a.outer * a.inner, T(0));
  a.run(
      [&](std::int64_t r, std::int64_t count) {
        softmax_loops<T>().probability_rows(t + r * a.n, p + r * a.n, bounds.low, bounds.high, f.out() + r, count, a.n);
      },
      [&](std::int64_t at, std::int64_t c, std::int64_t width) {
        softmax_loops<T>().probability_columns(t + at, p + at, bounds.low, bounds.high, f.out() + c, a.n, a.inner,
                                               width);
      });
};
constexpr auto probability_grad_run = [](const auto& f) {
  using T = std::remove_pointer_t<decltype(f.out())>;
  AxisView a(f.call, f.call.spec(2));
  const Between<T> bounds(f.call);
  const T *dy = f.in(0), *t = f.in(1), *p = f.in(2);
  a.run(
      [&](std::int64_t r, std::int64_t count) {
        std::int64_t at = r * a.n;
        softmax_loops<T>().probability_grad_rows(dy + r, t + at, p + at, bounds.low, bounds.high, f.out() + at, count,
                                                 a.n);
      },
      [&](std::int64_t at, std::int64_t c, std::int64_t width) {
        softmax_loops<T>().probability_grad_columns(dy + c, t + at, p + at, bounds.low, bounds.high, f.out() + at, a.n,
                                                    a.inner, width);
      });
};

constexpr auto sparse_probability_run = [](const auto& f) {
  using T = std::remove_pointer_t<decltype(f.out())>;
  AxisView a(f.call, f.call.spec(1));
  check_ids(f.ids(0), a.outer, a.n);
  const Between<T> bounds(f.call);
  const T* p = f.in(1);
  T* loss = f.out();
  a.run(
      [&](std::int64_t r, std::int64_t count) {
        softmax_loops<T>().clipped_sums(p + r * a.n, bounds.low, bounds.high, loss + r, count, a.n);
        for (std::int64_t end = r + count; r < end; ++r)
          loss[r] = std::log(loss[r]) - std::log(bounds.clip(p[r * a.n + f.ids(0)[r]]));
      },
      [](auto...) {});
};
constexpr auto sparse_probability_grad_run = [](const auto& f) {
  using T = std::remove_pointer_t<decltype(f.out())>;
  AxisView a(f.call, f.call.spec(2));
  check_ids(f.ids(1), a.outer, a.n);
  const Between<T> bounds(f.call);
  const T *dy = f.in(0), *p = f.in(2);
  a.run(
      [&](std::int64_t r, std::int64_t count) {
        softmax_loops<T>().clipped_sums_grad(dy + r, p + r * a.n, bounds.low, bounds.high, f.out() + r * a.n, count,
                                             a.n);
        for (std::int64_t end = r + count; r < end; ++r) {
          std::int64_t at = r * a.n + f.ids(1)[r];
          if (dy[r] != 0 && bounds.inside(p[at])) f.out()[at] -= dy[r] / p[at];
        }
      },
      [](auto...) {});
};
constexpr auto binary_probability_run = [](const auto& f) {
  using T = std::remove_pointer_t<decltype(f.out())>;
  const Between<T> bounds(f.call);
  devices::parallel_for(f.call.out[0]->numel(), kSoftmaxGrain, [&](std::int64_t begin, std::int64_t end) {
    softmax_loops<T>().binary_loss(f.in(0) + begin, f.in(1) + begin, bounds.low, bounds.high, f.out() + begin,
                                   end - begin);
  });
};
constexpr auto binary_probability_grad_run = [](const auto& f) {
  using T = std::remove_pointer_t<decltype(f.out())>;
  const Between<T> bounds(f.call);
  devices::parallel_for(f.call.out[0]->numel(), kSoftmaxGrain, [&](std::int64_t begin, std::int64_t end) {
    softmax_loops<T>().binary_grad(f.in(0) + begin, f.in(1) + begin, f.in(2) + begin, bounds.low, bounds.high,
                                   f.out() + begin, end - begin);
  });
};

// ---- rules and adjoints ---------------------------------------------------------------------------------------------
void probability_rule(const OpCall& call, TensorSpec* out) {
  check_same_dtype(call);
  check_domain(call, Domain::floats);
  TensorSpec both;
  one_shape(call.op.name, call.spec(0), call.spec(1), &both);
  reduced_spec(call.op.name, call.attrs.as<SoftmaxAttrs>().axes, both, out);
}
Tensor is_inside(const Tensor& p, double epsilon) {
  return logical_and(greater_equal(p, epsilon), less_equal(p, 1 - epsilon));
}
/// q is p clipped to the bounds; of(v) is v where p is within the bounds, 0 elsewhere.
struct Clipped {
  Tensor q, inside;
  Clipped(const Tensor& p, double epsilon) : q(clip(p, epsilon, 1 - epsilon)), inside(is_inside(p, epsilon)) {}
  Tensor of(const Tensor& v) const { return where(inside, v, 0.0); }
};
void probability_vjp(const VjpContext& ctx) {
  if (ctx.wants(0)) {
    Tensor p = ctx.in(1), q = clip(p / sum_by(p, ctx.attrs.as<SoftmaxAttrs>().axes.with_keepdims()),
                                   ctx.attrs.as<SoftmaxAttrs>().epsilon, 1 - ctx.attrs.as<SoftmaxAttrs>().epsilon);
    ctx.din(0) = -mul_no_nan(unreduce(ctx.dy(), p, ctx.attrs.as<SoftmaxAttrs>().axes), log(q));
  }
  if (ctx.wants(1)) ctx.din(1) = apply1(probability_cross_entropy_grad_op, ctx.attrs, {ctx.dy(), ctx.in(0), ctx.in(1)});
}
/// Adjoint of dp = dy * (sum(t) / sum(p) - t / p), with t = 0 where p / sum(p) is clipped.
void probability_grad_vjp(const VjpContext& ctx) {
  Tensor u = ctx.dy(), p = ctx.in(2);
  const AxisSet axes = ctx.attrs.as<SoftmaxAttrs>().axes, keep = axes.with_keepdims();
  Tensor s = sum_by(p, keep), q = p / s, inside = is_inside(q, ctx.attrs.as<SoftmaxAttrs>().epsilon);
  Tensor t = where(inside, ctx.in(1), 0.0), counted = sum_by(t, keep);
  if (ctx.wants(0)) ctx.din(0) = sum_by(mul_no_nan(u, counted / s - div_no_nan(t, p)), axes);
  if (!ctx.wants(1) && !ctx.wants(2)) return;
  Tensor dy = unreduce(ctx.in(0), p, axes), total = sum_by(u, keep);
  if (ctx.wants(1)) ctx.din(1) = where(inside, mul_no_nan(dy, div_no_nan(total, s) - div_no_nan(u, p)), 0.0);
  if (ctx.wants(2))
    ctx.din(2) =
        mul_no_nan(dy, div_no_nan(div_no_nan(mul_no_nan(u, t), p), p) - div_no_nan(mul_no_nan(total, counted), s * s));
}
void sparse_probability_vjp(const VjpContext& ctx) {
  if (ctx.wants(1)) ctx.din(1) = apply1(sparse_probability_grad_op, ctx.attrs, {ctx.dy(), ctx.in(0), ctx.in(1)});
}
/// Adjoint of dp = dy * (1 / sum(q) - one_hot(class) / q), with dp = 0 where p is clipped.
void sparse_probability_grad_vjp(const VjpContext& ctx) {
  Tensor p = ctx.in(2);
  Clipped c(p, ctx.attrs.as<SoftmaxAttrs>().epsilon);
  Tensor u = c.of(ctx.dy()), total = sum_by(u, kLastAxis), sum = sum_by(c.q, kLastAxis);
  if (ctx.wants(0)) ctx.din(0) = div_no_nan(total, sum) - take_along_axis(div_no_nan(u, c.q), ctx.in(1));
  if (!ctx.wants(2)) return;
  Tensor at = take_along_axis(c.q, ctx.in(1)),
         there = mul_no_nan(ctx.in(0), div_no_nan(take_along_axis(u, ctx.in(1)), at * at));
  ctx.din(2) = apply1(scatter_along_axis_op, {there, ctx.in(1), p}) -
               c.of(unreduce(mul_no_nan(ctx.in(0), div_no_nan(total, sum * sum)), p, kLastAxis));
}
void binary_probability_vjp(const VjpContext& ctx) {
  if (ctx.wants(0))
    ctx.din(0) = -mul_no_nan(ctx.dy(), logit(clip(ctx.in(1), ctx.attrs.as<SoftmaxAttrs>().epsilon,
                                                  1 - ctx.attrs.as<SoftmaxAttrs>().epsilon)));
  if (ctx.wants(1)) ctx.din(1) = apply1(binary_probability_grad_op, ctx.attrs, {ctx.dy(), ctx.in(0), ctx.in(1)});
}
/// Adjoint of dp = dy * (q - t) / (q * (1 - q)), with dp = 0 where p is clipped.
void binary_probability_grad_vjp(const VjpContext& ctx) {
  Tensor dy = ctx.in(0), t = ctx.in(1);
  Clipped c(ctx.in(2), ctx.attrs.as<SoftmaxAttrs>().epsilon);
  Tensor u = c.of(ctx.dy()), q = c.q, rest = 1.0 - q;
  if (ctx.wants(0)) ctx.din(0) = div_no_nan(mul_no_nan(u, q - t), q * rest);
  if (ctx.wants(1)) ctx.din(1) = -div_no_nan(mul_no_nan(u, dy), q * rest);
  if (ctx.wants(2)) ctx.din(2) = mul_no_nan(mul_no_nan(u, dy), t / (q * q) + (1.0 - t) / (rest * rest));
}

}  // namespace

constinit const OpDef probability_cross_entropy_op{.name = "probability_crossentropy",
                                                   .rule = probability_rule,
                                                   .cpu = float_kernel<probability_run>,
                                                   .vjp = probability_vjp,
                                                   .saves_in = 3,
                                                   .inputs = "target output"};
constinit const OpDef probability_cross_entropy_grad_op{.name = "probability_crossentropy_grad",
                                                        .rule = like_last_rule,
                                                        .cpu = float_kernel<probability_grad_run>,
                                                        .vjp = probability_grad_vjp,
                                                        .saves_in = 7};
constinit const OpDef sparse_probability_op{.name = "sparse_probability_crossentropy",
                                            .rule = class_rule,
                                            .cpu = float_kernel<sparse_probability_run>,
                                            .vjp = sparse_probability_vjp,
                                            .saves_in = 3,
                                            .inputs = "target output"};
constinit const OpDef sparse_probability_grad_op{.name = "sparse_probability_crossentropy_grad",
                                                 .rule = like_last_rule,
                                                 .cpu = float_kernel<sparse_probability_grad_run>,
                                                 .vjp = sparse_probability_grad_vjp,
                                                 .saves_in = 7};
constinit const OpDef binary_probability_op{.name = "binary_probability_crossentropy",
                                            .rule = elementwise_loss_rule,
                                            .cpu = float_kernel<binary_probability_run>,
                                            .vjp = binary_probability_vjp,
                                            .saves_in = 3,
                                            .inputs = "target output"};
constinit const OpDef binary_probability_grad_op{.name = "binary_probability_crossentropy_grad",
                                                 .rule = like_last_rule,
                                                 .cpu = float_kernel<binary_probability_grad_run>,
                                                 .vjp = binary_probability_grad_vjp,
                                                 .saves_in = 7};
Tensor probability_cross_entropy(const Tensor& target, const Tensor& probabilities, int axis, double epsilon) {
  const AxisSet axes = axis_set("categorical_crossentropy", probabilities, axis, /*keepdims=*/false);
  return apply1(probability_cross_entropy_op, SoftmaxAttrs{axes, epsilon}, {target, probabilities});
}
Tensor sparse_probability_cross_entropy(const Tensor& classes, const Tensor& probabilities, double epsilon) {
  return apply1(sparse_probability_op, SoftmaxAttrs{kLastAxis, epsilon}, {classes, probabilities});
}
Tensor binary_probability_cross_entropy(const Tensor& target, const Tensor& probabilities, double epsilon) {
  return apply1(binary_probability_op, SoftmaxAttrs{AxisSet(), epsilon}, {target, probabilities});
}

}  // namespace kassette::ops
