// ops/shape/tile.cpp - ops that repeat elements; their adjoints sum over the copies.
#include <algorithm>

#include "core/convert.h"
#include "core/text.h"
#include "devices/cpu/threads.h"
#include "devices/plugin.h"
#include "ops/elementwise/elementwise.h"
#include "ops/shape/like.h"
#include "ops/shape/shaping.h"
#include "ops/shape/strided.h"

namespace kassette::ops {
namespace {

std::int64_t times_dim(const char* op, std::int64_t n, std::int64_t times, const TensorSpec& x) {
  std::int64_t product;
  if (n < 0) return kUnknown;
  if (__builtin_mul_overflow(n, times, &product))
    fail<ValueError>({op}, n, " elements of ", x, " ", times, " times are too many to address");
  return product;
}

/// Sums every element of `kept` over all of `copies`, in the order of the copies whatever the number of threads: blocks
/// of kCopies of them, then the sums of these, so that rounding errors do not grow with their number.
/// `kept.to` is row-major.
void sum_copies(const OpCall& call, const Strided& kept, const Strided& copies) {
  TensorDesc& out = *call.out[0];
  if (out.numel() == 0) return;
  if (call.device.type() != Device::kCpu) return device_moves().sum_copies(call, kept, copies);
  std::int64_t n_copies = 1;
  for (int i = 0; i < copies.rank; ++i) n_copies *= copies.dims[i];
  dispatch(out.dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    using Sum = std::conditional_t<kIsHalf<T>, float, std::conditional_t<std::is_same_v<T, bool>, int, T>>;
    const T* from = call.in[0].as<T>();
    T* to = call.out_as<T>();
    constexpr std::int64_t kBlock = 256, kCopies = 1024;
    int last = kept.rank - 1;
    std::int64_t run = kept.rank ? kept.dims[last] : 1, stride = kept.rank ? kept.from[last] : 1;
    std::int64_t blocks = (run + kBlock - 1) / kBlock, rows = out.numel() / run;
    std::int64_t grain =
        std::max<std::int64_t>(1, (1 << 14) / (std::min(run, kBlock) * std::max<std::int64_t>(1, n_copies)));
    devices::parallel_for(rows * blocks, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t at = begin; at < end; ++at) {
        std::int64_t row = at / blocks, first = at % blocks * kBlock, n = std::min(kBlock, run - first),
                     base = first * stride;
        for (std::int64_t i = last - 1, rest = row; i >= 0; --i) {
          base += rest % kept.dims[i] * kept.from[i];
          rest /= kept.dims[i];
        }
        Sum sum[kBlock] = {}, total[kBlock] = {};
        const auto close_block = [&] {
          for (std::int64_t j = 0; j < n; ++j) {
            total[j] = static_cast<Sum>(total[j] + sum[j]);
            sum[j] = 0;
          }
        };
        for (std::int64_t c = 0; c < n_copies; ++c) {
          if (c > 0 && c % kCopies == 0) close_block();
          std::int64_t offset = base;
          for (std::int64_t i = copies.rank - 1, rest = c; i >= 0; --i) {
            offset += rest % copies.dims[i] * copies.from[i];
            rest /= copies.dims[i];
          }
          for (std::int64_t j = 0; j < n; ++j) {
            if constexpr (kIsHalf<T>) sum[j] += to_float(from[offset + j * stride]);
            else sum[j] = static_cast<Sum>(sum[j] + from[offset + j * stride]);
          }
        }
        close_block();
        for (std::int64_t j = 0; j < n; ++j) to[row * run + first + j] = convert_one<T>(total[j]);
      }
    });
  });
}

// --- repeat_elements -------------------------------------------------------------------------------------------------

void repeat_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec& x = call.spec(0);
  out->set(x);
  if (x.rank < 0) return;
  int axis = place_axis("repeat_elements", call.attrs.as<RepeatAttrs>().axis, x);
  out->dims[axis] = times_dim("repeat_elements", x.dims[axis], call.attrs.as<RepeatAttrs>().times, x);
}

