// ops/reduce/variance.cpp - var and std over axes, and the deviations from the mean, in which their gradients are
// written.
#include "ops/reduce/variance.h"

#include <cmath>

#include "ops/elementwise/elementwise.h"
#include "ops/engine/expr.h"
#include "ops/reduce/group_lines.h"
#include "ops/elementwise/half_compute.h"
#include "ops/reduce/rounded_mean.h"
#include "ops/shape/strided.h"

namespace kassette::ops {
namespace {

template <class T>
const DeviationLoops<T>& deviations() {
  if constexpr (std::is_same_v<T, float>) return KASSETTE_PICK(reduce_table).deviations_f32;
  else return KASSETTE_PICK(reduce_table).deviations_f64;
}
template <class T>
const DeviationLoops<T>& squares() {
  if constexpr (std::is_same_v<T, float>) return KASSETTE_PICK(reduce_table).squares_f32;
  else return KASSETTE_PICK(reduce_table).squares_f64;
}

/// The sums by `loops` over the deviations of x from `center`, whose shape is the unmarked runs. The last marked run is
/// reduced by these loops, the others by sums of the results. All sizes are at least 1.
template <class T>
void sum_deviations(const DeviationLoops<T>& loops, const T* x, const T* center, T* out, const CoalescedAxes& runs) {
  const GroupLines lines(runs);
  const PerLine<T> centers(center, lines);
  const bool more = lines.rest.marked_product() > 1;
  Scratch<T> sums(more ? lines.outer * lines.inner : 0);
  reduce_blocks(
      reduce_loops<T>(Reduction::sum),
      [&](std::int64_t o, std::int64_t at, T* to, std::int64_t count, std::int64_t m) {
        loops.rows(x + at, centers.get() + o, to, count, m);
      },
      [&](std::int64_t o, std::int64_t column, std::int64_t at, T* to, std::int64_t m, std::int64_t width) {
        loops.columns(x + at, centers.get() + o * lines.inner + column, to, m, lines.inner, width);
      },
      more ? sums.get() : out, lines.outer, lines.n, lines.inner);
  if (more) reduce_runs(Reduction::sum, static_cast<const T*>(sums.get()), out, lines.rest);
}

/// The first element of each group.
template <class T>
void first_elements(const T* x, T* out, const CoalescedAxes& runs, std::int64_t groups) {
  Strided firsts;
  for (std::int64_t i = 0, step = groups * runs.marked_product(); i < runs.n; ++i) {
    step /= runs.size[i];
    if (runs.marked[i]) continue;
    groups /= runs.size[i];
    firsts.push(runs.size[i], step, groups);
  }
  copy_strided(firsts, reinterpret_cast<const std::byte*>(x), reinterpret_cast<std::byte*>(out), sizeof(T));
}

/// The means of the groups of x, none of which is empty.
template <class T>
struct Means {
  Scratch<T> mean, rest;
  Means(const T* x, const CoalescedAxes& runs, std::int64_t groups) : mean(groups), rest(groups) {
    const T count = static_cast<T>(runs.marked_product());
    T *m = mean.get(), *r = rest.get();
    first_elements(x, m, runs, groups);
    sum_deviations(deviations<T>(), x, static_cast<const T*>(m), r, runs);
    for (std::int64_t i = 0; i < groups; ++i) {
      const RoundedMean<T> sum(m[i], r[i] / count);
      m[i] = sum.mean;
      r[i] = sum.rest;
    }
  }
};

template <bool kRoot>
void var_kernel(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  const unsigned mask = axes_mask(call.op.name, call.attrs.as<ReduceAttrs>().axes, x);
  if (in_slices(call, mask, var_kernel<kRoot>)) return;
  std::int64_t n_in = x.numel(), n_out = call.out[0]->numel();
  CoalescedAxes runs(x, mask);
  with_wide(call.in[0].data, call.out[0]->data(), x.dtype, n_in, n_out, [&](auto* in, auto* out) {
    using T = std::remove_pointer_t<decltype(out)>;
    if constexpr (std::is_floating_point_v<T>) {
      if (n_in == 0) {
        std::fill_n(out, n_out, std::numeric_limits<T>::quiet_NaN());
        return;
      }
      const Means<T> means(in, runs, n_out);
      sum_deviations(squares<T>(), in, static_cast<const T*>(means.mean.get()), out, runs);
      const T count = static_cast<T>(runs.marked_product());
      for (std::int64_t i = 0; i < n_out; ++i) {
        const T rest = means.rest.get()[i], v = out[i] / count - rest * rest, positive = v < 0 ? T(0) : v;
        out[i] = kRoot ? std::sqrt(positive) : positive;
      }
    }
  });
}

void center_kernel(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  const std::int64_t n = x.numel();
  if (n == 0) return;
  const unsigned mask = axes_mask(call.op.name, call.attrs.as<ReduceAttrs>().axes, x);
  if (in_slices(call, mask, center_kernel)) return;
  CoalescedAxes runs(x, mask);
  with_wide(call.in[0].data, call.out[0]->data(), x.dtype, n, n, [&](auto* in, auto* out) {
    using T = std::remove_pointer_t<decltype(out)>;
    if constexpr (std::is_floating_point_v<T>) {
      const Means<T> means(in, runs, n / runs.marked_product());
      const GroupLines lines(runs);
      const PerLine<T> mean(means.mean.get(), lines), rest(means.rest.get(), lines);
      lines.run(
          kReduceGrain,
          [&](std::int64_t at, std::int64_t m, std::int64_t o) {
            const T center = mean.get()[o], lost = rest.get()[o];
            for (std::int64_t i = at; i < at + m; ++i) out[i] = (in[i] - center) - lost;
          },
          [&](std::int64_t at, std::int64_t m, std::int64_t o) {
            const T *center = mean.get() + o, *lost = rest.get() + o;
            for (; m > 0; --m, at += lines.inner)
              for (std::int64_t i = 0; i < lines.inner; ++i) out[at + i] = (in[at + i] - center[i]) - lost[i];
          });
    }
  });
}

void float_rule(const OpCall& call, TensorSpec* out) {
  check_domain(call, Domain::floats);
  reduced_spec(call.op.name, call.attrs.as<ReduceAttrs>().axes, call.spec(0), out);
}
void center_rule(const OpCall& call, TensorSpec* out) {
  check_domain(call, Domain::floats);
  const TensorSpec& x = call.spec(0);
  if (x.rank >= 0) axes_mask(call.op.name, call.attrs.as<ReduceAttrs>().axes, x);
  out->set(x);
}

/// The gradient of var: 2 dy / n * (x - mean).
Tensor var_grad(const Tensor& dy, const Tensor& x, AxisSet axes) {
  return mul_no_nan(apply1(unreduce_op, ReduceAttrs{axes, /*divide=*/true}, {dy * 2.0, x}), center(x, axes));
}
/// Half types are computed in float32: dy / n may be very small, and dy / std very large.
Tensor widened(const Tensor& t) { return t.dtype().size() < 4 ? cast(t, float32) : t; }

void var_vjp(const VjpContext& ctx) {
  const Tensor x = ctx.in(0);
  ctx.din(0) = cast(var_grad(widened(ctx.dy()), widened(x), ctx.attrs.as<ReduceAttrs>().axes), x.dtype());
}
/// If all elements are equal the gradient is 0, not 0 * inf.
void std_vjp(const VjpContext& ctx) {
  const Tensor x = ctx.in(0), std = widened(ctx.out());
  ctx.din(0) = cast(var_grad(where(equal(std, 0.0), 0.0, div_no_nan(widened(ctx.dy()) * 0.5, std)), widened(x),
                             ctx.attrs.as<ReduceAttrs>().axes),
                    x.dtype());
}

}  // namespace

constinit const OpDef var_op{
    .name = "var", .rule = float_rule, .cpu = var_kernel<false>, .vjp = var_vjp, .saves_in = 1};
constinit const OpDef std_op{
    .name = "std", .rule = float_rule, .cpu = var_kernel<true>, .vjp = std_vjp, .saves_in = 1, .saves_out = 1};
// A symmetric projection, so it is its own adjoint.
constinit const OpDef center_op{
    .name = "center", .rule = center_rule, .cpu = center_kernel, .vjp = [](const VjpContext& ctx) {
      ctx.din(0) = center(ctx.dy(), ctx.attrs.as<ReduceAttrs>().axes);
    }};

Tensor var(const Tensor& x, const Axes& axes, bool keepdims) {
  return apply1(var_op, ReduceAttrs{axis_set("var", x, axes, keepdims)}, {x});
}
Tensor stddev(const Tensor& x, const Axes& axes, bool keepdims) {
  return apply1(std_op, ReduceAttrs{axis_set("std", x, axes, keepdims)}, {x});
}
Tensor center(const Tensor& x, AxisSet axes) { return apply1(center_op, ReduceAttrs{axes}, {x}); }

}  // namespace kassette::ops
