// ops/shape/like.cpp - broadcasting to the shape of another tensor, and its adjoint.
#include "ops/shape/like.h"

#include <cstring>

#include "core/text.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce_runs.h"
#include "ops/elementwise/half_compute.h"
#include "ops/shape/repeat.h"

namespace kassette::ops {
namespace {

[[noreturn]] __attribute__((noinline, cold)) void fail_like(const char* op, const TensorSpec& small,
                                                            const TensorSpec& large) {
  fail<ValueError>({op}, small, " does not broadcast to ", large);
}

/// The axes of `large` along which `small` is repeated. Throws ValueError if `small` does not broadcast to `large`.
unsigned repeated_axes(const char* op, const TensorSpec& small, const TensorSpec& large) {
  int lead = large.rank - small.rank;
  if (lead < 0) fail_like(op, small, large);
  unsigned mask = (1u << lead) - 1;
  for (int i = 0; i < small.rank; ++i) {
    if (small.dims[i] == large.dims[lead + i]) continue;
    if (small.dims[i] != 1) fail_like(op, small, large);
    mask |= 1u << (lead + i);
  }
  return mask;
}

/// The output has the shape of input 1 and the dtype of input 0. `small` and `large` are the two shapes; `small`
/// broadcasts to `large`.
void like_rule(const OpCall& call, TensorSpec* out, const TensorSpec& small, const TensorSpec& large) {
  if (small.known() && large.known() && small.numel() != large.numel()) repeated_axes(call.op.name, small, large);
  out->set(call.spec(1));
  out->dtype = call.spec(0).dtype;
}
void broadcast_like_rule(const OpCall& call, TensorSpec* out) { like_rule(call, out, call.spec(0), call.spec(1)); }
void sum_to_like_rule(const OpCall& call, TensorSpec* out) {
  check_domain(call, Domain::numbers);
  like_rule(call, out, call.spec(1), call.spec(0));
}

/// If the shapes differ only in axes of size 1, makes the output share the input's storage and returns true.
bool shared(const OpCall& call) {
  if (call.spec(0).numel() != call.spec(1).numel()) return false;
  share(call);
  return true;
}

void broadcast_like_kernel(const OpCall& call) {
  if (shared(call)) return;
  TensorDesc& out = *call.out[0];
  unsigned mask = repeated_axes(call.op.name, call.spec(0), out);
  allocate_output(out, call.device);
  if (out.numel() == 0) return;
  repeat_runs(call.in[0].data, out.data(), out.dtype.size(), CoalescedAxes(out, mask));
}

void broadcast_like_element(const OpCall& call, const TensorSpec& out, std::byte* element) {
  std::memcpy(element, call.in[0].data, static_cast<std::size_t>(out.dtype.size()));
}

void sum_to_like_kernel(const OpCall& call) {
  if (shared(call)) return;
  TensorDesc& out = *call.out[0];
  const TensorSpec& x = call.spec(0);
  unsigned mask = repeated_axes(call.op.name, out, x);
  allocate_output(out, call.device);
  with_wide_output(out.data(), x.dtype, out.numel(), [&](auto* to) {
    reduce_runs(Reduction::sum, {call.in[0].data, x.dtype}, to, CoalescedAxes(x, mask));
  });
}

bool same_known_shape(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return false;
  const TensorDesc &x = Access::desc(a), &y = Access::desc(b);
  return x.same_shape(y) && x.known();
}

bool is_rows(ShapeCheck check) { return check == ShapeCheck::rows || check == ShapeCheck::state_rows; }
bool is_mask(ShapeCheck check) { return check >= ShapeCheck::mask; }
bool is_bound(ShapeCheck check) { return check == ShapeCheck::min_of_clip || check == ShapeCheck::max_of_clip; }
bool is_bias(ShapeCheck check) { return check == ShapeCheck::bias_last || check == ShapeCheck::bias_first; }
/// The axis of x whose length a bias of rank 1 has.
int channel_axis(ShapeCheck check, const TensorSpec& x) {
  return check == ShapeCheck::bias_first && x.rank > 2 ? 1 : x.rank - 1;
}

/// True if x meets the requirement (assert_shape in like.h), as far as sizes are known.
bool satisfies(ShapeCheck check, const TensorSpec& x, const TensorSpec& like) {
  if (x.rank < 0 || like.rank < 0) return true;
  if (is_bias(check)) {
    // A bias is (space..., channels) in both data formats. A tensor of rank 2 has its channels last in both.
    const bool first = check == ShapeCheck::bias_first && like.rank > 2;
    if (like.rank == 0 || (x.rank != 1 && x.rank != like.rank - 1)) return false;
    for (int i = 0; i < x.rank; ++i) {
      const int axis = i < x.rank - 1 ? i + (first ? 2 : 1) : channel_axis(check, like);
      if (differ(x.dims[i], like.dims[axis])) return false;
    }
    return true;
  }
  if (is_bound(check)) {
    if (x.rank > like.rank) return false;
  } else if (is_rows(check)) {
    return x.rank > 0 && (like.rank == 0 || !differ(x.dims[0], like.dims[0]));
  } else if (is_mask(check)) {
    return x.rank == 2 && like.rank >= 2 && !differ(x.dims[0], like.dims[0]) && !differ(x.dims[1], like.dims[1]);
  } else if (x.rank != like.rank) {
    return check == ShapeCheck::class_ids;
  }
  for (int i = 1; i <= x.rank; ++i) {
    std::int64_t n = x.dims[x.rank - i], m = like.dims[like.rank - i];
    if (differ(n, m) && !(is_bound(check) && n == 1)) return false;
  }
  return true;
}

struct AssertShapeAttrs {
  static constexpr const char* attrs_name = "assert_shape";
  ShapeCheck check;
};
/// The output has the shape of input 0; its unknown sizes are those of input 1 if they must be equal.
void assert_shape_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec &x = call.spec(0), &like = call.spec(1);
  const ShapeCheck check = call.attrs.as<AssertShapeAttrs>().check;
  assert_shape(check, x, like);
  out->set(x);
  if (is_bound(check) || check == ShapeCheck::class_ids || is_bias(check) || like.rank < 0) return;
  if (is_rows(check)) {
    if (x.rank > 0 && like.rank > 0 && x.dims[0] < 0) out->dims[0] = like.dims[0];
    return;
  }
  if (x.rank < 0) {
    out->set(like);
    if (is_mask(check)) out->rank = 2;
  }
  out->dtype = x.dtype;
  for (int i = 0; i < out->rank; ++i)
    if (out->dims[i] < 0) out->dims[i] = like.dims[i];
}

}  // namespace