/// `kept`: the axes of the smaller tensor, with their strides in the repeated one. `copies`: the copies of each
/// element.
void repeat_layout(const TensorSpec& small, std::int64_t times, int axis, Strided& kept, Strided& copies) {
  std::int64_t strides[kMaxRank], inner = 1;
  row_strides(small, strides);
  for (int i = axis + 1; i < small.rank; ++i) inner *= small.dims[i];
  for (int i = 0; i < small.rank; ++i)
    kept.push(small.dims[i], i <= axis ? strides[i] * times : strides[i], strides[i]);
  copies.push(times, inner, 0);
}

/// Writes each element of input 0 to every position of the output that repeats it.
void write_repeats(const OpCall& call, const Strided& kept, const Strided& copies) {
  Strided layout;
  for (int i = 0; i < kept.rank; ++i) layout.push(kept.dims[i], kept.to[i], kept.from[i]);
  for (int i = 0; i < copies.rank; ++i) layout.push(copies.dims[i], 0, copies.from[i]);
  copy_strided(call, layout, call.in[0].data, call.out[0]->data(), call.out[0]->dtype.size());
}

void repeat_kernel(const OpCall& call) {
  Strided kept, copies;
  repeat_layout(call.spec(0), call.attrs.as<RepeatAttrs>().times,
                place_axis("repeat_elements", call.attrs.as<RepeatAttrs>().axis, call.spec(0)), kept, copies);
  write_repeats(call, kept, copies);
}
void repeat_gradient(const VjpContext& ctx) {
  ctx.din(0) = apply1(repeat_grad_like_op, ctx.attrs, {ctx.dy(), ctx.in(0)});
}

void like_rule(const OpCall& call, TensorSpec* out) {
  out->set(call.spec(call.n_in - 1));
  out->dtype = call.spec(0).dtype;
}
void repeat_grad_kernel(const OpCall& call) {
  Strided kept, copies;
  const TensorSpec& small = *call.out[0];
  repeat_layout(small, call.attrs.as<RepeatAttrs>().times,
                place_axis("repeat_elements", call.attrs.as<RepeatAttrs>().axis, small), kept, copies);
  sum_copies(call, kept, copies);
}
void repeat_grad_gradient(const VjpContext& ctx) { ctx.din(0) = apply1(repeat_op, ctx.attrs, {ctx.dy()}); }

// --- tile ------------------------------------------------------------------------------------------------------------

void tile_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec& x = call.spec(0);
  DimValues times = read_dims(call, 1, "n");
  for (int i = 0; i < times.rank; ++i)
    if (!times.is_unknown(i) && times.at[i] < 0)
      fail<ValueError>({"tile", "n"}, "is ", times, kExpected, "factors must not be negative");
  out->set(x);
  if (x.rank < 0) return;
  if (times.rank > x.rank)
    fail<NotImplementedError>({"tile", "n"}, "is ", times, ", more factors than x of shape ", x, " has axes", kRemedy,
                              "K::expand_dims makes axes");
  for (int i = 0; i < x.rank; ++i) {
    int k = times.rank < 0 ? -1 : i - (x.rank - times.rank);
    if (times.rank < 0 || (k >= 0 && times.is_unknown(k))) out->dims[i] = kUnknown;
    else if (k >= 0) out->dims[i] = times_dim("tile", x.dims[i], times.at[k], x);
  }
}

void tile_layout(const TensorSpec& small, const TensorSpec& large, Strided& kept, Strided& copies) {
  std::int64_t from[kMaxRank], to[kMaxRank];
  row_strides(large, from);
  row_strides(small, to);
  for (int i = 0; i < small.rank; ++i) {
    kept.push(small.dims[i], from[i], to[i]);
    if (small.dims[i] && large.dims[i] != small.dims[i])
      copies.push(large.dims[i] / small.dims[i], from[i] * small.dims[i], 0);
  }
}

void tile_kernel(const OpCall& call) {
  Strided kept, copies;
  tile_layout(call.spec(0), *call.out[0], kept, copies);
  write_repeats(call, kept, copies);
}
void tile_gradient(const VjpContext& ctx) { ctx.din(0) = apply1(tile_grad_like_op, {ctx.dy(), ctx.in(1), ctx.in(0)}); }

