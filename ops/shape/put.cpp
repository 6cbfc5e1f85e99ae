// ops/shape/put.cpp - tensors with other values at some positions, and their gradients.
#include "ops/shape/put.h"

#include <cstring>
#include <vector>

#include "core/convert.h"
#include "core/rank.h"
#include "devices/cpu/threads.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/elementwise.h"
#include "ops/engine/expr.h"
#include "ops/shape/shaping.h"
#include "ops/shape/strided.h"

namespace kassette::ops {
namespace {

constexpr std::int64_t kGrainBytes = 3 << 16;

GatherSplit parts_of(const OpCall& call) {
  const auto how = call.attrs.as<GatherAttrs>();
  return {call.spec(0), from_front(how.axis, call.spec(0).rank), how.joined};
}

void taken_rule(const OpCall& call, TensorSpec* out) {
  selected_spec(call.spec(0), call.spec(1), call.attrs.as<GatherAttrs>(), out);
}

template <Put kPut>
void put_rule(const OpCall& call, TensorSpec* out) {
  if (kPut != Put::set) check_domain(call, Domain::numbers);
  const TensorSpec &x = call.spec(0), &v = call.spec(2);
  TensorSpec where;
  taken_rule(call, &where);
  if (v.dtype != x.dtype)
    fail<TypeError>({"at"}, "x is ", x.dtype, ", the values ", v.dtype, kRemedy, "cast them (K::cast)");
  if (v.rank != 0 && !v.compatible(where))
    fail<ValueError>({"at"}, "values of shape ", v, " for indices that select ", where);
  out->set(x);
}

template <class T>
struct Values {
  const T* data;
  std::int64_t step;  // 0: one for all
};

template <Put kPut, class T>
void put_one(T& to, T v) {
  if constexpr (kPut == Put::set) to = v;
  else if constexpr (kIsHalf<T>) to = convert_one<T>(put_together<kPut>(to_float(to), to_float(v)));
  else to = put_together<kPut>(to, v);
}

/// Calls f with the positions, input 1, as the integers that they are.
template <class F>
void with_positions(const OpCall& call, F f) {
  if (call.spec(1).dtype == int32) f(call.in[1].as<std::int32_t>());
  else f(call.in[1].as<std::int64_t>());
}

/// Puts the values at positions whose row is in [first, last), of one outer block.
template <Put kPut, class T, class I>
void put_rows(const GatherSplit& p, const I* at, std::int64_t n, Values<T> v, T* to, std::int64_t first,
              std::int64_t last) {
  if (p.inner == 1) {
    for (std::int64_t k = 0; k < n; ++k)
      if (const std::int64_t row = at[k]; row >= first && row < last) put_one<kPut>(to[row], v.data[k * v.step]);
    return;
  }
  for (std::int64_t k = 0; k < n; ++k) {
    const std::int64_t row = at[k];
    if (row < first || row >= last) continue;
    T* out = to + row * p.inner;
    const T* from = v.data + k * p.inner * v.step;
    for (std::int64_t i = 0; i < p.inner; ++i) put_one<kPut>(out[i], from[i * v.step]);
  }
}

template <Put kPut, class T, class I>
void put_all(const GatherSplit& p, const I* at, std::int64_t n, Values<T> v, T* to) {
  const std::int64_t row = p.inner * static_cast<std::int64_t>(sizeof(T));
  if (p.outer > 1) {
    devices::parallel_for(
        p.outer, std::max<std::int64_t>(1, kGrainBytes / (n * row)), [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t o = begin; o < end; ++o)
            put_rows<kPut, T>(p, at, n, {v.data + o * n * p.inner * v.step, v.step}, to + o * p.n * p.inner, 0, p.n);
        });
    return;
  }
  const std::int64_t ranges = row_ranges(row, n * row);
  devices::parallel_for(p.n, (p.n + ranges - 1) / ranges,
                        [&](std::int64_t begin, std::int64_t end) { put_rows<kPut>(p, at, n, v, to, begin, end); });
}

void copy_all(std::byte* to, const std::byte* from, std::int64_t bytes) {
  devices::parallel_for(bytes, kGrainBytes, [=](std::int64_t begin, std::int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
  });
}

/// Nothing is allocated here, and nothing fails: Note [Commit].
template <Put kPut>
void put_kernel(const OpCall& call) {
  const GatherSplit p = parts_of(call);
  TensorDesc& out = *call.out[0];
  if (out.data() != call.in[0].data) copy_all(out.data(), call.in[0].data, out.bytes());
  const std::int64_t n = call.spec(1).numel();
  if (out.numel() == 0 || n == 0) return;
  dispatch(out.dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    const Values<T> v{call.in[2].as<T>(), call.spec(2).rank ? 1 : 0};
    with_positions(call, [&](const auto* at) { put_all<kPut>(p, at, n, v, call.out_as<T>()); });
  });
}

