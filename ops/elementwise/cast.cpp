// ops/elementwise/cast.cpp - conversion between dtypes.
#include "ops/elementwise/cast.h"

#include <algorithm>
#include <cstring>

#include "core/half.h"
#include "core/sparse.h"
#include "core/text.h"
#include "devices/cpu/threads.h"
#include "ops/elementwise/elementwise.h"
#include "ops/engine/expr.h"
#include "ops/elementwise/half.h"

namespace kassette::ops {
namespace {

void rule(const OpCall& call, TensorSpec* out) {
  out->set(call.spec(0));
  out->dtype = call.attrs.as<CastAttrs>().dtype;
}

bool is_wide(DType dtype) { return dtype == float32 || dtype == float64; }
/// The index of bool or an integer dtype in the tables.
int number(DType dtype) { return dtype.code() - DType::kBool; }

/// Returns the loop between two different dtypes, neither of them a half type.
CastLoop wide_loop(DType to, DType from) {
  const CastTable& table = KASSETTE_PICK(cast_table);
  if (!is_wide(from) && !is_wide(to)) return table.integers[number(to)][number(from)];
  const FloatCasts& casts = (is_wide(from) ? from : to) == float32 ? table.f32 : table.f64;
  return is_wide(from) && is_wide(to) ? casts.to_other
         : is_wide(from)              ? casts.to[number(to)]
                                      : casts.from[number(from)];
}

/// Returns the loop to float32 for numbers that are then rounded to a half type: Note [Rounding once].
CastLoop loop_before_half(DType from) {
  const CastTable& table = KASSETTE_PICK(cast_table);
  return from == float64 ? table.f64_to_odd : table.integers_to_odd[number(from)];
}

/// Casts between two different dtypes. Casts to and from half types go through float32, as in core/half.h.
void run(std::byte* to, DType to_dtype, const std::byte* from, DType from_dtype, std::int64_t n) {
  bool half_in = is_half(from_dtype), half_out = is_half(to_dtype);
  if (!half_in && !half_out) return wide_loop(to_dtype, from_dtype)(from, to, n);
  if (to_dtype == float32) return half_to_float(reinterpret_cast<float*>(to), from, from_dtype, n);
  if (from_dtype == float32) return float_to_half(to, to_dtype, reinterpret_cast<const float*>(from), n);
  constexpr std::int64_t kBlock = 1024;
  float block[kBlock];
  for (std::int64_t i = 0; i < n; i += kBlock) {
    std::int64_t count = std::min(kBlock, n - i);
    const std::byte* in = from + i * from_dtype.size();
    std::byte* out = to + i * to_dtype.size();
    if (half_in) half_to_float(block, in, from_dtype, count);
    else loop_before_half(from_dtype)(in, block, count);
    if (half_out) float_to_half(out, to_dtype, block, count);
    else wide_loop(to_dtype, float32)(block, out, count);
  }
}

void kernel(const OpCall& call) {
  const TensorDesc& out = *call.out[0];
  cast_elements(out.data(), out.dtype, call.in[0].data, call.spec(0).dtype, out.numel());
}

void gradient(const VjpContext& ctx) {
  if (ctx.spec(0).dtype.is_float() && ctx.dy().dtype().is_float()) ctx.din(0) = cast(ctx.dy(), ctx.spec(0).dtype);
}

}  // namespace

void cast_elements(void* to, DType to_dtype, const void* from, DType from_dtype, std::int64_t n) {
  auto* out = static_cast<std::byte*>(to);
  auto* in = static_cast<const std::byte*>(from);
  devices::parallel_for(n, kShortGrain, [&](std::int64_t begin, std::int64_t end) {
    std::byte* o = out + begin * to_dtype.size();
    const std::byte* i = in + begin * from_dtype.size();
    if (to_dtype == from_dtype) std::memcpy(o, i, static_cast<std::size_t>((end - begin) * to_dtype.size()));
    else run(o, to_dtype, i, from_dtype, end - begin);
  });
}

void half_to_float(float* to, const void* from, DType dtype, std::int64_t n) {
  const HalfTable& table = KASSETTE_PICK(half_table);
  (dtype == float16 ? table.from_half : table.from_bfloat)(from, to, n);
}
void float_to_half(void* to, DType dtype, const float* from, std::int64_t n) {
  const HalfTable& table = KASSETTE_PICK(half_table);
  (dtype == float16 ? table.to_half : table.to_bfloat)(from, to, n);
}

constinit const OpDef cast_op{.name = "cast", .rule = rule, .cpu = kernel, .vjp = gradient};

Tensor cast(const Tensor& x, DType dtype) {
  if (!x.defined()) fail_empty({"cast", "x"});
  if (!dtype.given()) fail<TypeError>({"cast", "dtype"}, "is None");
  if (x.dtype() == dtype) return x;
  if (is_sparse(x)) return with_values(x, cast(sparse_part(x, kValues), dtype));
  return apply1(cast_op, CastAttrs{dtype}, {x});
}

Tensor value_cast(const Tensor& x, DType dtype) {
  return x.device() == cpu ? host_copy(x, dtype) : cast(x.detach(), dtype);
}

}  // namespace kassette::ops
