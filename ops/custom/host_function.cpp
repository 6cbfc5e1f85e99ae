// ops/custom/host_function.cpp - ops made of functions of the user.
#include "ops/custom/host_function.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/context.h"
#include "core/text.h"
#include "ops/engine/desc.h"
#include "ops/engine/expr.h"
#include "ops/shape/shaping.h"

namespace kassette::ops {
namespace {

class Owned final : public TaggedExtra<Owned> {
 public:
  static constexpr const char* attrs_name = "user op";
  Owned(std::unique_ptr<UserFunctions> functions, DType result) : user(std::move(functions)), dtype(result) {}
  std::unique_ptr<UserFunctions> user;
  DType dtype;
};
const Owned& owned(const Attrs& attrs) { return attrs.extra->as<Owned>(); }

/// Sets the cotangents of the inputs from `first` on to those that the user's adjoint returns.
void set_cotangents(const VjpContext& ctx, int first) {
  const char* what = ctx.node.op->name;
  Tensors arguments;
  for (int i = first; i < ctx.n_in(); ++i) arguments.push_back(ctx.in(i));
  const int n = ctx.n_in() - first;
  arguments.push_back(ctx.out());
  arguments.push_back(ctx.dy());
  const Tensors found = owned(ctx.attrs).user->vjp(arguments);
  if (found.size() != n)
    fail<ValueError>({what, "f_vjp"}, "returned ", found.size(), " tensors", kExpected,
                     "it must return one for each of the ", n, " arguments");
  for (int i = 0; i < n; ++i) {
    if (!found[i].defined() || !ctx.wants(first + i)) continue;
    const TensorDesc& d = Access::desc(found[i]);
    const TensorSpec& x = ctx.spec(first + i);
    if (!x.dtype.is_float()) continue;
    if (!d.compatible(x) || d.dtype != x.dtype)
      fail<ValueError>({what, "f_vjp"}, "returned ", d.dtype, " of shape ", found[i].shape(), " for argument ", i,
                       kExpected, "it is ", x.dtype, " of shape ", x);
    ctx.din(first + i) = found[i];
  }
}

void first_rule(const OpCall& call, TensorSpec* out) { out->set(call.spec(0)); }

Shape shape_in(const TensorSpec& s) { return Shape(s.dims, s.rank); }
void host_rule(const OpCall& call, TensorSpec* out) {
  const Owned& f = owned(call.attrs);
  std::vector<Shape> shapes;
  for (int i = 0; i < call.n_in; ++i) shapes.push_back(shape_in(call.spec(i)));
  const Shape shape = f.user->shape(shapes.data());
  TensorSpec s;
  s.dtype = f.dtype.given() ? f.dtype : call.spec(0).dtype;
  s.rank = static_cast<std::int8_t>(shape.rank());
  std::copy_n(shape.begin(), shape.size(), s.dims);
  out->set(s);
}
void host_kernel(const OpCall& call) {
  Context& c = context();
  const Scoped<bool> off(c.recording, false), eager(c.symbolic, false);
  Tensors in;
  for (int i = 0; i < call.n_in; ++i) in.push_back(detached(*call.in[i].desc));
  const Tensor y = owned(call.attrs).user->value(in);
  if (!y.defined()) fail_empty({"host_call", "the result of f"});
  const TensorDesc &found = Access::desc(y), &expected = *call.out[0];
  if (found.device != cpu || found.dtype != expected.dtype || !found.compatible(expected))
    fail<ValueError>({"host_call", "f"}, "returned ", found.dtype, " of shape ", y.shape(), " on ", found.device,
                     kExpected, "it is to be ", expected.dtype, " of shape ", shape_in(expected), " on cpu");
  call.out[0]->set(found);
  put(*call.out[0], read_value(found));
}
void host_vjp(const VjpContext& ctx) {
  if (!owned(ctx.attrs).user->has_gradient())
    fail<ValueError>({"host_call"}, "a function without f_vjp has no gradient", kRemedy,
                     "pass one, or stop the gradient (K::stop_gradient)");
  set_cotangents(ctx, 0);
}

}  // namespace

/// Inputs: y, and what it was computed from.
constinit const OpDef custom_gradient_op{.name = "custom_gradient",
                                         .rule = first_rule,
                                         .cpu = share,
                                         .vjp = [](const VjpContext& ctx) { set_cotangents(ctx, 1); },
                                         .saves_in = ~1u,
                                         .saves_out = 1,
                                         .traits = kView,
                                         .cuda = share,
                                         .inputs = "tensor #"};
constinit const OpDef host_call_op{.name = "host_call",
                                   .rule = host_rule,
                                   .cpu = host_kernel,
                                   .vjp = host_vjp,
                                   .saves_in = ~0u,
                                   .saves_out = 1,
                                   .host = ~0u,
                                   .traits = kView,
                                   .inputs = "tensor #"};

Tensor custom_gradient(const Tensor& y, const Tensors& x, std::unique_ptr<UserFunctions> user) {
  Attrs attrs(Ref<Extra>::adopt(new Owned(std::move(user), y.dtype())));
  Tensors in{y};
  for (const Tensor& t : x) in.push_back(t);
  return apply_all(custom_gradient_op, attrs, in)[0];
}

Tensor host_call(std::unique_ptr<UserFunctions> user, DType dtype, const Tensors& x) {
  Attrs attrs(Ref<Extra>::adopt(new Owned(std::move(user), dtype)));
  Device device = cpu;
  Tensors in;
  for (const Tensor& t : x) {
    if (!t.defined()) fail_empty({"host_call", "x"});
    if (t.device() != cpu) device = t.device();
    in.push_back(t.device() == cpu ? t : t.to(cpu));
  }
  if (in.empty()) fail<ValueError>({"host_call", "x"}, "is an empty list", kExpected, "there must be an argument");
  const Tensor y = apply_all(host_call_op, attrs, in)[0];
  return device == cpu ? y : y.to(device);
}

}  // namespace kassette::ops
