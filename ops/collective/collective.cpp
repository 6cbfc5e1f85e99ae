// ops/collective/collective.cpp - collective ops and messages: rules and adjoints. The kernels are in
// collective_kernels.cpp.
#include "ops/collective/collective.h"

#include <algorithm>

#include "ops/collective/collective_parts.h"
#include "ops/elementwise/elementwise.h"
#include "ops/engine/expr.h"
#include "ops/engine/error_attribution.h"
#include "ops/shape/region.h"

namespace kassette::ops {
namespace {

bool is_linear(Reduction how) { return how == Reduction::sum || how == Reduction::mean; }

// ---- rules ---------------------------------------------------------------------------------------------------------

void check_reduced(const OpCall& call, DType dtype) {
  const Reduction how = reduction_of(call.attrs);
  if (how == Reduction::mean && !dtype.is_float())
    fail<TypeError>({call.op.name}, "the mean of ", dtype, kExpected, "it must be of floats", kRemedy,
                    "cast it (K::cast)");
  if (dtype.is_bool() && (how == Reduction::sum || how == Reduction::prod))
    fail<TypeError>({call.op.name}, "the ", reduction_name(how), " of bool", kExpected,
                    "it must be of numbers, or max or min, which are any and all", kRemedy, "cast it (K::cast)");
}

void list_rule(const OpCall& call, TensorSpec* out) {
  for (int i = 0; i < call.n_in; ++i) {
    if (&call.op != &broadcast_op) check_reduced(call, call.spec(i).dtype);
    out[i].set(call.spec(i));
  }
}

void all_gather_rule(const OpCall& call, TensorSpec* out) {
  out->set(call.spec(0));
  const int size = group_of(call.attrs).size;
  if (out->rank < 0) return;
  if (out->rank == 0) {
    out->rank = 1;
    out->dims[0] = size;
  } else if (size > 1) {
    out->dims[0] = kUnknown;  // other ranks may have more rows, or fewer
  }
}

void check_rows(const OpCall& call) {
  if (call.spec(0).rank == 0) fail<ValueError>({call.op.name, "x"}, "is a scalar, which has no rows");
}

void reduce_scatter_rule(const OpCall& call, TensorSpec* out) {
  check_rows(call);
  check_reduced(call, call.spec(0).dtype);
  out->set(call.n_in > 1 ? call.spec(1) : call.spec(0));
  if (call.n_in > 1 || out->rank < 0 || out->dims[0] < 0) return;
  const RankGroup& group = group_of(call.attrs);
  const RowRange rows = rows_of(out->dims[0], group.rank, group.size);
  out->dims[0] = rows.end - rows.begin;
}

void all_to_all_rule(const OpCall& call, TensorSpec* out) {
  check_rows(call);
  out->set(call.spec(0));
  const int size = group_of(call.attrs).size;
  if (out->rank > 0 && out->dims[0] % size > 0)
    fail<ValueError>({"all_to_all", "x"}, "of shape ", call.spec(0), " has ", out->dims[0], " rows, which ", size,
                     " ranks do not divide");
}

void send_rule(const OpCall& call, TensorSpec* out) {
  out->rank = 0;
  out->dtype = call.spec(0).dtype;
}

// --- a rank's rows ---------------------------------------------------------------------------------------------------

Region shard_of(const OpCall& call, const TensorSpec& x) {
  const RankGroup& group = group_of(call.attrs);
  Region r;
  r.rank = x.rank;
  r.out.set(x);
  if (x.rank < 0) return r;
  for (int i = 0; i < x.rank; ++i) {
    r.start[i] = 0;
    r.step[i] = 1;
    r.count[i] = x.dims[i];
  }
  if (x.dims[0] < 0) return r;
  const RowRange rows = rows_of(x.dims[0], group.rank, group.size);
  r.start[0] = rows.begin;
  r.count[0] = r.out.dims[0] = rows.end - rows.begin;
  return r;
}

void shard_rule(const OpCall& call, TensorSpec* out) {
  check_rows(call);
  out->set(shard_of(call, call.spec(0)).out);
}
void shard_kernel(const OpCall& call) { take(call, shard_of(call, call.spec(0))); }
void unshard_kernel(const OpCall& call) { write_padded(call, shard_of(call, call.spec(1))); }

// ---- adjoints ------------------------------------------------------------------------------------------------------

/// The product of the other ranks' x.
Tensor product_of_others(const Tensor& x, const RankGroup& group) {
  const Tensor every = all_gather(expand_dims(x, 0), group);
  return prod(every[slice(0, group.rank)], 0) * prod(every[slice(group.rank + 1, None)], 0);
}

/// The gradient of a maximum or minimum y over the ranks with respect to x: all ranks whose x equals y share it
/// equally.
Tensor share_of_extreme(const Tensor& x, const Tensor& y, const RankGroup& group) {
  const Tensor here = cast(equal(x, y), x.dtype());
  return here / all_reduce({here}, Reduction::sum, group)[0];
}

void all_reduce_vjp(const VjpContext& ctx) {
  list_vjp(ctx, 0, [&](const Tensors& dy) { return all_reduce(dy, reduction_of(ctx.attrs), group_of(ctx.attrs)); });
}
/// The cotangent of x, given the extreme or product y over the ranks and its cotangent dy.
Tensor nonlinear_gradient(Reduction how, const Tensor& x, const Tensor& y, const Tensor& dy, const RankGroup& group) {
  return mul_no_nan(dy, how == Reduction::prod ? product_of_others(x, group) : share_of_extreme(x, y, group));
}
void all_reduce_nonlinear_vjp(const VjpContext& ctx) {
  const RankGroup& group = group_of(ctx.attrs);
  list_vjp(ctx, 0, [&](const Tensors& dy) { return all_reduce(dy, Reduction::sum, group); });
  for (int i = 0; i < ctx.n_out(); ++i)
    if (ctx.dy(i).defined())
      ctx.din(i) = nonlinear_gradient(reduction_of(ctx.attrs), ctx.in(i), ctx.out(i), ctx.din(i), group);
}
void reduce_scatter_nonlinear_vjp(const VjpContext& ctx) {
  const RankGroup& group = group_of(ctx.attrs);
  ctx.din(0) = nonlinear_gradient(reduction_of(ctx.attrs), ctx.in(0), all_gather(ctx.out(), group),
                                  all_gather(ctx.dy(), group), group);
}

Tensors reduce(const Tensors& xs, int root, const RankGroup& group) {
  return apply_all(reduce_op, collective_attrs(xs.size(), group, Reduction::sum, root), xs);
}

void send_vjp(const VjpContext& ctx) { ctx.din(0) = recv(ctx.in(0), peer_of(ctx.attrs), group_of(ctx.attrs)); }
void recv_vjp(const VjpContext& ctx) {
  const Tensor sent = send(ctx.dy(), peer_of(ctx.attrs), group_of(ctx.attrs));
  ctx.din(0) = broadcast_like(sent, ctx.in(0));
}

void check_rank(const At& at, int rank, const RankGroup& group) {
  if (rank < 0 || rank >= group.size)
    fail<ValueError>(at, "is ", rank, kExpected, "the world has ", group.size, group.size == 1 ? " rank" : " ranks",
                     ", counted from 0");
}
void check_peer(const At& at, int rank, const RankGroup& group) {
  check_rank(at, rank, group);
  if (rank == group.rank) fail<ValueError>(at, "is ", rank, ", this rank itself");
  if (context().depth > 0)
    fail<NotImplementedError>({at.function},
                              "inside a loop or a branch of K::switch_, whose steps may be computed again", kRemedy,
                              "exchange outside of it");
}

// Note [Ops of many ranks]
// A kernel waits for other ranks, so it must not run while a variable is locked. So these ops have the trait kView:
// then apply() holds references to the values of inputs instead of a lock, and the kernels allocate their own outputs.
// An adjoint must run on all ranks or on none: if the loss of one rank does not depend on a result, that rank has to
// add 0 times the result to it.
// A function that fails on one rank between two of these ops leaves the second out: leave_out() tells the others.
constexpr std::uint8_t kTogether = kView;

}  // namespace

constinit const OpDef all_reduce_op{.name = "all_reduce",
                                    .rule = list_rule,
                                    .cpu = all_reduce_kernel,
                                    .vjp = all_reduce_vjp,
                                    .traits = kTogether,
                                    .n_out = 0,
                                    .outputs = outputs_in<CollectiveAttrs>,
                                    .cuda = all_reduce_kernel};
constinit const OpDef all_reduce_nonlinear_op{.name = "all_reduce_nonlinear",
                                              .rule = list_rule,
                                              .cpu = all_reduce_kernel,
                                              .vjp = all_reduce_nonlinear_vjp,
                                              .saves_in = ~0u,
                                              .saves_out = ~0u,
                                              .traits = kTogether,
                                              .n_out = 0,
                                              .outputs = outputs_in<CollectiveAttrs>,
                                              .cuda = all_reduce_kernel};
constinit const OpDef broadcast_op{
    .name = "broadcast",
    .rule = list_rule,
    .cpu = broadcast_kernel,
    .vjp =
        [](const VjpContext& ctx) {
          list_vjp(ctx, 0, [&](const Tensors& dy) { return reduce(dy, root_of(ctx.attrs), group_of(ctx.attrs)); });
        },
    .traits = kTogether,
    .n_out = 0,
    .outputs = outputs_in<CollectiveAttrs>,
    .cuda = broadcast_kernel};
constinit const OpDef reduce_op{
    .name = "reduce",
    .rule = list_rule,
    .cpu = reduce_kernel,
    .vjp =
        [](const VjpContext& ctx) {
          list_vjp(ctx, 0, [&](const Tensors& dy) { return broadcast(dy, root_of(ctx.attrs), group_of(ctx.attrs)); });
        },
    .traits = kTogether,
    .n_out = 0,
    .outputs = outputs_in<CollectiveAttrs>,
    .cuda = reduce_kernel};
constinit const OpDef all_gather_op{.name = "all_gather",
                                    .rule = all_gather_rule,
                                    .cpu = all_gather_kernel,
                                    .vjp =
                                        [](const VjpContext& ctx) {
                                          const RankGroup& group = group_of(ctx.attrs);
                                          if (ctx.spec(0).rank != 0)
                                            ctx.din(0) = reduce_scatter(ctx.dy(), Reduction::sum, group, ctx.in(0));
                                          else
                                            ctx.din(0) = all_reduce({ctx.dy()}, Reduction::sum, group)[0][group.rank];
                                        },
                                    .traits = kTogether,
                                    .cuda = all_gather_kernel};
constinit const OpDef reduce_scatter_op{
    .name = "reduce_scatter",
    .rule = reduce_scatter_rule,
    .cpu = reduce_scatter_kernel,
    .vjp =
        [](const VjpContext& ctx) {
          const RankGroup& group = group_of(ctx.attrs);
          const Tensor every = all_gather(ctx.dy(), group);
          ctx.din(0) = reduction_of(ctx.attrs) == Reduction::mean ? every / static_cast<double>(group.size) : every;
        },
    .shape_only = 2,
    .traits = kTogether,
    .cuda = reduce_scatter_kernel};
constinit const OpDef reduce_scatter_nonlinear_op{.name = "reduce_scatter_nonlinear",
                                                  .rule = reduce_scatter_rule,
                                                  .cpu = reduce_scatter_kernel,
                                                  .vjp = reduce_scatter_nonlinear_vjp,
                                                  .saves_in = 1,
                                                  .saves_out = 1,
                                                  .traits = kTogether,
                                                  .cuda = reduce_scatter_kernel};
constinit const OpDef shard_op{.name = "shard",
                               .rule = shard_rule,
                               .cpu = shard_kernel,
                               .vjp =
                                   [](const VjpContext& ctx) {
                                     ctx.din(0) = apply1(unshard_like_op, ctx.attrs, {ctx.dy(), ctx.in(0)});
                                   },
                               .traits = kView,
                               .cuda = shard_kernel};
constinit const OpDef unshard_like_op{
    .name = "unshard_like",
    .rule = padded_rule,
    .cpu = unshard_kernel,
    .vjp = [](const VjpContext& ctx) { ctx.din(0) = apply1(shard_op, ctx.attrs, {ctx.dy()}); },
    .shape_only = 2,
    .cuda = unshard_kernel};
constinit const OpDef all_to_all_op{
    .name = "all_to_all",
    .rule = all_to_all_rule,
    .cpu = all_to_all_kernel,
    .vjp = [](const VjpContext& ctx) { ctx.din(0) = all_to_all(ctx.dy(), group_of(ctx.attrs)); },
    .traits = kTogether,
    .cuda = all_to_all_kernel};
constinit const OpDef send_op{.name = "send",
                              .rule = send_rule,
                              .cpu = send_kernel,
                              .vjp = send_vjp,
                              .traits = kTogether | kPrints,
                              .cuda = send_kernel};
constinit const OpDef recv_op{.name = "recv",
                              .rule = same_rule,
                              .cpu = recv_kernel,
                              .vjp = recv_vjp,
                              .shape_only = 1,
                              .traits = kTogether | kPrints,
                              .cuda = recv_kernel};

Tensors all_reduce(const Tensors& xs, Reduction how, const RankGroup& group) {
  if (xs.empty()) return {};
  return attribute_errors("all_reduce", [&] {
    return apply_all(is_linear(how) ? all_reduce_op : all_reduce_nonlinear_op, collective_attrs(xs.size(), group, how),
                     xs);
  });
}
namespace {

/// Whether an op may write its result into the memory of x, an input that the caller gives up: nothing else refers to
/// it, and a node that records the op does not keep it (record() in ops/engine/apply.cpp). `recorded`: whether there
/// will be a node.
bool gives_memory(const Tensor& x, bool recorded) {
  const TensorDesc& b = Access::desc(x);
  if (!b.storage || b.device != cpu || (b.flags & kLeaf) || b.storage->kind == Storage::kBorrowed) return false;
  const bool alone = Access::impl(x)->count.load(std::memory_order_acquire) == 1 &&
                     b.storage->count.load(std::memory_order_acquire) == 1;
  return alone && b.offset + b.bytes() <= b.storage->bytes && (b.node || !recorded);
}

}  // namespace

Tensors all_reduce_in_place(const Tensors& xs, Reduction how, const RankGroup& group) {
  const Context& c = context();
  const bool recorded =
      c.recording && std::ranges::any_of(xs, [](const Tensor& x) { return bool(Access::desc(x).node); });
  std::vector<bool> given;
  for (const Tensor& x : xs)
    given.push_back(is_linear(how) && !c.symbolic && c.depth == 0 && gives_memory(x, recorded));
  const ReuseScope scope(std::move(given));
  return all_reduce(xs, how, group);
}
Tensors broadcast(const Tensors& xs, int root, const RankGroup& group) {
  check_rank({"broadcast", "root"}, root, group);
  if (xs.empty()) return {};
  return apply_all(broadcast_op, collective_attrs(xs.size(), group, Reduction::sum, root), xs);
}
Tensor all_gather(const Tensor& x, const RankGroup& group) {
  return apply1(all_gather_op, collective_attrs(0, group), {x});
}
Tensor reduce_scatter(const Tensor& x, Reduction how, const RankGroup& group, const Tensor& like) {
  const CollectiveAttrs attrs = collective_attrs(0, group, how);
  if (like.defined()) return apply1(reduce_scatter_op, attrs, {x, like});
  return attribute_errors("reduce_scatter", [&] {
    return apply1(is_linear(how) ? reduce_scatter_op : reduce_scatter_nonlinear_op, attrs, {x});
  });
}
Tensor shard(const Tensor& x, const RankGroup& group) { return apply1(shard_op, collective_attrs(0, group), {x}); }
Tensor all_to_all(const Tensor& x, const RankGroup& group) {
  return apply1(all_to_all_op, collective_attrs(0, group), {x});
}
Tensor send(const Tensor& x, int to, const RankGroup& group) {
  check_peer({"send", "to"}, to, group);
  return apply1(send_op, collective_attrs(0, group, Reduction::sum, to), {x});
}
Tensor recv(const Tensor& like, int from, const RankGroup& group) {
  check_peer({"recv", "from"}, from, group);
  return apply1(recv_op, collective_attrs(0, group, Reduction::sum, from), {like});
}

RowRange rows_of(std::int64_t n, int rank, int size) {
  const std::int64_t each = n / size, more = n % size;
  const std::int64_t begin = rank * each + std::min<std::int64_t>(rank, more);
  return {begin, begin + each + (rank < more)};
}

}  // namespace kassette::ops
