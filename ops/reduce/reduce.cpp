// ops/reduce/reduce.cpp - sum, mean, prod, max and min over axes, and the ops that their gradients use. var and std are
// in variance.cpp.
#include "ops/reduce/reduce.h"

#include <cstring>

#include "core/text.h"
#include "ops/elementwise/elementwise.h"
#include "ops/engine/expr.h"
#include "ops/reduce/reduce_runs.h"
#include "ops/elementwise/half_compute.h"
#include "ops/shape/repeat.h"

namespace kassette::ops {
namespace {

void number_rule(const OpCall& call, TensorSpec* out) {
  check_domain(call, Domain::numbers);
  reduced_spec(call.op.name, call.attrs.as<ReduceAttrs>().axes, call.spec(0), out);
}
/// The mean of bool and integers is float32. There is no kernel for them on CUDA.
void mean_rule(const OpCall& call, TensorSpec* out) {
  reduced_spec(call.op.name, call.attrs.as<ReduceAttrs>().axes, call.spec(0), out);
  if (!out->dtype.is_float()) out->dtype = float32;
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
  with_wide_output(call.out[0]->data(), call.out[0]->dtype, n_out, [&](auto* out) {
    reduce_runs(kReduction, {call.in[0].data, x.dtype}, out, runs);
    if constexpr (kMean) {
      using T = std::remove_pointer_t<decltype(out)>;
      const T count = static_cast<T>(runs.marked_product());
      if constexpr (std::is_floating_point_v<T>)
        for (std::int64_t i = 0; i < n_out; ++i) out[i] /= count;
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
                              .rule = mean_rule,
                              .cpu = reduction_kernel<Reduction::mean>,
                              .vjp =
                                  [](const VjpContext& ctx) {
                                    ctx.accumulate(0, unreduce_op,
                                                   ReduceAttrs{ctx.attrs.as<ReduceAttrs>().axes, /*divide=*/true},
                                                   {ctx.dy(), ctx.like(0)});
                                  },
                              .pattern = Pattern::mean};
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
Tensor unreduce(const Tensor& y, const Tensor& like, AxisSet axes) {
  return apply1(unreduce_op, ReduceAttrs{axes}, {y, like});
}
Tensor sum_by(const Tensor& x, AxisSet axes) { return apply1(sum_op, ReduceAttrs{axes}, {x}); }

}  // namespace kassette::ops
