// ops/cast.cpp - conversion between dtypes.
#include "ops/cast.h"

#include "core/convert.h"
#include "core/text.h"
#include "devices/cpu/threads.h"
#include "ops/expr.h"

namespace kassette {
namespace {

void rule(const Call& call, Spec* out) {
  out->set(call.spec(0));
  out->dtype = DType(static_cast<DType::Code>(call.attrs.a));
}

void kernel(const Call& call) {
  const Body& out = *call.out[0];
  DType from = call.spec(0).dtype, to = out.dtype;
  const std::byte* in = call.in[0].data;
  std::byte* o = out.data();
  parallel_for(out.numel(), 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    convert(o + begin * to.size(), to, in + begin * from.size(), from, end - begin);
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
  Attrs attrs;
  attrs.a = dtype.code();
  return apply1(cast_row, attrs, {x});
}

}  // namespace kassette
