// ops/reduce.cpp - sum, mean, prod, max, min, var and std over axes, and the ops that their gradients use.
#include "ops/reduce.h"

#include <cmath>
#include <cstring>

#include "core/text.h"
#include "ops/elementwise.h"
#include "ops/expr.h"
#include "ops/reduce_runs.h"
#include "ops/half_compute.h"
#include "ops/repeat.h"

namespace kassette::ops {
namespace {

void number_rule(const OpCall& call, TensorSpec* out) {
  check_domain(call, Domain::numbers);
  reduced_spec(call.op.name, call.attrs.as<ReduceAttrs>().axes, call.spec(0), out);
}
void float_rule(const OpCall& call, TensorSpec* out) {
  check_domain(call, Domain::floats);
  reduced_spec(call.op.name, call.attrs.as<ReduceAttrs>().axes, call.spec(0), out);
}

template <Reduction kReduction>
void reduction_kernel(const OpCall& call) {
  constexpr bool kMean = kReduction == Reduction::mean;
  const TensorSpec& x = call.spec(0);
  std::int64_t n_in = x.numel(), n_out = call.out[0]->numel();
  // Fast path for a small sum of all elements, without runs and blocks.
  if (x.dtype == float32 && n_out == 1 && n_in > 0 && n_in <= kReduceRow) {
    float* out = call.out_as<float>();
    reduce_loops<float>(kReduction).rows(call.in[0].as<float>(), out, 1, n_in);
    if (kMean) *out /= static_cast<float>(n_in);
    return;
  }
  CoalescedAxes runs(x, axes_mask(call.op.name, call.attrs.as<ReduceAttrs>().axes, x));
  with_wide(call.in[0].data, call.out[0]->data(), x.dtype, n_in, n_out, [&](auto* in, auto* out) {
    reduce_runs(kReduction, in, out, runs);
    if constexpr (kMean) {
      using T = std::remove_pointer_t<decltype(out)>;
      const T count = static_cast<T>(runs.marked_product());
      if constexpr (std::is_floating_point_v<T>)
        for (std::int64_t i = 0; i < n_out; ++i) out[i] /= count;
    }
  });
}

template <class T>
const DeviationLoops<T>& deviation_loops() {
  if constexpr (std::is_same_v<T, float>) return KASSETTE_PICK(reduce_table).deviation_f32;
  else return KASSETTE_PICK(reduce_table).deviation_f64;
}

/// The sums of squared deviations of x from `mean`, whose shape is the unmarked runs. The last marked run is reduced by
/// loops for deviations, the others by sums of these. All sizes are at least 1.
template <class T>
void sum_squared_deviations(const T* x, const T* mean, T* out, const CoalescedAxes& runs) {
  int last = runs.n - 1;
  while (last >= 0 && !runs.marked[last]) --last;
  if (last < 0) {  // nothing is reduced, or only axes of size 1
    for (std::int64_t i = 0; i < runs.product(0, runs.n); ++i)
      out[i] = (x[i] - mean[i]) * (x[i] - mean[i]);  // 0, or NaN if x[i] is not finite
    return;
  }
  std::int64_t n = runs.size[last], inner = runs.product(last + 1, runs.n), outer = runs.product(0, last);
  CoalescedAxes rest;
  for (int i = 0; i < runs.n; ++i)
    if (i != last) rest.push(runs.size[i], runs.marked[i]);
  bool more = rest.marked_product() > 1;
  Scratch<T> means(more ? outer * inner : 0), sums(more ? outer * inner : 0);
  if (more) {
    repeat_runs(reinterpret_cast<const std::byte*>(mean), reinterpret_cast<std::byte*>(means.get()), sizeof(T), rest);
    mean = means.get();
  }
  const DeviationLoops<T>& loops = deviation_loops<T>();
  reduce_blocks(
      reduce_loops<T>(Reduction::sum),
      [&](std::int64_t o, std::int64_t at, T* to, std::int64_t count, std::int64_t m) {
        loops.rows(x + at, mean + o, to, count, m);
      },
      [&](std::int64_t o, std::int64_t column, std::int64_t at, T* to, std::int64_t m, std::int64_t width) {
        loops.columns(x + at, mean + o * inner + column, to, m, inner, width);
      },
      more ? sums.get() : out, outer, n, inner);
  if (more) reduce_runs(Reduction::sum, static_cast<const T*>(sums.get()), out, rest);
}

/// var or std in two passes: the mean, then the mean of the squared deviations.
template <bool kRoot>
void var_kernel(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  std::int64_t n_in = x.numel(), n_out = call.out[0]->numel();
  CoalescedAxes runs(x, axes_mask(call.op.name, call.attrs.as<ReduceAttrs>().axes, x));
  with_wide(call.in[0].data, call.out[0]->data(), x.dtype, n_in, n_out, [&](auto* in, auto* out) {
    using T = std::remove_pointer_t<decltype(out)>;
    if constexpr (std::is_floating_point_v<T>) {
      const T count = static_cast<T>(runs.marked_product());
      Scratch<T> mean(n_out);
      reduce_runs(Reduction::sum, in, mean.get(), runs);
      for (std::int64_t i = 0; i < n_out; ++i) mean.get()[i] /= count;
      if (n_in > 0) sum_squared_deviations(in, static_cast<const T*>(mean.get()), out, runs);
      else std::fill_n(out, n_out, T(0));
      for (std::int64_t i = 0; i < n_out; ++i) out[i] = kRoot ? std::sqrt(out[i] / count) : out[i] / count;
    }
  });
}

/// The shape of input 1, the dtype of input 0.
void like_rule(const OpCall& call, TensorSpec* out) {
  out->set(call.spec(1));
  out->dtype = call.spec(0).dtype;
}

/// Divides m numbers by `count`; half types in float32.
void divide_by_count(const std::byte* from, std::byte* to, DType dtype, std::int64_t m, std::int64_t count) {
  with_wide(from, to, dtype, m, m, [&](auto* in, auto* out) {
    using T = std::remove_pointer_t<decltype(out)>;
    const T divisor = static_cast<T>(count);
    for (std::int64_t i = 0; i < m; ++i) out[i] = static_cast<T>(in[i] / divisor);
  });
}

void unreduce_kernel(const OpCall& call) {
  const TensorSpec &y = call.spec(0), &like = call.spec(1);
  std::int64_t m = y.numel(), n = like.numel();
  TensorDesc& out = *call.out[0];
  if (m == n) {  // nothing is repeated, and the divisor is 1
    Value v = read_value(*call.in[0].desc);
    out.storage = std::move(v.storage);
    out.offset = v.offset;
    return;
  }
  allocate_output(out, call.device);
  if (n == 0) return;
  const std::byte* from = call.in[0].data;
  Ref<Storage> divided;
  if (call.attrs.as<ReduceAttrs>().divide) {
    divided = Storage::allocate(y.bytes(), cpu);
    divide_by_count(from, static_cast<std::byte*>(divided->data), y.dtype, m, n / m);
    from = static_cast<const std::byte*>(divided->data);
  }
  repeat_runs(from, out.data(), y.dtype.size(),
              CoalescedAxes(like, axes_mask(call.op.name, call.attrs.as<ReduceAttrs>().axes, like)));
}

void unreduce_element(const OpCall& call, const TensorSpec& out, std::byte* element) {
  const int size = out.dtype.size();
  if (call.attrs.as<ReduceAttrs>().divide) divide_by_count(call.in[0].data, element, out.dtype, 1, out.numel());
  else std::memcpy(element, call.in[0].data, static_cast<std::size_t>(size));
}

/// For x and its extremes y: 1 / k for the k elements of a group that equal its extreme, else 0. In a group with a NaN
/// no element equals the extreme, NaN, and the results are 0 / 0, as in TensorFlow (_MinOrMaxGrad).
void extremum_mask_kernel(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  std::int64_t n = x.numel();
  if (n == 0) return;
  CoalescedAxes runs(x, axes_mask(call.op.name, call.attrs.as<ReduceAttrs>().axes, x));
  dispatch(x.dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    if constexpr (!std::is_same_v<T, bool>) {
      const T* in = call.in[0].as<T>();
      T* out = call.out_as<T>();
      std::int64_t m = call.spec(1).numel();
      Scratch<T> y(n);
      Scratch<float> mask(n), share(m), shares(n);
      repeat_runs(call.in[1].data, reinterpret_cast<std::byte*>(y.get()), x.dtype.size(), runs);
      devices::parallel_for(n, kReduceGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
          mask.get()[i] = convert_one<double>(in[i]) == convert_one<double>(y.get()[i]) ? 1.f : 0.f;
      });
      reduce_runs(Reduction::sum, static_cast<const float*>(mask.get()), share.get(), runs);
      repeat_runs(reinterpret_cast<const std::byte*>(share.get()), reinterpret_cast<std::byte*>(shares.get()), 4, runs);
      devices::parallel_for(n, kReduceGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
          out[i] = convert_one<T>(static_cast<double>(mask.get()[i]) / static_cast<double>(shares.get()[i]));
      });
    }
  });
}

