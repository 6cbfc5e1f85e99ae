// ops/shape/transpose.cpp - permutations of axes.
#include "core/rank.h"
#include "ops/shape/shaping.h"
#include "ops/shape/strided.h"

namespace kassette::ops {
namespace {

/// Axis i of the output is axis pattern.at[i] of the input; or, if `reversed`, all axes are reversed, whatever their
/// number.
int source_axis(const PermuteAttrs& attrs, int rank, int i) {
  return attrs.reversed ? rank - 1 - i : attrs.pattern.at[i];
}

void rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec& x = call.spec(0);
  const PermuteAttrs& attrs = call.attrs.as<PermuteAttrs>();
  const int n = attrs.pattern.size;
  out->dtype = x.dtype;
  out->rank = x.rank;
  if (attrs.reversed && x.rank < 0) return;
  if (!attrs.reversed && differ(x.rank, n))
    fail<ValueError>({"permute_dimensions", "pattern"}, "lists ", n, n == 1 ? " axis" : " axes", ", x of shape ", x,
                     " has ", int(x.rank));
  if (x.rank < 0) out->rank = static_cast<std::int8_t>(n);
  for (int i = 0; i < out->rank; ++i) out->dims[i] = x.dim(source_axis(attrs, x.rank, i));
}

/// True if the axes whose size is not 1 keep their order: the order of the elements in memory then stays the same.
bool keeps_order(const PermuteAttrs& attrs, const TensorSpec& x) {
  int last = -1;
  for (int i = 0; i < x.rank; ++i) {
    int a = source_axis(attrs, x.rank, i);
    if (x.dims[a] == 1) continue;
    if (a < last) return false;
    last = a;
  }
  return true;
}

void kernel(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  if (keeps_order(call.attrs.as<PermuteAttrs>(), x)) {
    share(call);
    return;
  }
  TensorDesc& out = *call.out[0];
  allocate_output(out, call.device);
  std::int64_t from[kMaxRank], to[kMaxRank];
  row_strides(x, from);
  row_strides(out, to);
  Strided layout;
  for (int i = 0; i < out.rank; ++i)
    layout.push(out.dims[i], from[source_axis(call.attrs.as<PermuteAttrs>(), x.rank, i)], to[i]);
  copy_strided(call, layout, call.in[0].data, out.data(), x.dtype.size());
}

PermuteAttrs inverse(const PermuteAttrs& attrs) {
  PermuteAttrs back = attrs;
  for (int i = 0; i < attrs.pattern.size; ++i) back.pattern.at[attrs.pattern.at[i]] = static_cast<std::int8_t>(i);
  return back;
}

void gradient(const VjpContext& ctx) {
  ctx.din(0) = apply1(permute_op, inverse(ctx.attrs.as<PermuteAttrs>()), {ctx.dy()});
}

[[noreturn]] void fail_pattern(const Axes& pattern) {
  std::string axes;
  for (int i = 0; i < pattern.size_; ++i) axes += text(i ? ", " : "", pattern.axes_[i]);
  fail<ValueError>({"permute_dimensions", "pattern"}, "(", axes, ") is not a permutation of the axes 0 to ",
                   pattern.size_ - 1);
}

}  // namespace

constinit const OpDef permute_op{
    .name = "permute_dimensions", .rule = rule, .cpu = kernel, .vjp = gradient, .traits = kView, .cuda = kernel};

Tensor permute(const Tensor& x, const Axes& pattern) {
  if (pattern.size_ < 0)
    fail<ValueError>({"permute_dimensions", "pattern"}, "is None", kExpected, "it must list every axis");
  check_length({"permute_dimensions", "pattern"}, pattern);
  PermuteAttrs attrs{};
  std::uint32_t seen = 0;
  for (int i = 0; i < pattern.size_; ++i) {
    int a = from_front(pattern.axes_[i], pattern.size_);
    if (a < 0 || seen >> a & 1) fail_pattern(pattern);
    seen |= 1u << a;
    attrs.pattern.push(a);
  }
  return apply1(permute_op, attrs, {x});
}
Tensor transpose(const Tensor& x) { return apply1(permute_op, PermuteAttrs{.reversed = true, .pattern = {}}, {x}); }

}  // namespace kassette::ops
