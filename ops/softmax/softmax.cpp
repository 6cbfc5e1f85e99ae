// ops/softmax/softmax.cpp - softmax, logsumexp, and the losses from logits, with gradients of any order.
#include "ops/softmax/softmax.h"

#include <cmath>

#include "ops/engine/expr.h"
#include "ops/reduce/group_lines.h"
#include "ops/softmax/softmax_kernels.h"

namespace kassette::ops {
namespace {

// ---- kernels --------------------------------------------------------------------------------------------------------
template <class T>
struct FewSums {  // of at most kMost rows or columns
  static constexpr std::int64_t kMost = 64;
  T max[kMost], log_sum[kMost];
  LogSums<T> get() { return {max, log_sum}; }
};
constexpr auto softmax_run = [](const auto& f) {
  using T = std::remove_pointer_t<decltype(f.out())>;
  AxisView a(f.call, f.call.spec(0));
  a.run(
      [&](std::int64_t r, std::int64_t count) {
        softmax_loops<T>().softmax_rows(f.in(0) + r * a.n, f.out() + r * a.n, {}, count, a.n);
      },
      [&](std::int64_t at, std::int64_t, std::int64_t width) {
        softmax_loops<T>().softmax_columns(f.in(0) + at, f.out() + at, {}, a.n, a.inner, width);
      });
};
constexpr auto log_softmax_run = [](const auto& f) {
  using T = std::remove_pointer_t<decltype(f.out())>;
  AxisView a(f.call, f.call.spec(0));
  a.run(
      [&](std::int64_t r, std::int64_t count) {
        softmax_loops<T>().log_softmax_rows(f.in(0) + r * a.n, f.out() + r * a.n, count, a.n);
      },
      [&](std::int64_t at, std::int64_t, std::int64_t width) {
        softmax_loops<T>().log_softmax_columns(f.in(0) + at, f.out() + at, a.n, a.inner, width);
      });
};
constexpr auto softmax_grad_run = [](const auto& f) {
  using T = std::remove_pointer_t<decltype(f.out())>;
  AxisView a(f.call, f.call.spec(0));
  a.run(
      [&](std::int64_t r, std::int64_t count) {
        softmax_loops<T>().softmax_grad_rows(f.in(0) + r * a.n, f.in(1) + r * a.n, f.out() + r * a.n, count, a.n);
      },
      [&](std::int64_t at, std::int64_t, std::int64_t width) {
        softmax_loops<T>().softmax_grad_columns(f.in(0) + at, f.in(1) + at, f.out() + at, a.n, a.inner, width);
      });
};
constexpr auto cross_entropy_run = [](const auto& f) {
  using T = std::remove_pointer_t<decltype(f.out())>;
  AxisView a(f.call, f.call.spec(1));
  const T *t = f.in(0), *z = f.in(1);
  T *loss = f.out(0), *p = f.out(1);
  if (a.n == 0) std::fill_n(loss, a.outer * a.inner, T(0));
  a.run(
      [&](std::int64_t r, std::int64_t count) {
        FewSums<T> sums;
        for (std::int64_t end = r + count, m; r < end; r += m) {
          const std::int64_t at = r * a.n;
          m = std::min(sums.kMost, end - r);
          softmax_loops<T>().softmax_rows(z + at, p + at, sums.get(), m, a.n);
          softmax_loops<T>().cross_entropy_rows(t + at, z + at, sums.get(), loss + r, m, a.n);
        }
      },
      [&](std::int64_t at, std::int64_t c, std::int64_t width) {
        FewSums<T> sums;
        for (std::int64_t end = c + width, m; c < end; c += m, at += m) {
          m = std::min(sums.kMost, end - c);
          softmax_loops<T>().softmax_columns(z + at, p + at, sums.get(), a.n, a.inner, m);
          softmax_loops<T>().cross_entropy_columns(t + at, z + at, sums.get(), loss + c, a.n, a.inner, m);
        }
      });
};
constexpr auto cross_entropy_grad_run = [](const auto& f) {
  using T = std::remove_pointer_t<decltype(f.out())>;
  AxisView a(f.call, f.call.spec(2));
  a.run(
      [&](std::int64_t r, std::int64_t count) {
        std::int64_t at = r * a.n;
        softmax_loops<T>().cross_entropy_grad_rows(f.in(0) + r, f.in(1) + at, f.in(2) + at, f.out() + at, count, a.n);
      },
      [&](std::int64_t at, std::int64_t c, std::int64_t width) {
        softmax_loops<T>().cross_entropy_grad_columns(f.in(0) + c, f.in(1) + at, f.in(2) + at, f.out() + at, a.n,
                                                      a.inner, width);
      });
};

constexpr auto sparse_run = [](const auto& f) {
  using T = std::remove_pointer_t<decltype(f.out())>;
  AxisView a(f.call, f.call.spec(1));
  check_ids(f.ids(0), a.outer, a.n);
  const T* z = f.in(1);
  T *loss = f.out(0), *p = f.out(1);
  a.run(
      [&](std::int64_t r, std::int64_t count) {
        FewSums<T> sums;
        for (std::int64_t end = r + count, m; r < end; r += m) {
          m = std::min(sums.kMost, end - r);
          softmax_loops<T>().softmax_rows(z + r * a.n, p + r * a.n, sums.get(), m, a.n);
          for (std::int64_t i = 0; i < m; ++i)
            loss[r + i] = sums.log_sum[i] - (z[(r + i) * a.n + f.ids(0)[r + i]] - sums.max[i]);
        }
      },
      [](auto...) {});
};
constexpr auto sparse_grad_run = [](const auto& f) {
  using T = std::remove_pointer_t<decltype(f.out())>;
  AxisView a(f.call, f.call.spec(2));
  check_ids(f.ids(1), a.outer, a.n);
  a.run(
      [&](std::int64_t r, std::int64_t count) {
        const T *dy = f.in(0), *p = f.in(2);
        softmax_loops<T>().scale_rows(dy + r, p + r * a.n, f.out() + r * a.n, count, a.n);
        for (std::int64_t end = r + count; r < end; ++r) {
          std::int64_t at = r * a.n + f.ids(1)[r];
          f.out()[at] = m::mul_no_nan(dy[r], p[at] - T(1));
        }
      },
      [](auto...) {});
};
constexpr auto sigmoid_run = [](const auto& f) {
  using T = std::remove_pointer_t<decltype(f.out())>;
  devices::parallel_for(f.call.out[0]->numel(), kSoftmaxGrain, [&](std::int64_t begin, std::int64_t end) {
    softmax_loops<T>().sigmoid_loss(f.in(0) + begin, f.in(1) + begin, f.out() + begin, end - begin);
  });
};
/// dx = dy * softmax(x) over the axes, and 0 where all elements of a group are -inf. Not exp(x - logsumexp): Note
/// [Invariant under a shift].
constexpr auto logsumexp_grad_run = [](const auto& f) {
  using T = std::remove_pointer_t<decltype(f.out())>;
  const TensorSpec& x = f.call.spec(1);
  const std::int64_t n = x.numel(), groups = f.call.spec(0).numel();
  if (n == 0) return;
  CoalescedAxes runs(x, axes_mask(f.call.op.name, f.call.attrs.template as<SoftmaxAttrs>().axes, x));
  const GroupLines lines(runs);
  Scratch<T> of_group(groups);
  const T *z = f.in(1), *dy = f.in(0);
  T *w = f.out(), *g = of_group.get();
  reduce_runs(Reduction::max, z, g, runs);
  for (std::int64_t i = 0; i < groups; ++i)
    if (!std::isfinite(g[i])) g[i] = 0;
  const PerLine<T> shift(g, lines);
  lines.run(
      kSoftmaxGrain,
      [&](std::int64_t at, std::int64_t m, std::int64_t o) {
        softmax_loops<T>().exp_row(z + at, shift.get()[o], w + at, m);
      },
      [&](std::int64_t at, std::int64_t m, std::int64_t o) {
        softmax_loops<T>().exp_columns(z + at, shift.get() + o, w + at, m, lines.inner);
      });
  reduce_runs(Reduction::sum, static_cast<const T*>(w), g, runs);
  for (std::int64_t i = 0; i < groups; ++i) g[i] = g[i] == 0 || dy[i] == 0 ? T(0) : dy[i] / g[i];
  const PerLine<T> factor(g, lines);
  // A factor of 0 makes the results 0, whatever x is.
  lines.run(
      kReduceGrain,
      [&](std::int64_t at, std::int64_t m, std::int64_t o) {
        const T by = factor.get()[o];
        for (std::int64_t i = at; i < at + m; ++i) w[i] = by == 0 ? T(0) : w[i] * by;
      },
      [&](std::int64_t at, std::int64_t m, std::int64_t o) {
        const T* by = factor.get() + o;
        for (; m > 0; --m, at += lines.inner)
          for (std::int64_t i = 0; i < lines.inner; ++i) w[at + i] = by[i] == 0 ? T(0) : w[at + i] * by[i];
      });
};

void logsumexp_kernel(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  CoalescedAxes runs(x, axes_mask(call.op.name, call.attrs.as<SoftmaxAttrs>().axes, x));
  with_wide_output(call.out[0]->data(), x.dtype, call.out[0]->numel(), [&](auto* out) {
    using T = std::remove_pointer_t<decltype(out)>;
    if constexpr (std::is_floating_point_v<T>)
      reduce_runs(softmax_loops<T>().logsumexp, -std::numeric_limits<T>::infinity(), {call.in[0].data, x.dtype}, out,
                  runs);
  });
}

/// Calls f with an integer of the size of an element: a copy depends on nothing else.
template <class F>
void by_size(DType dtype, F&& f) {
  switch (dtype.size()) {
    case 1: return f(std::uint8_t());
    case 2: return f(std::uint16_t());
    case 4: return f(std::uint32_t());
    default: return f(std::uint64_t());
  }
}
void pick_kernel(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  std::int64_t n = x.dims[x.rank - 1], rows = call.spec(1).numel();
  const std::int64_t* ids = call.in[1].as<std::int64_t>();
  check_ids(ids, rows, n);
  by_size(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t r = 0; r < rows; ++r) call.out_as<T>()[r] = call.in[0].as<T>()[r * n + ids[r]];
  });
}
void place_kernel(const OpCall& call) {
  const TensorSpec& x = call.spec(2);
  std::int64_t n = x.dims[x.rank - 1], rows = call.spec(1).numel();
  const std::int64_t* ids = call.in[1].as<std::int64_t>();
  check_ids(ids, rows, n);
  std::memset(call.out[0]->data(), 0, static_cast<std::size_t>(call.out[0]->bytes()));
  by_size(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t r = 0; r < rows; ++r) call.out_as<T>()[r * n + ids[r]] = call.in[0].as<T>()[r];
  });
}