// ---- gradients ------------------------------------------------------------------------------------------------------

/// The ops of an adjoint, at the positions of the op.
struct Places {
  const VjpContext& ctx;
  const Tensor positions = ctx.in(1);
  Tensor taken(const Tensor& x) const {
    const auto how = ctx.attrs.as<GatherAttrs>();
    return gather(x, positions, static_cast<int>(how.axis), Wrap::refuse, how.joined);
  }
  Tensor put(const OpDef& op, const Tensor& x, const Tensor& v) const {
    return apply1(op, ctx.attrs, {x, positions, v});
  }
};

void set_gradient(const VjpContext& ctx) {
  if (ctx.wants(0)) ctx.din(0) = Places{ctx}.put(index_set_op, ctx.dy(), number_like(0, ctx.dy()));
  if (ctx.wants(2)) ctx.din(2) = apply1(take_last_op, ctx.attrs, {ctx.dy(), ctx.in(1)});
}
void add_gradient(const VjpContext& ctx) {
  if (ctx.wants(0)) ctx.din(0) = ctx.dy();
  if (ctx.wants(2)) ctx.din(2) = Places{ctx}.taken(ctx.dy());
}

/// Of the values that are multiplied into one element, the product of the others: 0 if two of them are 0, and without a
/// division by 0 if one is.
Tensor product_of_other_values(const Places& at, const Tensor& x, const Tensor& v) {
  const Tensor is_zero = equal(v, 0.0), rest = where(is_zero, 1.0, v), none = zeros_of(x);
  const Tensor zeros = at.taken(at.put(index_add_op, none, cast(is_zero, x.dtype()))),
               product = at.taken(at.put(index_multiply_op, none + 1.0, rest));
  return where(is_zero, where(equal(zeros, 1.0), product, 0.0), where(equal(zeros, 0.0), product / rest, 0.0));
}
void multiply_gradient(const VjpContext& ctx) {
  const Places at{ctx};
  const Tensor x = ctx.in(0), v = ctx.in(2);
  if (ctx.wants(0)) ctx.din(0) = mul_no_nan(ctx.dy(), at.put(index_multiply_op, zeros_of(x) + 1.0, v));
  if (ctx.wants(2)) ctx.din(2) = mul_no_nan(at.taken(mul_no_nan(ctx.dy(), x)), product_of_other_values(at, x, v));
}

/// Of an element that is chosen from several equal ones each gets an equal share.
void extreme_gradient(const VjpContext& ctx) {
  const Places at{ctx};
  const Tensor x = ctx.in(0), v = ctx.in(2), y = ctx.out();
  const Tensor from_x = equal(x, y), from_v = equal(v, at.taken(y));
  const Tensor count = at.put(index_add_op, cast(from_x, x.dtype()), cast(from_v, x.dtype()));
  const Tensor share = ctx.dy() / maximum(count, 1.0);
  if (ctx.wants(0)) ctx.din(0) = where(from_x, share, 0.0);
  if (ctx.wants(2)) ctx.din(2) = where(from_v, at.taken(share), 0.0);
}

// ---- take_last ------------------------------------------------------------------------------------------------------

