// nn_backend/state.cpp - reading and changing variables.
#include <kassette/backend/state.h>

#include "autograd/plan.h"
#include "autograd/update.h"
#include "core/convert.h"
#include "core/text.h"
#include "ops/expr.h"
#include "ops/operand.h"

namespace kassette {
namespace backend {
namespace {

Tensor change(const Tensor& x, const Operand& value, Effect::Mode mode, const char* what) {
  if (!x.defined()) fail<ValueError>(what, ": an empty Tensor (an uninitialised variable?)");
  DType dtype = Access::body(x).dtype;
  Arg v(value, dtype, what);
  return kassette::update(x, v, mode, what);
}

/// The value as the variable's dtype, checked.
Value checked_value(const Tensor& x, const Operand& value, const char* what) {
  if (!x.defined()) fail<ValueError>(what, ": an empty Tensor (an uninitialised variable?)");
  const Body& b = Access::body(x);
  if (!(b.flags & kLeaf) || b.node->cell->kind != Leaf::variable)
    fail<TypeError>(what, ": the first argument is not a variable; make it with K::variable");
  Arg v(value, b.dtype, what);
  if (!v.tensor().defined()) fail<ValueError>(what, ": the value is an empty Tensor (an uninitialised variable?)");
  const Body& from = v.body();
  Value now = concrete_value(from, what);
  if (!from.same_shape(b)) fail<ValueError>(what, ": the variable is ", b.shape(), ", the value ", from.shape());
  Tensor t = v;
  if (from.dtype != b.dtype) t = host_copy(t, b.dtype);
  if (t.device() != b.device) t = t.to(b.device);
  return read_value(Access::body(t));
}

}  // namespace

Tensor update(const Tensor& x, const Operand& new_x) { return change(x, new_x, Effect::kSet, "update"); }
Tensor update_add(const Tensor& x, const Operand& increment) { return change(x, increment, Effect::kAdd, "update_add"); }
Tensor update_sub(const Tensor& x, const Operand& decrement) {
  return change(x, decrement, Effect::kSubtract, "update_sub");
}
Tensor moving_average_update(const Tensor& x, const Operand& value, const Operand& momentum) {
  const char* what = "moving_average_update";
  if (!x.defined()) fail<ValueError>(what, ": an empty Tensor (an uninitialised variable?)");
  DType dtype = Access::body(x).dtype;
  Arg v(value, dtype, what), m(momentum, dtype, what);
  Tensor target = v.body().dtype == dtype ? Tensor(v) : cast(v, dtype);
  return kassette::update(x, (x - target) * (1.0 - m.tensor()), Effect::kSubtract, what);
}

Tensor eval(const Operand& x) {
  Arg t(x, DType(), "eval");
  if (!t.tensor().defined()) fail<ValueError>("eval: an empty Tensor (an uninitialised variable?)");
  if (!t.tensor().symbolic()) return t.tensor().detach();
  Plan::Request request;
  request.outputs = Tensors(t.tensor());
  request.what = "eval";
  return Plan::build(request)->run(nullptr, 0)[0];
}
Tensor get_value(const Operand& x) { return eval(x); }
Tensors batch_get_value(const Tensors& ops) {
  Tensors out;
  out.reserve(ops.size());
  for (const Tensor& t : ops) out.push_back(eval(t));
  return out;
}

void set_value(const Tensor& x, const Operand& value) {
  Value v = checked_value(x, value, "set_value");
  Access::body(x).node->cell->store(std::move(v));
}
void batch_set_value(std::initializer_list<ValuePair> tuples) {
  std::vector<Value> values;
  for (const ValuePair& p : tuples) values.push_back(checked_value(p.variable, p.value, "batch_set_value"));
  std::size_t i = 0;
  for (const ValuePair& p : tuples) Access::body(p.variable).node->cell->store(std::move(values[i++]));
}
void batch_set_value(const Tensors& variables, const Tensors& list) {
  if (variables.size() != list.size())
    fail<ValueError>("batch_set_value: ", variables.size(), " variables, ", list.size(), " values");
  std::vector<Value> values;
  for (std::int64_t i = 0; i < list.size(); ++i) values.push_back(checked_value(variables[i], list[i], "batch_set_value"));
  for (std::int64_t i = 0; i < list.size(); ++i)
    Access::body(variables[i]).node->cell->store(std::move(values[static_cast<std::size_t>(i)]));
}

}  // namespace backend
}  // namespace kassette
