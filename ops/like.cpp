// ops/like.cpp - broadcasting to the shape of another tensor, and its adjoint.
#include "ops/like.h"

#include "core/text.h"
#include "ops/elementwise.h"
#include "ops/fold.h"
#include "ops/repeat.h"

namespace kassette {
namespace {

/// The shape of input 1, the dtype of input 0.
void like_rule(const Call& call, Spec* out) {
  out->set(call.spec(1));
  out->dtype = call.spec(0).dtype;
}

[[noreturn]] __attribute__((noinline, cold)) void fail_like(const char* op, const Spec& small, const Spec& large) {
  fail<ValueError>(op, ": ", small, " does not broadcast to ", large);
}

/// The axes of `large` along which `small` is repeated. Throws where it does not broadcast to it.
unsigned repeated_axes(const char* op, const Spec& small, const Spec& large) {
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

/// Where only axes of size 1 differ, the output is the input's storage.
bool shared(const Call& call) {
  if (call.spec(0).numel() != call.spec(1).numel()) return false;
  Value v = read_value(*call.in[0].body);
  call.out[0]->storage = std::move(v.storage);
  call.out[0]->offset = v.offset;
  return true;
}

void broadcast_like_kernel(const Call& call) {
  if (shared(call)) return;
  Body& out = *call.out[0];
  unsigned mask = repeated_axes(call.op.name, call.spec(0), out);
  allocate_output(out, call.device);
  if (out.numel() == 0) return;
  repeat_runs(call.in[0].data, out.data(), out.dtype.size(), Runs(out, mask));
}

void sum_to_like_kernel(const Call& call) {
  if (shared(call)) return;
  Body& out = *call.out[0];
  const Spec& x = call.spec(0);
  unsigned mask = repeated_axes(call.op.name, out, x);
  allocate_output(out, call.device);
  with_wide(call.in[0].data, out.data(), x.dtype, x.numel(), out.numel(),
            [&](auto* in, auto* to) { fold_runs(Fold::sum, in, to, Runs(x, mask)); });
}

bool same_known_shape(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return false;
  const Body &x = Access::body(a), &y = Access::body(b);
  return x.same_shape(y) && x.known();
}

}  // namespace

constinit const OpDef broadcast_like_row{.name = "broadcast_like",
                                         .rule = like_rule,
                                         .cpu = broadcast_like_kernel,
                                         .vjp = [](const Rewind& r) { r.din(0) = sum_to_like(r.dy(), r.in(0)); },
                                         .shape_only = 2,
                                         .traits = kView};
constinit const OpDef sum_to_like_row{.name = "sum_to_like",
                                      .rule = [](const Call& call, Spec* out) {
                                        check_domain(call, Domain::numbers);
                                        like_rule(call, out);
                                      },
                                      .cpu = sum_to_like_kernel,
                                      .vjp = [](const Rewind& r) { r.din(0) = broadcast_like(r.dy(), r.in(0)); },
                                      .shape_only = 2,
                                      .traits = kView};

Tensor broadcast_like(const Tensor& x, const Tensor& like) {
  return same_known_shape(x, like) ? x : apply1(broadcast_like_row, {x, like});
}
Tensor sum_to_like(const Tensor& x, const Tensor& like) {
  return same_known_shape(x, like) ? x : apply1(sum_to_like_row, {x, like});
}

}  // namespace kassette