Tensor reduce(const OpDef& op, const Tensor& x, const Axes& axes, bool keepdims) {
  return apply1(op, ReduceAttrs{axis_set(op.name, x, axes, keepdims)}, {x});
}

void extreme_vjp(const VjpContext& ctx) {
  Tensor x = ctx.in(0);
  ctx.din(0) = mul_no_nan(unreduce(ctx.dy(), x, ctx.attrs.as<ReduceAttrs>().axes),
                          apply1(extremum_mask_op, ctx.attrs, {x, ctx.out()}));
}

/// The gradient of var: dy / n * 2 (x - mean). Half types are computed in float32, since rounding the mean would spoil
/// the difference.
Tensor var_grad(const Tensor& dy, const Tensor& x, AxisSet axes) {
  if (x.dtype().size() < 4) return cast(var_grad(cast(dy, float32), cast(x, float32), axes), x.dtype());
  return apply1(unreduce_op, ReduceAttrs{axes, /*divide=*/true}, {dy, x}) *
         ((x - apply1(mean_op, ReduceAttrs{axes.with_keepdims()}, {x})) * 2.0);
}

}  // namespace

constinit const OpDef sum_op{
    .name = "sum",
    .rule = number_rule,
    .cpu = reduction_kernel<Reduction::sum>,
    .vjp =
        [](const VjpContext& ctx) {
          ctx.accumulate(0, unreduce_op, ReduceAttrs{ctx.attrs.as<ReduceAttrs>().axes}, {ctx.dy(), ctx.like(0)});
        },
    .pattern = Pattern::sum};
