// ops/cast.cpp - conversion between dtypes.
#include "ops/cast.h"

#include "core/convert.h"
#include "core/sparse.h"
#include "core/text.h"
#include "devices/cpu/threads.h"
#include "ops/expr.h"
#include "ops/half.h"

namespace kassette {
namespace {

void rule(const Call& call, Spec* out) {
  out->set(call.spec(0));
  out->dtype = DType(static_cast<DType::Code>(call.attrs.a));
}

bool is_wide(DType dtype) { return dtype == float32 || dtype == float64; }

/// The loop between float32 or float64 and anything but half types; null for any other pair.
CastLoop float_loop(DType to, DType from) {
  const CastTable& table = KASSETTE_PICK(cast_table);
  auto of = [&](DType dtype) -> const FloatCasts& { return dtype == float32 ? table.f32 : table.f64; };
  if (is_wide(from)) return is_wide(to) ? of(from).to_other : to.is_float() ? nullptr : of(from).to[to.code() - DType::kBool];
  return is_wide(to) && !from.is_float() ? of(to).from[from.code() - DType::kBool] : nullptr;
}

/// By vectors where floats are concerned, the rest one by one.
void run(void* to, DType to_dtype, const void* from, DType from_dtype, std::int64_t n) {
  const HalfTable& table = KASSETTE_PICK(half_table);
  if (CastLoop loop = float_loop(to_dtype, from_dtype)) loop(from, to, n);
  else if (to_dtype == float32 && from_dtype == float16) table.from_half(from, static_cast<float*>(to), n);
  else if (to_dtype == float32 && from_dtype == bfloat16) table.from_bfloat(from, static_cast<float*>(to), n);
  else if (to_dtype == float16 && from_dtype == float32) table.to_half(static_cast<const float*>(from), to, n);
  else if (to_dtype == bfloat16 && from_dtype == float32) table.to_bfloat(static_cast<const float*>(from), to, n);
  else convert(to, to_dtype, from, from_dtype, n);
}

void kernel(const Call& call) {
  const Body& out = *call.out[0];
  DType from = call.spec(0).dtype, to = out.dtype;
  const std::byte* in = call.in[0].data;
  std::byte* o = out.data();
  parallel_for(out.numel(), 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    run(o + begin * to.size(), to, in + begin * from.size(), from, end - begin);
  });
}

void gradient(const Rewind& r) {
  if (r.spec(0).dtype.is_float() && r.dy().dtype().is_float()) r.din(0) = cast(r.dy(), r.spec(0).dtype);
}

}  // namespace

constinit const OpDef cast_row{.name = "cast", .rule = rule, .cpu = kernel, .vjp = gradient};

Tensor cast(const Tensor& x, DType dtype) {
  if (!x.defined()) fail<ValueError>("cast: an empty Tensor (an uninitialised variable?)");
  if (!dtype.given()) fail<TypeError>("cast: no dtype given");
  if (x.dtype() == dtype) return x;
  if (is_sparse(x)) return with_values(x, cast(sparse_part(x, kValues), dtype));
  Attrs attrs;
  attrs.a = dtype.code();
  return apply1(cast_row, attrs, {x});
}

}  // namespace kassette