// ---- rules ----------------------------------------------------------------------------------------------------------
void along_rule(const OpCall& call, TensorSpec* out) {
  check_domain(call, Domain::floats);
  const TensorSpec& x = call.spec(0);
  if (x.rank >= 0) axes_mask(call.op.name, call.attrs.as<SoftmaxAttrs>().axes, x);
  out->set(x);
}
void reduced_rule(const OpCall& call, TensorSpec* out) {
  check_domain(call, Domain::floats);
  reduced_spec(call.op.name, call.attrs.as<SoftmaxAttrs>().axes, call.spec(0), out);
}
void cross_entropy_rule(const OpCall& call, TensorSpec* out) {
  check_same_dtype(call);
  check_domain(call, Domain::floats);
  one_shape(call.op.name, call.spec(0), call.spec(1), &out[1]);
  reduced_spec(call.op.name, call.attrs.as<SoftmaxAttrs>().axes, out[1], &out[0]);
}
void sparse_rule(const OpCall& call, TensorSpec* out) {
  class_rule(call, out);
  out[1].set(call.spec(1));
}
void pick_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec &x = call.spec(0), &ids = call.spec(1);
  if (ids.dtype != int64) fail<TypeError>({call.op.name}, "classes are ", ids.dtype, ", not int64");
  TensorSpec rest;
  reduced_spec(call.op.name, kLastAxis, x, &rest);
  one_shape(call.op.name, ids, rest, out);
  out->dtype = x.dtype;
}
void place_rule(const OpCall& call, TensorSpec* out) {
  out->set(call.spec(2));
  out->dtype = call.spec(0).dtype;
}

