// nn_backend/state.cpp - reading and changing variables.
#include <kassette/backend/state.h>

#include "autograd/function/plan.h"
#include "autograd/program/update.h"
#include "core/convert.h"
#include "core/text.h"
#include "ops/engine/dispatch.h"
#include "ops/engine/expr.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"
#include "ops/engine/print_tensor.h"
#include "ops/engine/refusals.h"
#include "ops/sparse/sparse.h"

namespace kassette {
using namespace ops;
namespace backend {
namespace {

/// `at`: the function, and its name for the value.
Tensor change(const Tensor& x, const Operand& value, autograd::Effect::Mode mode, const At& at) {
  const char* what = at.function;
  if (!x.defined()) fail_empty({what, "x"});
  DType dtype = Access::desc(x).dtype;
  Arg v(value, dtype, at);
  if (!v.tensor().defined()) fail_empty(at);
  refuse_sparse(at, v);
  return autograd::update(x, number_on(v, x.device()), mode);
}

/// An operand as a tensor of that dtype, cast if it has another.
Tensor in_dtype(const Operand& x, DType dtype, const At& at) {
  Tensor t = as_tensor(x, dtype, at);
  if (!t.defined()) fail_empty(at);
  refuse_sparse(at, t);
  return cast(t, dtype);
}

/// The value of any tensor, without history; for a sparse tensor, its dense value. `what` is a literal.
Tensor value_of(const Operand& x, const char* what) {
  Arg t(x, DType(), {what, "x"});
  if (!t.tensor().defined()) fail_empty({what, "x"});
  if (is_sparse(t.tensor())) return value_of(attribute_errors(what, [&] { return to_dense(t); }), what);
  if (!t.tensor().symbolic()) return attribute_errors(what, [&] { return t.tensor().detach(); });
  autograd::ProgramRequest request;
  request.outputs = Tensors(t.tensor());
  request.what = what;
  return autograd::Plan::build(request)->run({})[0];
}

/// The descriptor of a variable. Throws TypeError if x is not one.
const TensorDesc& variable_desc(const Tensor& x, const char* what) {
  if (!x.defined()) fail_empty({what, "x"});
  const TensorDesc& b = Access::desc(x);
  if (!(b.flags & kLeaf) || b.node->cell->kind != Leaf::variable)
    fail<TypeError>({what, "x"}, "is not a variable", kRemedy, "make it with K::variable");
  return b;
}

/// The value as the variable's dtype, checked.
Value checked_value(const Tensor& x, const Operand& value, const char* what) {
  const TensorDesc& b = variable_desc(x, what);
  Tensor t = as_tensor(value, b.dtype, {what, "value"}, Fractions::truncate);
  if (!t.defined()) fail_empty({what, "value"});
  refuse_sparse({what, "value"}, t);
  const TensorDesc& from = Access::desc(t);
  Value now = concrete_value(from, what);
  if (!from.same_shape(b)) fail_shapes({what}, cell_of(b), b, from);
  if (from.dtype != b.dtype) t = value_cast(t, b.dtype);
  if (t.device() != b.device) t = t.to(b.device);
  return read_value(Access::desc(t));
}

/// checked_value() of pair i of batch_set_value, which its errors name.
Value value_of_pair(const Tensor& variable, const Operand& value, std::size_t i) {
  try {
    return checked_value(variable, value, "batch_set_value");
  } catch (const AsyncError&) {
    throw;
  } catch (Error& e) {
    const std::string which = e.argument();
    if (which.empty()) ErrorAccess::set(e, "batch_set_value", text("pair ", i).c_str(), text(kIsRefused, e.given()));
    else ErrorAccess::set(e, "batch_set_value", text(which == "x" ? "variable " : "value ", i).c_str(), e.given());
    throw;
  }
}

/// Pairs of variable and value, in whichever form they were passed.
struct Pairs {
  std::initializer_list<ValuePair> tuples;
  Tensors variables, values;
};
external::Value box(const Pairs& pairs) {
  std::vector<external::Value> items;
  for (const ValuePair& p : pairs.tuples) items.push_back(external::Value::list({p.variable, ops::box(p.value)}));
  for (std::int64_t i = 0; i < pairs.variables.size(); ++i)
    items.push_back(external::Value::list({pairs.variables[i], pairs.values[i]}));
  return external::Value::list(items.data(), static_cast<int>(items.size()));
}

}  // namespace

Tensor update(const Tensor& x, const Operand& new_x) {
  KASSETTE_DISPATCH(update, x, new_x);
  return change(x, new_x, autograd::Effect::kSet, {"update", "new_x"});
}
Tensor update_add(const Tensor& x, const Operand& increment) {
  KASSETTE_DISPATCH(update_add, x, increment);
  return change(x, increment, autograd::Effect::kAdd, {"update_add", "increment"});
}
Tensor update_sub(const Tensor& x, const Operand& decrement) {
  KASSETTE_DISPATCH(update_sub, x, decrement);
  return change(x, decrement, autograd::Effect::kSubtract, {"update_sub", "decrement"});
}
Tensor moving_average_update(const Tensor& x, const Operand& value, const Operand& momentum) {
  KASSETTE_DISPATCH(moving_average_update, x, value, momentum);
  const char* what = "moving_average_update";
  const TensorDesc& b = variable_desc(x, what);
  Tensor target = in_dtype(value, b.dtype, {what, "value"}), m = in_dtype(momentum, b.dtype, {what, "momentum"});
  if (m.ndim() > 0)
    fail<ValueError>({what, "momentum"}, "has shape ", m.shape(), kExpected, "it must be a number or a scalar");
  if (const TensorDesc& v = Access::desc(target); !v.compatible(b)) fail_shapes({what}, cell_of(b), b, v);
  // A value that turns out to be smaller must not be broadcast: this throws at replay too.
  return attribute_errors(what, [&] {
    return autograd::update(x, (x - assert_shape_of(ShapeCheck::moving_average, target, x)) * (1.0 - m),
                            autograd::Effect::kSubtract, /*moving_average=*/true);
  });
}

Tensor eval(const Operand& x) {
  KASSETTE_DISPATCH(eval, x);
  return value_of(x, "eval");
}
Tensor print_tensor(const Operand& x, Name message) {
  KASSETTE_DISPATCH(print_tensor, x, message);
  return ops::print_tensor(Arg(x, DType(), {"print_tensor", "x"}), string_of(message));
}
Tensor get_value(const Operand& x) {
  KASSETTE_DISPATCH(get_value, x);
  return value_of(x, "get_value");
}
Tensors batch_get_value(const Tensors& ops) {
  KASSETTE_DISPATCH(batch_get_value, ops);
  Tensors out;
  out.reserve(ops.size());
  for (const Tensor& t : ops) {
    if (!t.defined()) fail_item<ValueError>("batch_get_value", "op", out.size(), "is ", kEmptyTensor);
    out.push_back(value_of(t, "batch_get_value"));
  }
  return out;
}

void set_value(const Tensor& x, const Operand& value) {
  KASSETTE_DISPATCH(set_value, x, value);
  Value v = checked_value(x, value, "set_value");
  Access::desc(x).node->cell->store(std::move(v));
}
void batch_set_value(std::initializer_list<ValuePair> tuples) {
  KASSETTE_ROUTE("batch_set_value", backend::batch_set_value(tuples), Pairs{tuples, {}, {}});
  std::vector<Value> values;
  for (const ValuePair& p : tuples) values.push_back(value_of_pair(p.variable, p.value, values.size()));
  std::size_t i = 0;
  for (const ValuePair& p : tuples) Access::desc(p.variable).node->cell->store(std::move(values[i++]));
}
void batch_set_value(const Tensors& variables, const Tensors& list) {
  if (variables.size() != list.size())
    fail<ValueError>({"batch_set_value"}, variables.size(), " variables, ", list.size(), " values", kExpected,
                     "there must be one for each");
  KASSETTE_ROUTE("batch_set_value", backend::batch_set_value(variables, list), Pairs{{}, variables, list});
  std::vector<Value> values;
  for (std::int64_t i = 0; i < list.size(); ++i) values.push_back(value_of_pair(variables[i], list[i], values.size()));
  for (std::int64_t i = 0; i < list.size(); ++i) Access::desc(variables[i]).node->cell->store(std::move(values[i]));
}

}  // namespace backend
}  // namespace kassette