constinit const OpDef prod_op{.name = "prod",
                              .rule = number_rule,
                              .cpu = reduction_kernel<Reduction::prod>,
                              .vjp =
                                  [](const VjpContext& ctx) {
                                    const AxisSet axes = ctx.attrs.as<ReduceAttrs>().axes;
                                    ctx.din(0) = mul_no_nan(unreduce(ctx.dy(), ctx.in(0), axes),
                                                            product_of_others(ctx.in(0), axes));
                                  },
                              .saves_in = 1};
constinit const OpDef mean_op{.name = "mean",
                              .rule = float_rule,
                              .cpu = reduction_kernel<Reduction::mean>,
                              .vjp =
                                  [](const VjpContext& ctx) {
                                    ctx.accumulate(0, unreduce_op,
                                                   ReduceAttrs{ctx.attrs.as<ReduceAttrs>().axes, /*divide=*/true},
                                                   {ctx.dy(), ctx.like(0)});
                                  },
                              .pattern = Pattern::mean};
constinit const OpDef var_op{
    .name = "var",
    .rule = float_rule,
    .cpu = var_kernel<false>,
    .vjp = [](const VjpContext& ctx) { ctx.din(0) = var_grad(ctx.dy(), ctx.in(0), ctx.attrs.as<ReduceAttrs>().axes); },
    .saves_in = 1};
// If all elements are equal the gradient is 0, not 0 * inf.
constinit const OpDef std_op{.name = "std",
                             .rule = float_rule,
                             .cpu = var_kernel<true>,
                             .vjp =
                                 [](const VjpContext& ctx) {
                                   ctx.din(0) = var_grad(where_positive(ctx.dy() * 0.5 / ctx.out(), ctx.out()),
                                                         ctx.in(0), ctx.attrs.as<ReduceAttrs>().axes);
                                 },
                             .saves_in = 1,
                             .saves_out = 1};
constinit const OpDef max_op{.name = "max",
                             .rule = number_rule,
                             .cpu = reduction_kernel<Reduction::max>,
                             .vjp = extreme_vjp,
                             .saves_in = 1,
                             .saves_out = 1};
constinit const OpDef min_op{.name = "min",
                             .rule = number_rule,
                             .cpu = reduction_kernel<Reduction::min>,
                             .vjp = extreme_vjp,
                             .saves_in = 1,
                             .saves_out = 1};
constinit const OpDef unreduce_op{.name = "unreduce",
                                  .rule = like_rule,
                                  .cpu = unreduce_kernel,
                                  .vjp =
                                      [](const VjpContext& ctx) {
                                        ctx.din(0) = apply1(ctx.attrs.as<ReduceAttrs>().divide ? mean_op : sum_op,
                                                            ReduceAttrs{ctx.attrs.as<ReduceAttrs>().axes}, {ctx.dy()});
                                      },
                                  .shape_only = 2,
                                  .traits = kView,
                                  .repeated = unreduce_element};
// Piecewise constant, so it has no gradient.
constinit const OpDef extremum_mask_op{.name = "extremum_mask", .rule = same_rule, .cpu = extremum_mask_kernel};

Tensor sum(const Tensor& x, const Axes& axes, bool keepdims) { return reduce(sum_op, x, axes, keepdims); }
Tensor prod(const Tensor& x, const Axes& axes, bool keepdims) { return reduce(prod_op, x, axes, keepdims); }
Tensor max(const Tensor& x, const Axes& axes, bool keepdims) { return reduce(max_op, x, axes, keepdims); }
Tensor min(const Tensor& x, const Axes& axes, bool keepdims) { return reduce(min_op, x, axes, keepdims); }
Tensor mean(const Tensor& x, const Axes& axes, bool keepdims) { return reduce(mean_op, x, axes, keepdims); }
Tensor var(const Tensor& x, const Axes& axes, bool keepdims) { return reduce(var_op, x, axes, keepdims); }
Tensor stddev(const Tensor& x, const Axes& axes, bool keepdims) { return reduce(std_op, x, axes, keepdims); }
Tensor unreduce(const Tensor& y, const Tensor& like, AxisSet axes) {
  return apply1(unreduce_op, ReduceAttrs{axes}, {y, like});
}
Tensor sum_by(const Tensor& x, AxisSet axes) { return apply1(sum_op, ReduceAttrs{axes}, {x}); }

}  // namespace kassette::ops