// ---- adjoints -------------------------------------------------------------------------------------------------------
Tensor softmax_grad(const Tensor& dy, const Tensor& y, AxisSet axes) {
  return apply1(softmax_grad_op, SoftmaxAttrs{axes}, {dy, y});
}
void add_to(Tensor& sum, Tensor term) { sum = sum.defined() ? sum + term : std::move(term); }

void log_softmax_vjp(const VjpContext& ctx) {
  const AxisSet keep = ctx.attrs.as<SoftmaxAttrs>().axes.with_keepdims();
  ctx.din(0) = ctx.dy() - mul_no_nan(sum_by(ctx.dy(), keep), exp(ctx.out()));
}
void softmax_grad_vjp(const VjpContext& ctx) {
  const Tensor &u = ctx.dy(), dy = ctx.in(0), y = ctx.in(1);
  const AxisSet keep = ctx.attrs.as<SoftmaxAttrs>().axes.with_keepdims();
  if (ctx.wants(0)) ctx.din(0) = softmax_grad(u, y, ctx.attrs.as<SoftmaxAttrs>().axes);
  if (!ctx.wants(1)) return;
  Tensor weights = sum_by(y, keep);
  auto around_mean = [&](const Tensor& g) { return g - div_no_nan(sum_by(mul_no_nan(g, y), keep), weights); };
  ctx.din(1) = mul_no_nan(around_mean(dy), around_mean(u));
}
void logsumexp_vjp(const VjpContext& ctx) { ctx.din(0) = apply1(logsumexp_grad_op, ctx.attrs, {ctx.dy(), ctx.in(0)}); }
void logsumexp_grad_vjp(const VjpContext& ctx) {
  const Tensor u = ctx.dy(), dy = ctx.in(0), x = ctx.in(1);
  const AxisSet axes = ctx.attrs.as<SoftmaxAttrs>().axes;
  Tensor p = apply1(logsumexp_grad_op, ctx.attrs, {broadcast_like(number_like(1, dy), dy), x}),
         mean = sum_by(mul_no_nan(u, p), axes);
  if (ctx.wants(0)) ctx.din(0) = mean;
  if (ctx.wants(1)) ctx.din(1) = mul_no_nan(u - unreduce(mean, x, axes), ctx.out());
}
void cross_entropy_vjp(const VjpContext& ctx) {
  if (ctx.dy(0).defined()) {
    if (ctx.wants(0)) {
      Tensor z = ctx.in(1);
      ctx.din(0) = -mul_no_nan(unreduce(ctx.dy(0), z, ctx.attrs.as<SoftmaxAttrs>().axes),
                               apply1(log_softmax_op, SoftmaxAttrs{ctx.attrs.as<SoftmaxAttrs>().axes}, {z}));
    }
    if (ctx.wants(1)) ctx.din(1) = apply1(softmax_cross_entropy_grad_op, ctx.attrs, {ctx.dy(0), ctx.in(0), ctx.out(1)});
  }
  if (ctx.dy(1).defined() && ctx.wants(1))
    add_to(ctx.din(1), softmax_grad(ctx.dy(1), ctx.out(1), ctx.attrs.as<SoftmaxAttrs>().axes));
}
void cross_entropy_grad_vjp(const VjpContext& ctx) {
  Tensor u = ctx.dy(), t = ctx.in(1), p = ctx.in(2);
  const AxisSet axes = ctx.attrs.as<SoftmaxAttrs>().axes, keep = axes.with_keepdims();
  Tensor total = sum_by(t, keep);
  if (ctx.wants(0)) ctx.din(0) = sum_by(mul_no_nan(u, p * total - t), axes);
  if (!ctx.wants(1) && !ctx.wants(2)) return;
  Tensor dy = unreduce(ctx.in(0), p, axes);
  if (ctx.wants(1)) ctx.din(1) = mul_no_nan(dy, sum_by(mul_no_nan(u, p), keep) - u);
  if (ctx.wants(2)) ctx.din(2) = mul_no_nan(mul_no_nan(dy, u), total);
}
void sparse_vjp(const VjpContext& ctx) {
  if (!ctx.wants(1)) return;
  if (ctx.dy(0).defined())
    ctx.din(1) = apply1(sparse_softmax_cross_entropy_grad_op, ctx.attrs, {ctx.dy(0), ctx.in(0), ctx.out(1)});
  if (ctx.dy(1).defined()) add_to(ctx.din(1), softmax_grad(ctx.dy(1), ctx.out(1), ctx.attrs.as<SoftmaxAttrs>().axes));
}
void sparse_grad_vjp(const VjpContext& ctx) {
  const Tensor& u = ctx.dy();
  if (ctx.wants(0)) ctx.din(0) = sum_by(mul_no_nan(u, ctx.in(2)), kLastAxis) - take_along_axis(u, ctx.in(1));
  if (ctx.wants(2)) ctx.din(2) = mul_no_nan(u, unreduce(ctx.in(0), u, kLastAxis));
}
void sigmoid_vjp(const VjpContext& ctx) {
  if (ctx.wants(0)) ctx.din(0) = -mul_no_nan(ctx.dy(), ctx.in(1));
  if (ctx.wants(1)) ctx.din(1) = mul_no_nan(ctx.dy(), sigmoid(ctx.in(1)) - ctx.in(0));
}
void pick_vjp(const VjpContext& ctx) {
  if (ctx.wants(0)) ctx.din(0) = apply1(scatter_along_axis_op, {ctx.dy(), ctx.in(1), ctx.in(0)});
}
void place_vjp(const VjpContext& ctx) {
  if (ctx.wants(0)) ctx.din(0) = take_along_axis(ctx.dy(), ctx.in(1));
}

}  // namespace

