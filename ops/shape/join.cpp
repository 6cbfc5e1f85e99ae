// ops/shape/join.cpp - concatenate, stack and their adjoints, which split a tensor along an axis.
#include <algorithm>
#include <cstring>

#include "core/rank.h"
#include "ops/engine/axes.h"
#include "ops/shape/index.h"
#include "ops/shape/like.h"
#include "ops/shape/shaping.h"
#include "ops/shape/strided.h"

namespace kassette::ops {
namespace {

/// Sets *out to the common shape and dtype of the inputs from `first` on; throws if they differ. Sizes along `axis`
/// (INT64_MIN: none) are not compared. Dims may be unknown.
void merge(const OpCall& call, int first, std::int64_t axis, TensorSpec* out) {
  out->rank = -1;
  out->dtype = call.spec(first).dtype;
  for (int k = first; k < call.n_in; ++k) {
    const TensorSpec& s = call.spec(k);
    if (s.dtype != out->dtype)
      fail<TypeError>({call.op.name}, "tensor ", first, " is ", out->dtype, ", tensor ", k, " is ", s.dtype, kRemedy,
                      "cast one of them (K::cast), tensors are not promoted");
    if (out->rank < 0) {
      out->set(s);
      continue;
    }
    if (!out->merge(s, from_front(axis, s.rank)))
      fail<ValueError>({call.op.name}, "tensor ", first, " has shape ", call.spec(first), ", tensor ", k, " has ", s,
                       kExpected, "they must be equal",
                       axis == INT64_MIN ? "" : text(" elsewhere than along axis ", axis));
  }
}

/// Copies `outer` runs of `width` elements, which start `from_width` elements apart in `from` and `to_width` apart in
/// `to`.
void copy_part(const OpCall& call, std::int64_t outer, std::int64_t width, const std::byte* from,
               std::int64_t from_width, std::byte* to, std::int64_t to_width, int size) {
  constexpr std::int64_t kSmall = 4096;  // bytes; too few for threads, and there may be thousands of parts
  if (outer == 1 && call.device == cpu && width * size <= kSmall) {
    if (width > 0) std::memcpy(to, from, static_cast<std::size_t>(width * size));
    return;
  }
  Strided layout;
  layout.push(outer, from_width, to_width);
  layout.push(width, 1, 1);
  copy_strided(call, layout, from, to, size);
}

// --- concatenate and split -------------------------------------------------------------------------------------------

void concatenate_rule(const OpCall& call, TensorSpec* out) {
  merge(call, 0, call.attrs.as<AxisAttrs>().axis, out);
  if (out->rank < 0) return;
  if (out->rank == 0)
    fail<ValueError>({"concatenate", "tensors"}, "are scalars, which have no axis to join along", kRemedy,
                     "K::stack makes one");
  int axis = place_axis("concatenate", call.attrs.as<AxisAttrs>().axis, *out);
  std::int64_t n = 0;
  for (int k = 0; k < call.n_in; ++k) {
    const TensorSpec& s = call.spec(k);
    n = sum_of_sizes(n, s.dim(axis));
  }
  out->dims[axis] = n;
}

void concatenate_kernel(const OpCall& call) {
  TensorDesc& out = *call.out[0];
  int axis = place_axis("concatenate", call.attrs.as<AxisAttrs>().axis, out), size = out.dtype.size();
  const AxisSplit cut(out, axis);
  std::int64_t whole = cut.n * cut.inner;
  std::byte* to = out.data();
  for (int k = 0; k < call.n_in; ++k) {
    std::int64_t width = call.in[k].dim(axis) * cut.inner;
    copy_part(call, cut.outer, width, call.in[k].data, width, to, whole, size);
    to += width * size;
  }
}

void concatenate_gradient(const VjpContext& ctx) {
  Tensors like;
  like.reserve(ctx.n_in());
  for (int k = 0; k < ctx.n_in(); ++k) like.push_back(ctx.in(k));
  Tensors parts = split_like(ctx.dy(), like, static_cast<int>(ctx.attrs.as<AxisAttrs>().axis));
  for (int k = 0; k < ctx.n_in(); ++k) ctx.din(k) = parts[k];
}

void split_rule(const OpCall& call, TensorSpec* out) {
  for (int k = 1; k < call.n_in; ++k) {
    out[k - 1].set(call.spec(k));
    out[k - 1].dtype = call.spec(0).dtype;
  }
}

/// Makes output k. If `outer` is 1, the part is contiguous and shares the storage of the input; otherwise it is copied.
void part_of(const OpCall& call, int k, std::int64_t outer, std::int64_t width, std::int64_t whole, std::int64_t at) {
  TensorDesc& out = *call.out[k];
  int size = out.dtype.size();
  if (outer == 1) {
    Value v = read_value(*call.in[0].desc);
    out.storage = std::move(v.storage);
    out.offset = v.offset + at * size;
    return;
  }
  allocate_output(out, call.device);
  copy_part(call, outer, width, call.in[0].data + at * size, whole, out.data(), width, size);
}

void split_kernel(const OpCall& call) {
  int axis = place_axis("concatenate", call.attrs.as<SplitAttrs>().axis, call.spec(0));
  const AxisSplit cut(call.spec(0), axis);
  std::int64_t at = 0, whole = cut.n * cut.inner;
  for (int k = 0; k < call.n_out; ++k) {
    std::int64_t width = call.out[k]->dims[axis] * cut.inner;
    part_of(call, k, cut.outer, width, whole, at);
    at += width;
  }
}

/// The cotangents of all outputs; zeros for an output that nothing depends on.
Tensors cotangents(const VjpContext& ctx) {
  Tensors parts;
  parts.reserve(ctx.n_out());
  for (int k = 0; k < ctx.n_out(); ++k) parts.push_back(ctx.dy(k).defined() ? ctx.dy(k) : zeros_of(ctx.out(k)));
  return parts;
}

void split_gradient(const VjpContext& ctx) {
  ctx.din(0) = concatenate(cotangents(ctx), static_cast<int>(ctx.attrs.as<SplitAttrs>().axis));
}

// --- stack and unstack -----------------------------------------------------------------------------------------------

void stack_rule(const OpCall& call, TensorSpec* out) {
  TensorSpec part;
  merge(call, 0, INT64_MIN, &part);
  out->dtype = part.dtype;
  out->rank = -1;
  if (part.rank < 0) return;
  int axis = place_axis("stack", call.attrs.as<AxisAttrs>().axis, part, /*added=*/1);
  out->rank = checked_rank("stack", part.rank + 1, part);
  for (int i = 0; i < out->rank; ++i) out->dims[i] = i < axis ? part.dims[i] : i == axis ? call.n_in : part.dims[i - 1];
}

void stack_kernel(const OpCall& call) {
  TensorDesc& out = *call.out[0];
  int axis = place_axis("stack", call.attrs.as<AxisAttrs>().axis, call.spec(0), /*added=*/1), size = out.dtype.size();
  const AxisSplit cut(out, axis);
  for (int k = 0; k < call.n_in; ++k)
    copy_part(call, cut.outer, cut.inner, call.in[k].data, cut.inner, out.data() + k * cut.inner * size,
              call.n_in * cut.inner, size);
}

void stack_gradient(const VjpContext& ctx) {
  Tensors parts = unstack(ctx.dy(), ctx.n_in(), static_cast<int>(ctx.attrs.as<AxisAttrs>().axis));
  for (int k = 0; k < ctx.n_in(); ++k) ctx.din(k) = parts[k];
}

void unstack_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec& x = call.spec(0);
  TensorSpec part;
  part.dtype = x.dtype;
  part.rank = -1;
  if (x.rank >= 0) {
    int axis = place_axis("unstack", call.attrs.as<SplitAttrs>().axis, x);
    if (differ(x.dims[axis], call.n_out))
      fail<ValueError>({"unstack", "axis"}, call.attrs.as<SplitAttrs>().axis, " of a tensor of shape ", x, " has size ",
                       x.dims[axis], ", not ", call.n_out);
    part.rank = static_cast<std::int8_t>(x.rank - 1);
    for (int i = 0; i < part.rank; ++i) part.dims[i] = x.dims[i < axis ? i : i + 1];
  }
  for (int k = 0; k < call.n_out; ++k) out[k].set(part);
}

void unstack_kernel(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  int axis = place_axis("unstack", call.attrs.as<SplitAttrs>().axis, x);
  const AxisSplit cut(x, axis);
  for (int k = 0; k < call.n_out; ++k) part_of(call, k, cut.outer, cut.inner, cut.n * cut.inner, k * cut.inner);
}

void unstack_gradient(const VjpContext& ctx) {
  ctx.din(0) = stack(cotangents(ctx), static_cast<int>(ctx.attrs.as<SplitAttrs>().axis));
}

void check_parts(const char* op, const char* argument, const Tensors& parts) {
  if (parts.empty()) fail<ValueError>({op, argument}, "is an empty list", kExpected, "at least one tensor is needed");
}

}  // namespace

