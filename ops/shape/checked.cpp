// ops/shape/checked.cpp - the op that checks shapes which are not known before a function runs.
#include "ops/shape/checked.h"

#include <algorithm>

namespace kassette::ops {
namespace {

struct Condition : TaggedExtra<Condition> {
  static constexpr const char* attrs_name = "condition";
  explicit Condition(ShapeCondition f) : holds(std::move(f)) {}
  ShapeCondition holds;
};

void rule(const OpCall& call, TensorSpec* out) {
  // Without one, as tests of all ops call it, every shape fits.
  if (call.attrs.extra) call.attrs.extra->as<Condition>().holds(call.spec(0), call.spec(1));
  out->set(call.spec(0));
}
}  // namespace

constinit const OpDef check_shapes_op{.name = "check_shapes",
                                      .rule = rule,
                                      .cpu = share,
                                      .vjp = [](const VjpContext& ctx) { ctx.din(0) = ctx.dy(); },
                                      .shape_only = 2,
                                      .traits = kView,
                                      .pattern = Pattern::alias,
                                      .cuda = share};

Tensor checked_later(const Tensor& x, const Tensor& other, ShapeCondition condition) {
  return apply1(check_shapes_op, Attrs(Ref<Extra>::adopt(new Condition(std::move(condition)))), {x, other});
}

bool broadcasts_to(const TensorSpec& x, const TensorSpec& shape) {
  if (x.rank < 0 || shape.rank < 0) return true;
  bool fits = x.rank <= shape.rank;
  for (int i = 1; fits && i <= x.rank; ++i)
    fits = x.dims[x.rank - i] == 1 || !differ(x.dims[x.rank - i], shape.dims[shape.rank - i]);
  return fits;
}
bool broadcast_together(const TensorSpec& x, const TensorSpec& y, int behind) {
  for (int i = 1 + behind; i <= std::min(x.rank, y.rank); ++i) {
    const std::int64_t n = x.dims[x.rank - i], m = y.dims[y.rank - i];
    if (n != 1 && m != 1 && differ(n, m)) return false;
  }
  return true;
}

}  // namespace kassette::ops