constinit const OpDef softmax_op{.name = "softmax",
                                 .rule = along_rule,
                                 .cpu = float_kernel<softmax_run>,
                                 .vjp =
                                     [](const VjpContext& ctx) {
                                       ctx.din(0) =
                                           softmax_grad(ctx.dy(), ctx.out(), ctx.attrs.as<SoftmaxAttrs>().axes);
                                     },
                                 .saves_out = 1};
constinit const OpDef log_softmax_op{.name = "log_softmax",
                                     .rule = along_rule,
                                     .cpu = float_kernel<log_softmax_run>,
                                     .vjp = log_softmax_vjp,
                                     .saves_out = 1};
constinit const OpDef softmax_grad_op{.name = "softmax_grad",
                                      .rule = like_last_rule,
                                      .cpu = float_kernel<softmax_grad_run>,
                                      .vjp = softmax_grad_vjp,
                                      .saves_in = 3};
constinit const OpDef logsumexp_op{
    .name = "logsumexp", .rule = reduced_rule, .cpu = logsumexp_kernel, .vjp = logsumexp_vjp, .saves_in = 1};
constinit const OpDef logsumexp_grad_op{.name = "logsumexp_grad",
                                        .rule = like_last_rule,
                                        .cpu = float_kernel<logsumexp_grad_run>,
                                        .vjp = logsumexp_grad_vjp,
                                        .saves_in = 3,
                                        .saves_out = 1};
