// nn_backend/control.cpp - control flow that can be differentiated.
#include <kassette/backend/control.h>
#include <kassette/backend/graph.h>

#include "autograd/checkpoint.h"
#include "autograd/recurrence.h"
#include "core/convert.h"
#include "core/sparse.h"
#include "core/text.h"
#include "ops/dispatch.h"
#include "ops/expr.h"
#include "ops/like.h"
#include "ops/error_attribution.h"
#include "ops/operand.h"

namespace kassette {
namespace backend {
namespace {

/// A branch as a tensor: its value, or the result of its callable.
Tensor force(const Branch& b, DType dtype, const char* what) {
  const bool calls = Access::lazy(b) && !Access::returns_number(b);
  Tensor t = calls ? Access::call(b) : as_tensor(Access::lazy(b) ? Access::number(b) : Access::value(b), dtype, what);
  if (!t.defined()) fail<ValueError>({what}, "a branch is an empty Tensor (an uninitialised variable?)");
  return t;
}

/// The dtype that a number in the other branch takes.
DType dtype_of_branches(const Branch& a, const Branch& b) {
  for (const Branch* x : {&a, &b})
    if (!Access::lazy(*x) && is_tensor_operand(Access::value(*x)) && tensor_of(Access::value(*x)).defined())
      return Access::body(tensor_of(Access::value(*x))).dtype;
  return DType();
}

Tensor elementwise_switch(const Tensor& condition, const Branch& then_expression, const Branch& else_expression) {
  DType dtype = dtype_of_branches(then_expression, else_expression);
  Tensor yes = force(then_expression, dtype, "switch_"), no = force(else_expression, yes.dtype(), "switch_");
  int rank = condition.ndim(), target = yes.ndim();
  if (rank > target && target >= 0)
    fail<ValueError>({"switch_"}, "the condition has rank ", rank, ", the expressions ", target,
                     "; a condition's rank is at most theirs");
  if (rank < 0 || target < 0)
    fail<ValueError>(
        {"switch_"}, "the rank of the ", rank < 0 ? "condition" : "expressions",
        " is unknown; a condition that is not a scalar is aligned with their leading axes, so it has to be known");
  Tensor c = condition;
  for (int i = rank; i < target; ++i) c = expand_dims(c, -1);  // aligned with the leading axes
  return attribute_errors("switch_", [&] { return where(c, yes, no); });
}

bool is_tensor(const Branch& b) {
  return !Access::lazy(b) && is_tensor_operand(Access::value(b)) && tensor_of(Access::value(b)).defined();
}

/// Two tensors are held against each other whichever of them is taken; a number fits any.
void check_branches(const Branch& a, const Branch& b, const char* what) {
  if (is_tensor(a) && is_tensor(b))
    common_spec(what, Access::body(tensor_of(Access::value(a))), Access::body(tensor_of(Access::value(b))));
}

bool on_tape(const Branch& b) { return is_tensor(b) && Access::body(tensor_of(Access::value(b))).node; }

/// Of two values, both of which are there: which it is may be asked anew.
Tensor choose_at_replay(const Tensor& condition, const Branch& yes, const Branch& no, const char* what) {
  DType dtype = dtype_of_branches(yes, no);
  return attribute_errors(what, [&] {
    Tensor a = force(yes, dtype, what), b = force(no, dtype, what);
    return where(condition, a, is_tensor(yes) && is_tensor(no) ? assert_shape_of(ShapeCheck::branches, b, a) : b);
  });
}

/// The branch that is taken, `value`; a number takes the shape of the tensor that it stands beside.
Tensor beside(const Tensor& value, const Branch& taken, const Branch& other, const char* what) {
  if ((Access::lazy(taken) && !Access::returns_number(taken)) || is_tensor(taken) || !is_tensor(other)) return value;
  return attribute_errors(what, [&] { return broadcast_like(value, tensor_of(Access::value(other))); });
}

Tensor choose(const Tensor& condition, const Branch& yes, const Branch& no, const char* what) {
  const Body& c = Access::body(condition);
  if (c.rank != 0) return elementwise_switch(condition, yes, no);
  DType dtype = dtype_of_branches(yes, no);
  if (!condition.symbolic() && !(context().symbolic && c.node)) {
    bool taken;
    attribute_errors(what, [&] { condition.item(&taken, bool_); });
    return beside(force(taken ? yes : no, dtype, what), taken ? yes : no, taken ? no : yes, what);
  }
  if (!Access::lazy(yes) && !Access::lazy(no)) return choose_at_replay(condition, yes, no, what);
  return branch(
      what, condition, [&] { return beside(force(yes, dtype, what), yes, no, what); },
      [&] { return beside(force(no, dtype, what), no, yes, what); });
}

Tensor fold(const Callable<Tensor(const Tensor&, const Tensor&)>& fn, const Operand& elements,
            const Operand& initializer, bool reverse, const char* what) {
  Arg elems(elements, DType(), what);
  if (!elems.tensor().defined()) fail<ValueError>({what}, "an empty Tensor (an uninitialised variable?)");
  refuse_sparse(what, elems);
  if (elems.body().rank == 0) fail<ValueError>({what}, "elems is a scalar; it needs an axis to iterate over");
  Recurrence request;
  request.what = what;
  request.reverse = reverse;
  if (initializer.is_none()) {
    if (elems.body().rank > 0 && elems.body().dims[0] == 0) fail<ValueError>({what}, "no elements and no initializer");
    attribute_errors(what, [&] {
      request.states.push_back(reverse ? elems.tensor()[-1] : elems.tensor()[0]);
      request.xs.push_back(reverse ? elems.tensor()[kassette::slice(None, -1)] : elems.tensor()[kassette::slice(1)]);
    });
  } else {
    request.states.push_back(as_tensor(initializer, elems.body().dtype, what));
    request.xs.push_back(elems);
  }
  return recur(request, [&](const Tensors& xs, const Tensors& states) { return Tensors(fn(states[0], xs[0])); })[0];
}

}  // namespace

Tensor switch_(const Operand& condition, const Branch& then_expression, const Branch& else_expression) {
  KASSETTE_DISPATCH(switch_, condition, then_expression, else_expression);
  Arg given(condition, bool_, "switch_");
  if (!given.tensor().defined())
    fail<ValueError>({"switch_"}, "the condition is an empty Tensor (an uninitialised variable?)");
  if (given.body().rank == 0) check_branches(then_expression, else_expression, "switch_");
  bool tensors = !Access::lazy(then_expression) && !Access::lazy(else_expression);
  const Tensor truth = attribute_errors("switch_", [&] { return cast(given, bool_); });
  if (given.body().rank == 0 && tensors &&
      (given.body().node || on_tape(then_expression) || on_tape(else_expression))) {
    // As on placeholders: the gradient of the one that is not taken is zeros (section 3.4), and a function over variables asks anew.
    return choose_at_replay(truth, then_expression, else_expression, "switch_");
  }
  return choose(truth, then_expression, else_expression, "switch_");
}

namespace {

Tensor by_phase(const Branch& x, const Branch& alt, const Operand& training, const char* what) {
  Tensor phase = training.is_none() ? learning_phase() : as_tensor(training, int32, what);
  if (!phase.defined()) fail<ValueError>({what}, "training is an empty Tensor (an uninitialised variable?)");
  if (phase.ndim() != 0) fail<ValueError>({what}, "training has shape ", phase.shape(), ", expected a scalar");
  DType dtype = dtype_of_branches(x, alt);
  bool unset = training.is_none() && phase.symbolic();
  if (!unset && !is_tensor_operand(training)) {  // the phase is known on the host: the other branch is not evaluated
    bool taken;
    attribute_errors(what, [&] { cast(phase, bool_).item(&taken, bool_); });
    return force(taken ? x : alt, dtype, what);
  }
  check_branches(x, alt, what);
  if (unset && !context().symbolic) {
    // Eager: the unset phase is test. If alt turns out symbolic, both branches are traced and the phase may be fed.
    Tensor test = force(alt, dtype, what);
    bool symbolic = test.symbolic() || (is_tensor(x) && tensor_of(Access::value(x)).symbolic());
    if (!symbolic) return beside(test, alt, x, what);
  }
  return choose(attribute_errors(what, [&] { return cast(phase, bool_); }), x, alt, what);
}

}  // namespace

Tensor in_train_phase(const Branch& x, const Branch& alt, const Operand& training) {
  KASSETTE_DISPATCH(in_train_phase, x, alt, training);
  return by_phase(x, alt, training, "in_train_phase");
}
Tensor in_test_phase(const Branch& x, const Branch& alt, const Operand& training) {
  KASSETTE_DISPATCH(in_test_phase, x, alt, training);
  return by_phase(alt, x, training, "in_test_phase");
}

Tensor foldl(Callable<Tensor(const Tensor&, const Tensor&)> fn, const Operand& elems, const Operand& initializer,
             Name name) {
  KASSETTE_DISPATCH(foldl, fn, elems, initializer, name);
  return fold(fn, elems, initializer, false, "foldl");
}
Tensor foldr(Callable<Tensor(const Tensor&, const Tensor&)> fn, const Operand& elems, const Operand& initializer,
             Name name) {
  KASSETTE_DISPATCH(foldr, fn, elems, initializer, name);
  return fold(fn, elems, initializer, true, "foldr");
}

CheckpointScope::CheckpointScope(std::int64_t steps) : old_(kassette::checkpoint_steps()) {
  if (steps < 0)
    fail<ValueError>({"checkpoint_steps"}, steps,
                     " steps; it must be positive, or 0 for the square root of the length");
  set_checkpoint_steps(steps);
}
CheckpointScope::~CheckpointScope() { set_checkpoint_steps(old_); }

}  // namespace backend
}  // namespace kassette
