// ops/reverse.cpp - axes read backwards.
#include "core/rank.h"
#include "ops/axes.h"
#include "ops/operand.h"
#include "ops/shaping.h"
#include "ops/strided.h"

namespace kassette {
namespace {

/// attrs.a: the axes as given, a byte each; attrs.b: how many.
void reverse_rule(const Call& call, Spec* out) {
  const Spec& x = call.spec(0);
  out->set(x);
  if (x.rank < 0) return;
  std::uint32_t seen = 0;
  for (int k = 0; k < call.attrs.b; ++k) {
    int axis = place_axis("reverse", static_cast<std::int8_t>(call.attrs.a >> 8 * k), x);
    if (seen >> axis & 1) fail<ValueError>("reverse: axis ", axis, " of a tensor of shape ", x, " is listed twice");
    seen |= 1u << axis;
  }
}
void reverse_kernel(const Call& call) {
  const Spec& x = call.spec(0);
  if (x.numel() == 0) return;
  std::int64_t strides[kMaxRank], first = 0;
  row_strides(x, strides);
  Strided layout;
  for (int i = 0; i < x.rank; ++i) layout.push(x.dims[i], strides[i], strides[i]);
  for (int k = 0; k < call.attrs.b; ++k) {
    int axis = place_axis("reverse", static_cast<std::int8_t>(call.attrs.a >> 8 * k), x);
    first += (x.dims[axis] - 1) * strides[axis];
    layout.from[axis] = -strides[axis];
  }
  int size = x.dtype.size();
  copy_strided(call.device, layout, call.in[0].data + first * size, call.out[0]->data(), size);
}
void reverse_gradient(const Rewind& r) { r.din(0) = apply1(reverse_row, r.attrs, {r.dy()}); }

}  // namespace

constinit const OpDef reverse_row{
    .name = "reverse", .rule = reverse_rule, .cpu = reverse_kernel, .vjp = reverse_gradient, .cuda = reverse_kernel};

Tensor reverse(const Tensor& x, const Axes& axes) {
  if (axes.size_ < 0) fail<ValueError>("reverse: the axes are None; list them");
  Attrs attrs;
  attrs.b = axes.size_;
  for (int k = 0; k < axes.size_; ++k) {
    if (from_front(axes.axes_[k], kMaxRank) < 0) fail_axis("reverse", axes.axes_[k], x.defined() ? Access::body(x) : Spec());
    attrs.a |= static_cast<std::int64_t>(static_cast<std::uint8_t>(axes.axes_[k])) << 8 * k;
  }
  return apply1(reverse_row, attrs, {x});
}

}  // namespace kassette
