// ops/product/unranked.cpp - products of operands whose rank is known only when the function is called: the form of the
// contraction (Note [Labelled axes]) is derived then, from the shapes of x and y.
#include <utility>

#include "core/text.h"
#include "ops/product/contraction.h"
#include "ops/product/matmul.h"

namespace kassette::ops {
namespace {

/// The factors and the result of x . y = z. Its adjoints, of any order, multiply tensors shaped like two of them to
/// get one shaped like the third.
enum Part : std::uint8_t { kX, kY, kZ };
/// The inputs are two factors, then x and y; only the shapes of x and y are read.
constexpr int kShapeOfX = 2, kShapeOfY = 3;

struct Unranked {
  static constexpr const char* attrs_name = "unranked_product";
  Caller caller;
  std::int32_t x_axis, y_axis;  // of batch_dot
  struct Parts {
    Part first, second, result;
  } parts;
  Cotangent cotangent;
};

/// Returns the contraction for a call; the ranks of x and y must be known.
ContractionForm contraction(const OpCall& call) {
  const Unranked& u = call.attrs.as<Unranked>();
  const TensorSpec &x = call.spec(kShapeOfX), &y = call.spec(kShapeOfY);
  const ContractionForm f = u.caller == Caller::dot ? dot_form(x, y) : batch_dot_form(x, y, u.x_axis, u.y_axis);
  const Labels* labels[] = {&f.a, &f.b, &f.out};
  ContractionForm g = f;
  g.a = *labels[u.parts.first];
  g.b = *labels[u.parts.second];
  g.out = *labels[u.parts.result];
  g.origin.cotangent = u.cotangent;
  return g;
}

void rule(const OpCall& call, TensorSpec* out) {
  const TensorSpec &x = call.spec(kShapeOfX), &y = call.spec(kShapeOfY);
  if (x.rank >= 0 && y.rank >= 0) {
    const Attrs attrs = contraction(call);
    return matmul_op.rule(OpCall{matmul_op, attrs, call.in, 2, call.out, 1, call.device}, out);
  }
  const Unranked& u = call.attrs.as<Unranked>();
  const char* caller = u.caller == Caller::dot ? "dot" : "batch_dot";
  DType a = call.spec(0).dtype, b = call.spec(1).dtype;
  if (a != b) fail<TypeError>({caller}, a, " and ", b, kRemedy, "cast one of them (K::cast), tensors are not promoted");
  if (a.is_bool()) fail<TypeError>({caller}, "bool is not a number", kRemedy, "cast it first (K::cast)");
  if (u.parts.result != kZ) return out->set(u.parts.result == kX ? x : y);
  out->dtype = a;
  out->rank = -1;
}

void run(const OpCall& call) {
  const Attrs attrs = contraction(call);
  matmul_op.cpu(OpCall{matmul_op, attrs, call.in, 2, call.out, 1, call.device});
}
void run_on_device(const OpCall& call) {
  const Attrs attrs = contraction(call);
  matmul_op.cuda(OpCall{matmul_op, attrs, call.in, 2, call.out, 1, call.device});
}

void vjp(const VjpContext& ctx) {
  const Unranked& u = ctx.attrs.as<Unranked>();
  for (int i : {0, 1}) {
    if (!ctx.wants(i)) continue;
    Unranked g = u;
    std::swap(i ? g.parts.second : g.parts.first, g.parts.result);
    g.cotangent = i ? Cotangent::b : Cotangent::a;
    Tensor factors[] = {ctx.in(0), ctx.in(1)};
    factors[i] = ctx.dy();
    ctx.din(i) = apply1(unranked_product_op, g, {factors[0], factors[1], ctx.in(kShapeOfX), ctx.in(kShapeOfY)});
  }
}

Tensor product(const Tensor& x, const Tensor& y, Caller caller, int x_axis, int y_axis) {
  return apply1(unranked_product_op, Unranked{caller, x_axis, y_axis, {kX, kY, kZ}, Cotangent::neither}, {x, y, x, y});
}

}  // namespace

constinit const OpDef unranked_product_op{.name = "unranked_product",
                                          .rule = rule,
                                          .cpu = run,
                                          .vjp = vjp,
                                          .saves_in = 3,
                                          .shape_only = 1u << kShapeOfX | 1u << kShapeOfY,
                                          .cuda = run_on_device};

Tensor unranked_dot(const Tensor& x, const Tensor& y) { return product(x, y, Caller::dot, 0, 0); }
Tensor unranked_batch_dot(const Tensor& x, const Tensor& y, int x_axis, int y_axis) {
  return product(x, y, Caller::batch_dot, x_axis, y_axis);
}

}  // namespace kassette::ops