// The second output is softmax(logits), which the gradient needs.
constinit const OpDef softmax_cross_entropy_op{.name = "categorical_crossentropy",
                                               .rule = cross_entropy_rule,
                                               .cpu = float_kernel<cross_entropy_run>,
                                               .vjp = cross_entropy_vjp,
                                               .saves_in = 3,
                                               .saves_out = 2,
                                               .n_out = 2,
                                               .inputs = "target output"};
constinit const OpDef softmax_cross_entropy_grad_op{.name = "categorical_crossentropy_grad",
                                                    .rule = like_last_rule,
                                                    .cpu = float_kernel<cross_entropy_grad_run>,
                                                    .vjp = cross_entropy_grad_vjp,
                                                    .saves_in = 7};
constinit const OpDef sparse_softmax_cross_entropy_op{.name = "sparse_categorical_crossentropy",
                                                      .rule = sparse_rule,
                                                      .cpu = float_kernel<sparse_run>,
                                                      .vjp = sparse_vjp,
                                                      .saves_in = 1,
                                                      .saves_out = 2,
                                                      .n_out = 2,
                                                      .inputs = "target output"};
constinit const OpDef sparse_softmax_cross_entropy_grad_op{.name = "sparse_categorical_crossentropy_grad",
                                                           .rule = like_last_rule,
                                                           .cpu = float_kernel<sparse_grad_run>,
                                                           .vjp = sparse_grad_vjp,
                                                           .saves_in = 7};