constinit const OpDef broadcast_like_op{
    .name = "broadcast_like",
    .rule = broadcast_like_rule,
    .cpu = broadcast_like_kernel,
    .vjp = [](const VjpContext& ctx) { ctx.din(0) = sum_to_like(ctx.dy(), ctx.in(0)); },
    .shape_only = 2,
    .traits = kView,
    .pattern = Pattern::alias,
    .repeated = broadcast_like_element};
constinit const OpDef sum_to_like_op{
    .name = "sum_to_like",
    .rule = sum_to_like_rule,
    .cpu = sum_to_like_kernel,
    .vjp = [](const VjpContext& ctx) { ctx.din(0) = broadcast_like(ctx.dy(), ctx.in(0)); },
    .shape_only = 2,
    .traits = kView,
    .pattern = Pattern::alias};
constinit const OpDef assert_shape_op{.name = "assert_shape",
                                      .rule = assert_shape_rule,
                                      .cpu = share,
                                      .vjp = [](const VjpContext& ctx) { ctx.din(0) = ctx.dy(); },
                                      .shape_only = 2,
                                      .traits = kView,
                                      .pattern = Pattern::alias,
                                      .cuda = share};

void assert_shape(ShapeCheck check, const TensorSpec& x, const TensorSpec& like) {
  if (satisfies(check, x, like)) return;
  if (is_bound(check))
    fail<ValueError>({"clip", check == ShapeCheck::min_of_clip ? "min_value" : "max_value"}, "of shape ", x,
                     " does not broadcast to x of shape ", like);
  if (check == ShapeCheck::moving_average)
    fail<ValueError>({"moving_average_update"}, "the variable is ", like, ", the value ", x, kExpected,
                     "shapes must be equal");
  if (is_bias(check)) {
    if (x.rank == 1)
      fail<ValueError>({"bias_add"}, "bias of shape ", x, " for x of shape ", like, kExpected,
                       "there must be one number for each channel");
    if (x.rank != like.rank - 1)
      fail<ValueError>({"bias_add"}, "bias of shape ", x, " for x of shape ", like, kExpected, "the rank must be 1 or ",
                       int(like.rank) - 1);
    fail<ValueError>({"bias_add"}, "bias of shape ", x, " for x of shape ", like, kExpected,
                     "its sizes must be those of x");
  }
  if (is_mask(check))
    fail<ValueError>({"rnn"}, "mask has shape ", x, ", the inputs ", like, kExpected, "it must be ",
                     check == ShapeCheck::mask ? "(samples, time)" : "(time, samples)",
                     " as they are, or the same with an axis of size 1 appended");
  if (check == ShapeCheck::branches)
    fail<ValueError>({"switch_"}, "the branches have shapes ", like, " and ", x, kExpected, "they must be equal");
  if (check == ShapeCheck::keys)
    fail<ValueError>({"lexsort", "keys"}, "have shapes ", like, " and ", x, kExpected, "they must be equal");
  if (check == ShapeCheck::state)
    fail<ValueError>({"rnn"}, "the step returned a state of shape ", x, ", it was ", like, kExpected,
                     "the shape must stay the same");
  if (is_rows(check))
    fail<ValueError>({"rnn"}, check == ShapeCheck::rows ? "an output" : "a state", " has shape ", x, kExpected,
                     "it must be (", like.dims[0], ", ...), a row for each sample");
  if (check == ShapeCheck::class_ids)
    fail<ValueError>({"sparse_categorical_crossentropy"}, "target has shape ", x, kExpected,
                     "it must be that of output without its classes, ", like);
  const char* what = check == ShapeCheck::binary_crossentropy ? "binary_crossentropy" : "categorical_crossentropy";
  fail<ValueError>({what}, "target has shape ", x, ", output ", like, kExpected, "they must be equal");
}

Tensor assert_shape_of(ShapeCheck check, const Tensor& x, const Tensor& like) {
  const TensorDesc &a = Access::desc(x), &b = Access::desc(like);
  assert_shape(check, a, b);
  if (a.known() && b.known()) return x;
  // For a bias of rank 1 the number of channels is all that has to be known.
  if (is_bias(check) && a.rank == 1 && a.known() && b.rank > 0 && b.dims[channel_axis(check, b)] >= 0) return x;
  return apply1(assert_shape_op, AssertShapeAttrs{check}, {x, like});
}

Tensor broadcast_like(const Tensor& x, const Tensor& like) {
  return same_known_shape(x, like) ? x : apply1(broadcast_like_op, {x, like});
}
Tensor sum_to_like(const Tensor& x, const Tensor& like) {
  return same_known_shape(x, like) ? x : apply1(sum_to_like_op, {x, like});
}

}  // namespace kassette::ops
