// ops/order/places.cpp - elements at places along an axis that an op has found, and the adjoint.
#include "core/rank.h"
#include "ops/engine/refusals.h"
#include "ops/order/order.h"
#include "ops/order/rows.h"

namespace kassette::ops {
namespace {

constexpr std::int64_t kPlaceGrain = 1 << 15;  // elements that are worth a thread: Note [Worth a thread]

void take_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec &x = call.spec(0), &places = call.spec(1);
  if (x.rank >= 0) place_axis(call.op.name, call.attrs.as<AxisAttrs>().axis, x);
  out->set(places);
  out->dtype = x.dtype;
}
void put_rule(const OpCall& call, TensorSpec* out) {
  out->set(call.spec(2));
  out->dtype = call.spec(0).dtype;
}

/// Calls f(element of the places, element of the whole) for each place.
template <class F>
void each_place(const OpCall& call, const TensorSpec& whole, F f) {
  const TensorSpec& at = call.spec(1);
  if (at.numel() == 0) return;
  const int axis = from_front(call.attrs.as<AxisAttrs>().axis, at.rank);
  const AxisSplit few(at, axis), all(whole, axis);
  const auto* places = call.in[1].as<std::int64_t>();
  devices::parallel_for(few.outer * few.n, std::max<std::int64_t>(1, kPlaceGrain / few.inner),
                        [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t r = begin; r < end; ++r)
                            for (std::int64_t i = 0, t = r * few.inner; i < few.inner; ++i, ++t)
                              f(t, (r / few.n * all.n + places[t]) * few.inner + i);
                        });
}

void take_kernel(const OpCall& call) {
  with_bits(call.spec(0).dtype.size(), [&](auto* null) {
    using U = std::remove_pointer_t<decltype(null)>;
    const U* x = call.in[0].as<U>();
    U* out = call.out_as<U>();
    each_place(call, call.spec(0), [=](std::int64_t t, std::int64_t at) { out[t] = x[at]; });
  });
}
void put_kernel(const OpCall& call) {
  const TensorSpec& whole = *call.out[0];
  if (call.spec(0).numel() != whole.numel()) zero_bytes(call.out[0]->data(), whole.numel() * whole.dtype.size());
  with_bits(whole.dtype.size(), [&](auto* null) {
    using U = std::remove_pointer_t<decltype(null)>;
    const U* x = call.in[0].as<U>();
    U* out = call.out_as<U>();
    each_place(call, whole, [=](std::int64_t t, std::int64_t at) { out[at] = x[t]; });
  });
}

void flat_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec &indices = call.spec(0), &x = call.spec(1);
  out->set(indices);
  if (x.rank < 0 || indices.rank < 0) return;
  const int axis = place_axis(call.op.name, call.attrs.as<AxisAttrs>().axis, x);
  bool fits = x.rank == indices.rank;
  for (int i = 0; fits && i < x.rank; ++i) fits = i == axis || !differ(x.dims[i], indices.dims[i]);
  if (!fits)
    fail<ValueError>({call.op.name, "indices"}, "have shape ", indices, " and x ", x, kExpected,
                     "only the sizes of axis ", axis, " may differ");
}
void flat_kernel(const OpCall& call) {
  const TensorSpec &at = call.spec(0), &x = call.spec(1);
  if (at.numel() == 0) return;
  const int axis = from_front(call.attrs.as<AxisAttrs>().axis, at.rank);
  const AxisSplit few(at, axis), all(x, axis);
  const auto* indices = call.in[0].as<std::int64_t>();
  auto* out = call.out_as<std::int64_t>();
  devices::parallel_for(few.outer * few.n, std::max<std::int64_t>(1, kPlaceGrain / few.inner),
                        [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t r = begin; r < end; ++r)
                            for (std::int64_t i = 0, t = r * few.inner; i < few.inner; ++i, ++t) {
                              const std::int64_t given = indices[t], place = given < 0 ? given + all.n : given;
                              if (place < 0 || place >= all.n) refuse_for(Refusal::index, given, all.n);
                              out[t] = (r / few.n * all.n + place) * few.inner + i;
                            }
                        });
}

}  // namespace

constinit const OpDef flat_places_op{
    .name = "flat_places", .rule = flat_rule, .cpu = flat_kernel, .shape_only = 2, .inputs = "indices x"};
constinit const OpDef take_places_op{
    .name = "take_places",
    .rule = take_rule,
    .cpu = take_kernel,
    .vjp =
        [](const VjpContext& ctx) {
          ctx.din(0) = apply1(put_places_like_op, ctx.attrs, {ctx.dy(), ctx.in(1), ctx.in(0)});
        },
    .saves_in = 2};
constinit const OpDef put_places_like_op{.name = "put_places_like",
                                         .rule = put_rule,
                                         .cpu = put_kernel,
                                         .vjp =
                                             [](const VjpContext& ctx) {
                                               ctx.din(0) = apply1(take_places_op, ctx.attrs, {ctx.dy(), ctx.in(1)});
                                             },
                                         .saves_in = 2,
                                         .shape_only = 4};

Tensor take_places(const Tensor& x, const Tensor& places, int axis) {
  return apply1(take_places_op, AxisAttrs{axis}, {x, places});
}
Tensor put_places_like(const Tensor& x, const Tensor& places, const Tensor& like, int axis) {
  return apply1(put_places_like_op, AxisAttrs{axis}, {x, places, like});
}

Tensor flat_places(const Tensor& indices, const Tensor& x, int axis) {
  return apply1(flat_places_op, AxisAttrs{axis}, {indices, x});
}

}  // namespace kassette::ops