constinit const OpDef sigmoid_cross_entropy_op{.name = "binary_crossentropy",
                                               .rule = elementwise_loss_rule,
                                               .cpu = float_kernel<sigmoid_run>,
                                               .vjp = sigmoid_vjp,
                                               .saves_in = 3,
                                               .inputs = "target output"};
constinit const OpDef take_along_axis_op{
    .name = "pick", .rule = pick_rule, .cpu = pick_kernel, .vjp = pick_vjp, .saves_in = 2};
constinit const OpDef scatter_along_axis_op{
    .name = "place", .rule = place_rule, .cpu = place_kernel, .vjp = place_vjp, .saves_in = 2, .shape_only = 4};

Tensor softmax(const Tensor& x, int axis) {
  return apply1(softmax_op, SoftmaxAttrs{axis_set("softmax", x, axis, /*keepdims=*/false)}, {x});
}
Tensor log_softmax(const Tensor& x, int axis) {
  return apply1(log_softmax_op, SoftmaxAttrs{axis_set("log_softmax", x, axis, /*keepdims=*/false)}, {x});
}
Tensor logsumexp(const Tensor& x, const Axes& axes, bool keepdims) {
  return apply1(logsumexp_op, SoftmaxAttrs{axis_set("logsumexp", x, axes, keepdims)}, {x});
}
Tensor softmax_cross_entropy(const Tensor& target, const Tensor& logits, int axis) {
  In in[2] = {target, logits};
  Tensor out[2];
  apply(softmax_cross_entropy_op, SoftmaxAttrs{axis_set("categorical_crossentropy", logits, axis, /*keepdims=*/false)},
        in, 2, out, 2);
  return std::move(out[0]);
}
Tensor sparse_softmax_cross_entropy(const Tensor& classes, const Tensor& logits) {
  In in[2] = {classes, logits};
  Tensor out[2];
  apply(sparse_softmax_cross_entropy_op, SoftmaxAttrs{kLastAxis}, in, 2, out, 2);
  return std::move(out[0]);
}
Tensor sigmoid_cross_entropy(const Tensor& target, const Tensor& logits) {
  return apply1(sigmoid_cross_entropy_op, {target, logits});
}
Tensor take_along_axis(const Tensor& x, const Tensor& classes) { return apply1(take_along_axis_op, {x, classes}); }

}  // namespace kassette::ops