constinit const OpDef concatenate_op{.name = "concatenate",
                                     .rule = concatenate_rule,
                                     .cpu = concatenate_kernel,
                                     .vjp = concatenate_gradient,
                                     .cuda = concatenate_kernel,
                                     .inputs = "tensor #"};
/// The adjoint of concatenate: splits input 0 into parts with the shapes of the inputs after it.
constinit const OpDef split_like_op{.name = "split_like",
                                    .rule = split_rule,
                                    .cpu = split_kernel,
                                    .vjp = split_gradient,
                                    .shape_only = ~1u,
                                    .traits = kView,
                                    .n_out = 0,
                                    .outputs = outputs_in<SplitAttrs>,
                                    .cuda = split_kernel};
constinit const OpDef stack_op{.name = "stack",
                               .rule = stack_rule,
                               .cpu = stack_kernel,
                               .vjp = stack_gradient,
                               .cuda = stack_kernel,
                               .inputs = "tensor #"};
constinit const OpDef unstack_op{.name = "unstack",
                                 .rule = unstack_rule,
                                 .cpu = unstack_kernel,
                                 .vjp = unstack_gradient,
                                 .traits = kView,
                                 .n_out = 0,
                                 .outputs = outputs_in<SplitAttrs>,
                                 .cuda = unstack_kernel};