void take_last_kernel(const OpCall& call) {
  if (call.out[0]->numel() == 0) return;  // the axis may be longer than memory
  const GatherSplit p = parts_of(call);
  const std::int64_t n = call.spec(1).numel(), bytes = p.inner * call.spec(0).dtype.size();
  with_positions(call, [&](const auto* at) {
    std::vector<std::int64_t> last(static_cast<std::size_t>(p.n), -1);
    for (std::int64_t k = 0; k < n; ++k) last[static_cast<std::size_t>(at[k])] = k;
    for (std::int64_t o = 0; o < p.outer; ++o)
      for (std::int64_t k = 0; k < n; ++k) {
        std::byte* to = call.out[0]->data() + (o * n + k) * bytes;
        if (last[static_cast<std::size_t>(at[k])] == k)
          std::memcpy(to, call.in[0].data + (o * p.n + at[k]) * bytes, static_cast<std::size_t>(bytes));
        else std::memset(to, 0, static_cast<std::size_t>(bytes));
      }
  });
}
void take_last_gradient(const VjpContext& ctx) {
  ctx.din(0) = apply1(index_set_op, ctx.attrs, {zeros_of(ctx.in(0)), ctx.in(1), ctx.dy()});
}

}  // namespace

std::int64_t row_ranges(std::int64_t row_bytes, std::int64_t bytes) {
  constexpr std::int64_t kShortRow = 64, kMany = 1 << 17;
  return row_bytes < kShortRow || bytes < kMany ? 1 : num_threads();
}

void selected_spec(const TensorSpec& x, const TensorSpec& positions, const GatherAttrs& how, TensorSpec* out) {
  out->dtype = x.dtype;
  out->rank = -1;
  if (x.rank < 0 || positions.rank < 0) return;
  const int taken = 1 + how.joined, more = positions.rank, axis = static_cast<int>(how.axis);
  out->rank = checked_rank("index", x.rank - taken + more, x, " by indices of shape ", positions);
  for (int i = 0; i < out->rank; ++i)
    out->dims[i] = i < axis ? x.dims[i] : i < axis + more ? positions.dims[i - axis] : x.dims[i - more + taken];
}

constinit const OpDef index_set_op{.name = "index_set",
                                   .rule = put_rule<Put::set>,
                                   .cpu = put_kernel<Put::set>,
                                   .vjp = set_gradient,
                                   .saves_in = 2,
                                   .traits = kOverwrites,
                                   .inputs = "x index values"};
constinit const OpDef index_add_op{.name = "index_add",
                                   .rule = put_rule<Put::add>,
                                   .cpu = put_kernel<Put::add>,
                                   .vjp = add_gradient,
                                   .saves_in = 2,
                                   .traits = kOverwrites,
                                   .inputs = "x index values"};
constinit const OpDef index_multiply_op{.name = "index_multiply",
                                        .rule = put_rule<Put::multiply>,
                                        .cpu = put_kernel<Put::multiply>,
                                        .vjp = multiply_gradient,
                                        .saves_in = 7,
                                        .traits = kOverwrites,
                                        .inputs = "x index values"};
constinit const OpDef index_min_op{.name = "index_min",
                                   .rule = put_rule<Put::min>,
                                   .cpu = put_kernel<Put::min>,
                                   .vjp = extreme_gradient,
                                   .saves_in = 7,
                                   .saves_out = 1,
                                   .traits = kOverwrites,
                                   .inputs = "x index values"};
constinit const OpDef index_max_op{.name = "index_max",
                                   .rule = put_rule<Put::max>,
                                   .cpu = put_kernel<Put::max>,
                                   .vjp = extreme_gradient,
                                   .saves_in = 7,
                                   .saves_out = 1,
                                   .traits = kOverwrites,
                                   .inputs = "x index values"};
constinit const OpDef take_last_op{.name = "take_last",
                                   .rule = taken_rule,
                                   .cpu = take_last_kernel,
                                   .vjp = take_last_gradient,
                                   .saves_in = 2,
                                   .inputs = "x index"};

}  // namespace kassette::ops
