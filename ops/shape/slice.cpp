// ops/shape/slice.cpp - K::slice(x, start, size), and its adjoint.
#include <cstring>

#include "core/text.h"
#include "ops/engine/operand.h"
#include "ops/shape/region.h"
#include "ops/shape/shaping.h"

namespace kassette::ops {
namespace {

/// `argument`: "start" or "size", whichever is at fault, or "" if they do not fit together.
[[noreturn]] void fail_bounds(const char* argument, const TensorSpec& x, const DimValues& start, const DimValues& size,
                              const char* expected) {
  const bool of_size = std::strcmp(argument, "size") == 0;
  fail<ValueError>({"slice", argument}, *argument ? "" : "start ", of_size ? size : start,
                   of_size ? " with start " : " and size ", of_size ? start : size, " of a tensor of shape ", x,
                   kExpected, expected);
}

void slice_region(const TensorSpec& x, const DimValues& start, const DimValues& size, Region& r) {
  for (int i = 0; i < r.rank; ++i) {
    std::int64_t n = x.dim(i);
    bool starts = start.rank >= 0 && !start.is_unknown(i), sizes = size.rank >= 0 && !size.is_unknown(i);
    std::int64_t s = starts ? start.at[i] : 0, z = sizes ? size.at[i] : kUnknown;
    if (starts && s < 0) fail_bounds("start", x, start, size, "a start must not be negative");
    if (sizes && z < -1) fail_bounds("size", x, start, size, "a size must not be negative, except -1 for the rest");
    if (sizes && z == -1 && starts && n >= 0) z = n - s;
    if (starts && n >= 0 && (s > n || (z >= 0 && z > n - s)))
      fail_bounds(s > n ? "start" : "", x, start, size, "the slice must end within the axis");
    r.start[i] = s;
    r.step[i] = 1;
    r.count[i] = z;
  }
}

Region slice_of(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  DimValues start = read_dims(call, 1, "start"), size = read_dims(call, 2, "size");
  Region r;
  r.rank = x.rank >= 0 ? x.rank : start.rank >= 0 ? start.rank : size.rank;
  r.out.dtype = x.dtype;
  r.out.rank = static_cast<std::int8_t>(r.rank);
  if (r.rank < 0) return r;
  const bool start_fits = !differ(start.rank, r.rank), size_fits = !differ(size.rank, r.rank);
  if (!start_fits || !size_fits)
    fail_bounds(size_fits    ? "start"
                : start_fits ? "size"
                             : "",
                x, start, size, "they must have an entry for each axis");
  slice_region(x, start, size, r);
  for (int i = 0; i < r.rank; ++i) r.out.dims[i] = r.count[i];
  return r;
}

void slice_rule(const OpCall& call, TensorSpec* out) { out->set(slice_of(call).out); }
void slice_kernel(const OpCall& call) { take(call, slice_of(call)); }
void slice_gradient(const VjpContext& ctx) {
  ctx.din(0) = apply1(slice_grad_like_op, {ctx.dy(), ctx.in(1), ctx.in(0)});
}

void slice_grad_kernel(const OpCall& call) {
  Region r;
  r.rank = call.spec(0).rank;
  DimValues start = read_dims(call, 1);
  for (int i = 0; i < r.rank; ++i) {
    r.start[i] = start.at[i];
    r.step[i] = 1;
    r.count[i] = call.spec(0).dims[i];
  }
  write_padded(call, r);
}
void slice_grad_gradient(const VjpContext& ctx) {
  ctx.din(0) = apply1(slice_op, {ctx.dy(), ctx.in(1), shape_of(ctx.in(0), int64)});
}

}  // namespace

constinit const OpDef slice_op{.name = "slice",
                               .rule = slice_rule,
                               .cpu = slice_kernel,
                               .vjp = slice_gradient,
                               .saves_in = 2,
                               .host = 6,
                               .traits = kView,
                               .cuda = slice_kernel,
                               .inputs = "x start size"};
constinit const OpDef slice_grad_like_op{.name = "slice_grad_like",
                                         .rule = padded_rule,
                                         .cpu = slice_grad_kernel,
                                         .vjp = slice_grad_gradient,
                                         .saves_in = 2,
                                         .shape_only = 4,
                                         .host = 2,
                                         .cuda = slice_grad_kernel};

Tensor slice_from(const Tensor& x, const Dims& start, const Dims& size) {
  return apply1(slice_op, {x, dims_tensor(start, "slice", "start"), dims_tensor(size, "slice", "size")});
}

}  // namespace kassette::ops