Tensor concatenate(const Tensors& parts, int axis) {
  check_parts("concatenate", "tensors", parts);
  return apply_all(concatenate_op, AxisAttrs{axis}, parts)[0];
}
Tensors split_like(const Tensor& x, const Tensors& like, int axis) {
  const SplitAttrs attrs{like.size(), axis};
  Tensors in;
  in.reserve(like.size() + 1);
  in.push_back(x);
  for (const Tensor& t : like) in.push_back(t);
  return apply_all(split_like_op, attrs, in);
}
Tensor stack(const Tensors& parts, int axis) {
  check_parts("stack", "x", parts);
  return apply_all(stack_op, AxisAttrs{axis}, parts)[0];
}
namespace {

/// For more parts than an op can have outputs: unstacks slices of kMaxOutputs parts each. The adjoint of each slice is
/// one pass over x.
Tensors unstack_slices(const Tensor& x, int n, int axis) {
  const TensorDesc& b = Access::desc(x);
  if (axis < 0 && b.rank < 0)
    fail<NotImplementedError>({"unstack"}, n, " parts along axis ", axis, " of a tensor of unknown rank");
  Tensors parts;
  parts.reserve(n);
  for (int begin = 0; begin < n; begin += kMaxOutputs) {
    int end = std::min(n, begin + kMaxOutputs);
    auto list = Ref<IndexList>::adopt(new IndexList);
    for (int i = b.rank < 0 ? axis : place_axis("unstack", axis, b); i > 0; --i) list->push({});
    list->push({IndexList::kSlice, true, true, begin, end, 1});
    for (const Tensor& part : unstack(index(x, Ref<Extra>(list.get())), end - begin, axis)) parts.push_back(part);
  }
  return parts;
}

}  // namespace

Tensors unstack(const Tensor& x, int n, int axis) {
  if (n < 1) return {};
  if (n > kMaxOutputs) return unstack_slices(x, n, axis);
  return apply_all(unstack_op, SplitAttrs{n, axis}, Tensors(x));
}

}  // namespace kassette::ops
