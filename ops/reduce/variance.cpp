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
void sum_deviations(const DeviationLoops<T>& loops, const ReduceInput<T>& x, const T* center, T* out,
                    const CoalescedAxes& runs) {
  const GroupLines lines(runs);
  const PerLine<T> centers(center, lines);
  const bool more = lines.rest.marked_product() > 1;
  Scratch<T> sums(more ? lines.outer * lines.inner : 0);
  reduce_input(
      reduce_loops<T>(Reduction::sum), x,
      [&](const T* block, std::int64_t o, T* to, std::int64_t count, std::int64_t m) {
        loops.rows(block, centers.get() + o, to, count, m);
      },
      [&](const T* block, std::int64_t stride, std::int64_t o, std::int64_t column, T* to, std::int64_t m,
          std::int64_t width) { loops.columns(block, centers.get() + o * lines.inner + column, to, m, stride, width); },
      more ? sums.get() : out, lines.outer, lines.n, lines.inner);
  if (more) reduce_runs(Reduction::sum, static_cast<const T*>(sums.get()), out, lines.rest);
}

/// The first element of each group.
template <class T>
void first_elements(const ReduceInput<T>& x, T* out, const CoalescedAxes& runs, std::int64_t groups) {
  Strided firsts;
  for (std::int64_t i = 0, n = groups, step = groups * runs.marked_product(); i < runs.n; ++i) {
    step /= runs.size[i];
    if (runs.marked[i]) continue;
    n /= runs.size[i];
    firsts.push(runs.size[i], step, n);
  }
  const int size = x.dtype.size();
  if (!x.converts()) return copy_strided(firsts, x.data, reinterpret_cast<std::byte*>(out), size);
  const Ref<Storage> held = Storage::allocate(groups * size, cpu);
  copy_strided(firsts, x.data, static_cast<std::byte*>(held->data), size);
  ReduceInput<T>(static_cast<const std::byte*>(held->data), x.dtype).read(out, 0, groups);
}

/// The means of the groups of x, none of which is empty.
template <class T>
struct Means {
  Scratch<T> mean, rest;
  Means(const ReduceInput<T>& x, const CoalescedAxes& runs, std::int64_t groups) : mean(groups), rest(groups) {
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
  const std::int64_t n_out = call.out[0]->numel();
  const CoalescedAxes runs(x, axes_mask(call.op.name, call.attrs.as<ReduceAttrs>().axes, x));
  with_wide_output(call.out[0]->data(), x.dtype, n_out, [&](auto* out) {
    using T = std::remove_pointer_t<decltype(out)>;
    if constexpr (std::is_floating_point_v<T>) {
      if (x.numel() == 0) {
        std::fill_n(out, n_out, std::numeric_limits<T>::quiet_NaN());
        return;
      }
      const ReduceInput<T> in(call.in[0].data, x.dtype);
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

/// x without its means, which are one for each row or column of x.
template <class T>
void subtract_means(const ReduceInput<T>& x, const GroupLines& lines, const T* mean, const T* rest, std::byte* to) {
  constexpr std::int64_t kPiece = 512;  // elements that are converted at once
  auto of_row = [&](const T* in, T* out, std::int64_t m, std::int64_t o) {
    const T center = mean[o], lost = rest[o];
    for (std::int64_t i = 0; i < m; ++i) out[i] = (in[i] - center) - lost;
  };
  auto of_columns = [&](const T* in, T* out, std::int64_t m, std::int64_t o) {
    const T *center = mean + o, *lost = rest + o;
    for (std::int64_t i = 0; i < m; ++i) out[i] = (in[i] - center[i]) - lost[i];
  };
  /// Calls f(in, out, m, o) for parts of m elements from `at` on; `step`: what o grows by with each element.
  auto in_pieces = [&](std::int64_t at, std::int64_t m, std::int64_t o, std::int64_t step, auto f) {
    if (!x.converts()) return f(x.elements() + at, reinterpret_cast<T*>(to) + at, m, o);
    T in[kPiece], out[kPiece];
    for (std::int64_t i = 0, some; i < m; i += some) {
      some = std::min(m - i, kPiece);
      x.read(in, at + i, some);
      f(in, out, some, o + i * step);
      cast_elements(to + (at + i) * x.dtype.size(), x.dtype, out, x.as, some);
    }
  };
  lines.run(
      kReduceGrain, [&](std::int64_t at, std::int64_t m, std::int64_t o) { in_pieces(at, m, o, 0, of_row); },
      [&](std::int64_t at, std::int64_t m, std::int64_t o) {
        for (; m > 0; --m, at += lines.inner) in_pieces(at, lines.inner, o, 1, of_columns);
      });
}
void center_kernel(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  const std::int64_t n = x.numel();
  if (n == 0) return;
  const CoalescedAxes runs(x, axes_mask(call.op.name, call.attrs.as<ReduceAttrs>().axes, x));
  in_float_or_double(x.dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const ReduceInput<T> in(call.in[0].data, x.dtype);
    const Means<T> means(in, runs, n / runs.marked_product());
    const GroupLines lines(runs);
    const PerLine<T> mean(means.mean.get(), lines), rest(means.rest.get(), lines);
    subtract_means(in, lines, mean.get(), rest.get(), call.out[0]->data());
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
