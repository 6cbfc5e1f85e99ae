// ops/shape/reverse.cpp - reversing the order of elements along axes.
#include "core/rank.h"
#include "ops/engine/axes.h"
#include "ops/engine/operand.h"
#include "ops/shape/shaping.h"
#include "ops/shape/strided.h"

namespace kassette::ops {
namespace {

void reverse_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec& x = call.spec(0);
  out->set(x);
  if (x.rank < 0) return;
  std::uint32_t seen = 0;
  const AxisList& axes = call.attrs.as<ReverseAttrs>().axes;
  for (int k = 0; k < axes.size; ++k) {
    int axis = place_axis("reverse", axes.at[k], x, /*added=*/0, "axes");
    if (seen >> axis & 1) fail<ValueError>({"reverse", "axes"}, "hold ", axis, " twice for ", x);
    seen |= 1u << axis;
  }
}
void reverse_kernel(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  if (x.numel() == 0) return;
  std::int64_t strides[kMaxRank], first = 0;
  row_strides(x, strides);
  Strided layout;
  for (int i = 0; i < x.rank; ++i) layout.push(x.dims[i], strides[i], strides[i]);
  const AxisList& axes = call.attrs.as<ReverseAttrs>().axes;
  for (int k = 0; k < axes.size; ++k) {
    int axis = place_axis("reverse", axes.at[k], x);
    first += (x.dims[axis] - 1) * strides[axis];
    layout.from[axis] = -strides[axis];
  }
  int size = x.dtype.size();
  copy_strided(call, layout, call.in[0].data + first * size, call.out[0]->data(), size);
}
void reverse_gradient(const VjpContext& ctx) { ctx.din(0) = apply1(reverse_op, ctx.attrs, {ctx.dy()}); }

}  // namespace

constinit const OpDef reverse_op{
    .name = "reverse", .rule = reverse_rule, .cpu = reverse_kernel, .vjp = reverse_gradient, .cuda = reverse_kernel};

Tensor reverse(const Tensor& x, const Axes& axes) {
  if (axes.size_ < 0) fail<ValueError>({"reverse", "axes"}, "are None", kRemedy, "list them");
  check_length({"reverse", "axes"}, axes);
  ReverseAttrs attrs{};
  for (int k = 0; k < axes.size_; ++k) {
    if (from_front(axes.axes_[k], kMaxRank) < 0)
      fail_axis("reverse", axes.axes_[k], x.defined() ? Access::desc(x) : TensorSpec(), /*added=*/0, "axes");
    attrs.axes.push(axes.axes_[k]);
  }
  return apply1(reverse_op, attrs, {x});
}

}  // namespace kassette::ops
