// ops/shape/pad.cpp - padding with zeros.
#include <algorithm>

#include "core/text.h"
#include "ops/shape/index.h"
#include "ops/engine/operand.h"
#include "ops/shape/region.h"
#include "ops/shape/shaping.h"

namespace kassette::ops {
namespace {

struct Amounts : TaggedExtra<Amounts>, Pads {
  static constexpr const char* attrs_name = "pad";
  explicit Amounts(const Pads& pads) : Pads(pads) {}
};
const Amounts& amounts_of(const Attrs& attrs) { return attrs.extra->as<Amounts>(); }

void pad_rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec& x = call.spec(0);
  const Amounts& p = amounts_of(call.attrs);
  if (differ(x.rank, p.rank))
    fail<ValueError>({"pad", "padding"}, "is for ", p.rank, p.rank == 1 ? " axis" : " axes", ", and x of shape ", x);
  out->dtype = x.dtype;
  out->rank = static_cast<std::int8_t>(p.rank);
  for (int i = 0; i < p.rank; ++i) {
    std::int64_t n = std::max<std::int64_t>(x.dim(i), 0);
    if (__builtin_add_overflow(n, p.before[i], &n) || __builtin_add_overflow(n, p.after[i], &n) || n > kMaxBytes)
      fail<ValueError>({"pad", "padding"}, "of ", p.before[i], " and ", p.after[i], " makes axis ", i,
                       " too large to address");
    out->dims[i] = x.dim(i) < 0 ? kUnknown : n;
  }
}
void pad_kernel(const OpCall& call) {
  const TensorSpec& x = call.spec(0);
  Region r;
  r.rank = x.rank;
  for (int i = 0; i < r.rank; ++i) {
    r.start[i] = amounts_of(call.attrs).before[i];
    r.step[i] = 1;
    r.count[i] = x.dims[i];
  }
  write_padded(call, r);
}
void pad_gradient(const VjpContext& ctx) {
  const Amounts& p = amounts_of(ctx.attrs);
  auto list = Ref<IndexList>::adopt(new IndexList);
  for (int i = 0; i < p.rank; ++i)
    list->push({.kind = IndexList::kSlice,
                .has_start = true,
                .has_stop = p.after[i] > 0,
                .start = p.before[i],
                .stop = -p.after[i]});
  ctx.din(0) = index(ctx.dy(), Ref<Extra>(list.get()));
}

}  // namespace

constinit const OpDef pad_op{
    .name = "pad", .rule = pad_rule, .cpu = pad_kernel, .vjp = pad_gradient, .cuda = pad_kernel};

Tensor pad(const Tensor& x, const Pads& amounts) {
  for (int i = 0; i < amounts.rank; ++i)
    if (amounts.before[i] < 0 || amounts.after[i] < 0)
      fail<ValueError>({"pad", "padding"}, "holds ", std::min(amounts.before[i], amounts.after[i]), kExpected,
                       "amounts must not be negative", kRemedy, "K::slice removes elements");
  return apply1(pad_op, Attrs(Ref<Extra>::adopt(new Amounts(amounts))), {x});
}
const Pads& pads_of(const Attrs& attrs) { return amounts_of(attrs); }

}  // namespace kassette::ops
