// ops/shape/reshape.cpp - ops that keep the elements and their order: the result shares the storage of the input.
#include "core/rank.h"
#include "ops/elementwise/elementwise.h"
#include "ops/shape/like.h"
#include "ops/shape/shaping.h"

namespace kassette::ops {
namespace {

void gradient(const VjpContext& ctx) { ctx.din(0) = reshape_like(ctx.dy(), ctx.in(0)); }

/// Returns the product of the known sizes of `s`, or -1 if it overflows.
std::int64_t product(const TensorSpec& s) {
  std::int64_t n = 1;
  bool over = false, zero = false;
  for (int i = 0; i < s.rank; ++i) {
    if (s.dims[i] < 0) continue;
    zero |= s.dims[i] == 0;
    over |= __builtin_mul_overflow(n, s.dims[i], &n);
  }
  return zero ? 0 : over ? -1 : n;
}

[[noreturn]] void fail_count(const TensorSpec& x, const DimValues& d) {
  fail<ValueError>({"reshape", "shape"}, d, " does not hold the ", x.numel(), x.numel() == 1 ? " element" : " elements",
                   " of x of shape ", x);
}

void reshape_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec& x = call.spec(0);
  DimValues d = read_dims(call, 1);
  out->dtype = x.dtype;
  out->rank = static_cast<std::int8_t>(d.rank);
  int infer = -1;
  bool known = d.unknown == 0;
  for (int i = 0; i < d.rank; ++i) {
    out->dims[i] = d.is_unknown(i) ? kUnknown : d.at[i];
    if (d.is_unknown(i) || d.at[i] >= 0) continue;
    if (d.at[i] != -1)
      fail<ValueError>({"reshape", "shape"}, d, kExpected, "sizes must not be negative, except one -1 to be inferred");
    if (infer >= 0) fail<ValueError>({"reshape", "shape"}, d, kExpected, "only one size can be inferred");
    infer = i;
  }
  if (!known || d.rank < 0 || !x.known()) return;
  std::int64_t n = product(x), m = product(*out);
  if (infer < 0) {
    if (n != m) fail_count(x, d);
    (void)out->checked_bytes("reshape");
  } else if (m > 0 && n % m == 0) {
    out->dims[infer] = n / m;
  } else if (m == 0 && n == 0) {
    fail<ValueError>({"reshape", "shape"}, d, ": x of shape ", x, " has no elements, so any size fits in place of -1");
  } else {
    fail_count(x, d);
  }
}

void reshape_like_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec &x = call.spec(0), &like = call.spec(1);
  if (x.known() && like.known() && product(x) != product(like))
    fail<ValueError>({"reshape_like"}, x, " does not have as many elements as ", like);
  out->set(like);
  out->dtype = x.dtype;
}

void expand_dims_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec& x = call.spec(0);
  out->dtype = x.dtype;
  out->rank = -1;
  if (x.rank < 0) return;
  int axis = place_axis("expand_dims", call.attrs.as<AxisAttrs>().axis, x, /*added=*/1);
  out->rank = checked_rank("expand_dims", x.rank + 1, x);
  for (int i = 0; i < out->rank; ++i) out->dims[i] = i < axis ? x.dims[i] : i == axis ? 1 : x.dims[i - 1];
}

void squeeze_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec& x = call.spec(0);
  out->dtype = x.dtype;
  out->rank = -1;
  if (x.rank < 0) return;
  int axis = place_axis("squeeze", call.attrs.as<AxisAttrs>().axis, x);
  if (differ(x.dims[axis], 1))
    fail<ValueError>({"squeeze", "axis"}, call.attrs.as<AxisAttrs>().axis, " of a tensor of shape ", x, " has size ",
                     x.dims[axis], ", not 1");
  out->rank = static_cast<std::int8_t>(x.rank - 1);
  for (int i = 0; i < out->rank; ++i) out->dims[i] = x.dims[i < axis ? i : i + 1];
}

void flatten_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec& x = call.spec(0);
  int kept = static_cast<int>(call.attrs.as<AxisAttrs>().axis);
  out->dtype = x.dtype;
  out->rank = static_cast<std::int8_t>(kept + 1);
  for (int i = 0; i <= kept; ++i) out->dims[i] = x.rank < 0 ? kUnknown : 1;
  if (x.rank < 0) return;
  for (int i = 0; i < kept && i < x.rank; ++i) out->dims[i] = x.dims[i];
  std::int64_t n = 1;
  for (int i = kept; i < x.rank; ++i) {
    if (x.dims[i] < 0) n = kUnknown;
    else if (n >= 0 && __builtin_mul_overflow(n, x.dims[i], &n)) fail_size(x, call.op.name);
  }
  out->dims[kept] = n;
}

