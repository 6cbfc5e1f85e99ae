// ops/elementwise/ternary.cpp - where: picks each element from one of two tensors, by a condition.
#include "ops/elementwise/ternary.h"

#include "core/text.h"
#include "ops/elementwise/elementwise.h"
#include "ops/engine/expr.h"
#include "ops/engine/operand.h"

namespace kassette::ops {
namespace {

/// Bits 0, 1, 2 of kMask: the condition, a, b is a single element. Elements are copied as integers, so that NaNs keep
/// their bits.
template <class T, int kMask>
void loop(const void* const* in, void* out, std::int64_t n, const Attrs&) {
  auto* c = static_cast<const bool*>(in[0]);
  auto* a = static_cast<const T*>(in[1]);
  auto* b = static_cast<const T*>(in[2]);
  auto* o = static_cast<T*>(out);
  const T one_a = kMask & 2 ? *a : T(), one_b = kMask & 4 ? *b : T();
  for (std::int64_t i = 0; i < n; ++i) {
    T x = kMask & 2 ? one_a : a[i], y = kMask & 4 ? one_b : b[i];
    o[i] = c[kMask & 1 ? 0 : i] ? x : y;
  }
}

template <class T>
constexpr ElementwiseFns set{
    {loop<T, 0>, loop<T, 1>, loop<T, 2>, loop<T, 3>, loop<T, 4>, loop<T, 5>, loop<T, 6>, loop<T, 7>}};

const ElementwiseFns* find(DType dtype) {
  switch (dtype.size()) {
    case 1: return &set<std::uint8_t>;
    case 2: return &set<std::uint16_t>;
    case 4: return &set<std::uint32_t>;
    default: return &set<std::uint64_t>;
  }
}
constexpr ElementwiseLoops loops{find, 3, kShortGrain, false};

void rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec &c = call.spec(0), &a = call.spec(1), &b = call.spec(2);
  if (!c.dtype.is_bool())
    fail<TypeError>({"where", "condition"}, "is ", c.dtype, kRemedy, "compare it with something, or cast it to bool");
  if (a.dtype != b.dtype)
    fail<TypeError>({"where"}, a.dtype, " and ", b.dtype, kRemedy,
                    "cast one of them (K::cast), tensors are not promoted");
  TensorSpec branches;
  broadcast_spec("where", a, b, &branches);
  broadcast_spec("where", c, branches, out);
  out->dtype = a.dtype;
}

void gradient(const VjpContext& ctx) {
  Tensor c = ctx.in(0);
  if (ctx.wants(1)) ctx.din(1) = where(c, ctx.dy(), 0.0);
  if (ctx.wants(2)) ctx.din(2) = where(c, 0.0, ctx.dy());
}

}  // namespace

constinit const OpDef where_op{.name = "where",
                               .rule = rule,
                               .cpu = elementwise_kernel,
                               .vjp = gradient,
                               .saves_in = 1,
                               .loops = &loops,
                               .inputs = "condition x y"};

Tensor where(const Tensor& condition, const Operand& a, const Operand& b) {
  DType dtype = dtype_for_numbers(a, b);
  Arg x(a, dtype, "where"), y(b, dtype, "where");
  return apply1(where_op, {condition, x, y});
}

}  // namespace kassette::ops