void tile_grad_kernel(const OpCall& call) {
  Strided kept, copies;
  tile_layout(*call.out[0], call.spec(0), kept, copies);
  sum_copies(call, kept, copies);
}
void tile_grad_gradient(const VjpContext& ctx) { ctx.din(0) = apply1(tile_op, {ctx.dy(), ctx.in(1)}); }

// --- broadcast_to ----------------------------------------------------------------------------------------------------

void broadcast_to_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec& x = call.spec(0);
  dims_from(call, 1, out);
  out->dtype = x.dtype;
  if (x.rank < 0 || out->rank < 0) return;
  bool fits = x.rank <= out->rank;
  for (int i = 0; fits && i < x.rank; ++i) {
    std::int64_t n = x.dims[i], to = out->dims[out->rank - x.rank + i];
    fits = n == 1 || n < 0 || to < 0 || n == to;
  }
  if (!fits) fail<ValueError>({"broadcast_to"}, x, " does not broadcast to ", *out);
}
void broadcast_to_kernel(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  TensorDesc& out = *call.out[0];
  if (out.same_shape(x)) {  // its storage
    Value v = read_value(*call.in[0].desc);
    out.storage = std::move(v.storage);
    out.offset = v.offset;
    return;
  }
  (void)out.checked_bytes("broadcast_to");
  allocate_output(out, call.device);
  std::int64_t from[kMaxRank], to[kMaxRank];
  row_strides(x, from);
  row_strides(out, to);
  Strided layout;
  for (int i = 0; i < out.rank; ++i) {
    int k = i - (out.rank - x.rank);
    layout.push(out.dims[i], k < 0 || x.dims[k] == 1 ? 0 : from[k], to[i]);
  }
  copy_strided(call, layout, call.in[0].data, call.out[0]->data(), out.dtype.size());
}
void broadcast_to_gradient(const VjpContext& ctx) { ctx.din(0) = sum_to_like(ctx.dy(), ctx.in(0)); }

}  // namespace

constinit const OpDef repeat_op{.name = "repeat_elements",
                                .rule = repeat_rule,
                                .cpu = repeat_kernel,
                                .vjp = repeat_gradient,
                                .cuda = repeat_kernel};
constinit const OpDef repeat_grad_like_op{.name = "repeat_grad_like",
                                          .rule = like_rule,
                                          .cpu = repeat_grad_kernel,
                                          .vjp = repeat_grad_gradient,
                                          .shape_only = 2,
                                          .cuda = repeat_grad_kernel};
constinit const OpDef tile_op{.name = "tile",
                              .rule = tile_rule,
                              .cpu = tile_kernel,
                              .vjp = tile_gradient,
                              .saves_in = 2,
                              .host = 2,
                              .cuda = tile_kernel};
/// Inputs: dy, the factors, and the tensor that was tiled (for its shape).
constinit const OpDef tile_grad_like_op{.name = "tile_grad_like",
                                        .rule = like_rule,
                                        .cpu = tile_grad_kernel,
                                        .vjp = tile_grad_gradient,
                                        .saves_in = 2,
                                        .shape_only = 4,
                                        .host = 2,
                                        .cuda = tile_grad_kernel};
constinit const OpDef broadcast_to_op{.name = "broadcast_to",
                                      .rule = broadcast_to_rule,
                                      .cpu = broadcast_to_kernel,
                                      .vjp = broadcast_to_gradient,
                                      .host = 2,
                                      .traits = kView,
                                      .pattern = Pattern::alias,
                                      .cuda = broadcast_to_kernel};

Tensor repeat_elements(const Tensor& x, std::int64_t times, int axis) {
  if (times < 1) fail<ValueError>({"repeat_elements", "rep"}, "is ", times, kExpected, "it must be at least 1");
  return apply1(repeat_op, RepeatAttrs{times, axis}, {x});
}
Tensor tile(const Tensor& x, const Dims& times) { return apply1(tile_op, {x, dims_tensor(times, "tile", "n")}); }
Tensor broadcast_to(const Tensor& x, const Dims& shape) {
  return apply1(broadcast_to_op, {x, dims_tensor(shape, "broadcast_to")});
}

}  // namespace kassette::ops