/// Sets *out to the shape and dtype of the result if all sizes are numbers that fit x. Otherwise returns false, so that
/// the call takes the general path: the rule there throws if something is wrong.
bool shape_in_numbers(const TensorDesc& x, const Dims& shape, TensorSpec* out) {
  if (shape.size_ < 0 || shape.size_ > kMaxRank) return false;
  std::int64_t known = 1, n = x.numel();
  int infer = -1;
  for (int i = 0; i < shape.size_; ++i) {
    const Dim& d = shape.dims_[i];
    if (d.tensor_) return false;
    out->dims[i] = d.value_;
    if (d.value_ >= 0) {
      if (__builtin_mul_overflow(known, d.value_, &known)) return false;
    } else if (infer >= 0 || (d.value_ != -1 && d.value_ != Dim::kNoneDim)) {
      return false;
    } else {
      infer = i;
    }
  }
  if (infer >= 0) {
    if (known == 0 || n % known) return false;
    out->dims[infer] = n / known;
  } else if (known != n || n == 0) {  // with a size of 0, the rule checks that the others do not overflow
    return false;
  }
  out->rank = static_cast<std::int8_t>(shape.size_);
  out->dtype = x.dtype;
  return true;
}

/// Reshapes a concrete tensor without history as apply() would, but makes no tensor for the shape. Returns an empty
/// Tensor if shape_in_numbers() returns false.
Tensor reshape_untracked(const TensorDesc& x, const Dims& shape) {
  Tensor out = Access::adopt(TensorImpl::make());
  TensorDesc& b = Access::desc(out);
  if (!shape_in_numbers(x, shape, &b)) return Tensor();
  b.device = x.device;
  b.storage = x.storage;
  b.offset = x.offset;
  return out;
}

}  // namespace

constinit const OpDef reshape_op{.name = "reshape",
                                 .rule = reshape_rule,
                                 .cpu = share,
                                 .vjp = gradient,
                                 .host = 2,
                                 .traits = kView,
                                 .pattern = Pattern::alias,
                                 .cuda = share};
constinit const OpDef reshape_like_op{.name = "reshape_like",
                                      .rule = reshape_like_rule,
                                      .cpu = share,
                                      .vjp = gradient,
                                      .shape_only = 2,
                                      .traits = kView,
                                      .pattern = Pattern::alias,
                                      .cuda = share};
constinit const OpDef expand_dims_op{
    .name = "expand_dims", .rule = expand_dims_rule, .cpu = share, .vjp = gradient, .traits = kView, .cuda = share};
constinit const OpDef squeeze_op{
    .name = "squeeze", .rule = squeeze_rule, .cpu = share, .vjp = gradient, .traits = kView, .cuda = share};
constinit const OpDef flatten_op{
    .name = "flatten", .rule = flatten_rule, .cpu = share, .vjp = gradient, .traits = kView, .cuda = share};
constinit const OpDef identity_op{.name = "identity",
                                  .rule = same_rule,
                                  .cpu = share,
                                  .vjp = [](const VjpContext& ctx) { ctx.din(0) = ctx.dy(); },
                                  .traits = kView,
                                  .pattern = Pattern::alias,
                                  .cuda = share};

Tensor reshape(const Tensor& x, const Dims& shape) {
  if (x.defined() && !Access::desc(x).node && Access::desc(x).storage)
    if (Tensor y = reshape_untracked(Access::desc(x), shape); y.defined()) return y;
  return apply1(reshape_op, {x, dims_tensor(shape, "reshape")});
}
Tensor reshape_like(const Tensor& x, const Tensor& like) {
  if (!x.defined() || !like.defined()) return apply1(reshape_like_op, {x, like});
  const TensorDesc &a = Access::desc(x), &b = Access::desc(like);
  return a.known() && a.same_shape(b) ? x : apply1(reshape_like_op, {x, like});
}
Tensor expand_dims(const Tensor& x, int axis) { return apply1(expand_dims_op, AxisAttrs{axis}, {x}); }
Tensor squeeze(const Tensor& x, int axis) { return apply1(squeeze_op, AxisAttrs{axis}, {x}); }
Tensor flatten(const Tensor& x, int from) { return apply1(flatten_op, AxisAttrs{from}, {x}); }

Tensor identity(const Tensor& x) { return apply1(identity_op, {x}); }

}  // namespace kassette::ops
