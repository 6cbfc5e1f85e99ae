// nn_backend/control.cpp - control flow that can be differentiated.
#include <kassette/backend/control.h>
#include <kassette/backend/graph.h>

#include "autograd/loops/branches.h"
#include "autograd/loops/checkpoint.h"
#include "autograd/loops/loop_request.h"
#include "core/convert.h"
#include "core/sparse.h"
#include "core/stack.h"
#include "core/text.h"
#include "ops/engine/dispatch.h"
#include "ops/engine/expr.h"
#include "ops/shape/like.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"

namespace kassette {
using namespace ops;
namespace backend {
namespace {

/// A branch as a tensor: its value, or the result of its callable. `at`: the function of which it is an argument, and
/// the argument's name there.
Tensor force(const Branch& b, DType dtype, const At& at) {
  const bool calls = Access::lazy(b) && !Access::returns_number(b);
  Tensor t = calls ? Access::call(b) : as_tensor(Access::lazy(b) ? Access::number(b) : Access::value(b), dtype, at);
  if (!t.defined()) fail_empty(at);
  return t;
}

/// The dtype that a number in the other branch takes.
DType dtype_of_branches(const Branch& a, const Branch& b) {
  for (const Branch* x : {&a, &b})
    if (!Access::lazy(*x) && is_tensor_operand(Access::value(*x)) && tensor_of(Access::value(*x)).defined())
      return Access::desc(tensor_of(Access::value(*x))).dtype;
  return DType();
}

/// The branch that is taken, `value`; a number is broadcast to the shape of the other branch, if that is a tensor.
Tensor broadcast_branch(const Tensor& value, const Branch& taken, const Branch& other, const char* what);

/// The two branches of a function, and their names there.
struct Branches {
  const char* what;
  const Branch &yes, &no;
  const char *yes_name, *no_name;
  Tensor force_yes(DType dtype) const { return force(yes, dtype, {what, yes_name}); }
  Tensor force_no(DType dtype) const { return force(no, dtype, {what, no_name}); }
  Tensor taken_yes(DType dtype) const { return broadcast_branch(force_yes(dtype), yes, no, what); }
  Tensor taken_no(DType dtype) const { return broadcast_branch(force_no(dtype), no, yes, what); }
};

Tensor elementwise_switch(const Tensor& condition, const Branches& b) {
  Tensor yes = b.force_yes(dtype_of_branches(b.yes, b.no)), no = b.force_no(yes.dtype());
  refuse_sparse({"switch_", b.yes_name}, yes);
  refuse_sparse({"switch_", b.no_name}, no);
  int rank = condition.ndim(), target = yes.ndim();
  if (rank > target && target >= 0)
    fail<ValueError>({"switch_", "condition"}, "has rank ", rank, ", the expressions ", target, kExpected,
                     "it must be at most theirs");
  if (rank < 0 || target < 0)
    fail<ValueError>({"switch_"}, "the rank of the ", rank < 0 ? "condition" : "expressions", " is unknown", kExpected,
                     "a condition that is not a scalar is aligned with their leading axes, so it must be known");
  Tensor c = condition;
  for (int i = rank; i < target; ++i) c = expand_dims(c, -1);  // aligned with the leading axes
  return attribute_errors("switch_", [&] { return where(c, yes, no); });
}

bool is_tensor(const Branch& b) {
  return !Access::lazy(b) && is_tensor_operand(Access::value(b)) && tensor_of(Access::value(b)).defined();
}

/// Throws unless the shapes and dtypes of two tensor branches agree, whichever is taken. A number agrees with any
/// tensor.
void check_branches(const Branch& a, const Branch& b, const char* what) {
  if (is_tensor(a) && is_tensor(b))
    autograd::common_spec(what, Access::desc(tensor_of(Access::value(a))), Access::desc(tensor_of(Access::value(b))));
}

bool on_tape(const Branch& b) { return is_tensor(b) && Access::desc(tensor_of(Access::value(b))).node; }

/// Selects between two computed branches, so that a replay can select again.
Tensor choose_at_replay(const Tensor& condition, const Branches& of) {
  DType dtype = dtype_of_branches(of.yes, of.no);
  return attribute_errors(of.what, [&] {
    Tensor a = of.force_yes(dtype), b = of.force_no(dtype);
    refuse_sparse({of.what, of.yes_name}, a);
    refuse_sparse({of.what, of.no_name}, b);
    return where(condition, a, is_tensor(of.yes) && is_tensor(of.no) ? assert_shape_of(ShapeCheck::branches, b, a) : b);
  });
}

Tensor broadcast_branch(const Tensor& value, const Branch& taken, const Branch& other, const char* what) {
  if ((Access::lazy(taken) && !Access::returns_number(taken)) || is_tensor(taken) || !is_tensor(other)) return value;
  return attribute_errors(what, [&] { return broadcast_like(value, tensor_of(Access::value(other))); });
}

Tensor choose(const Tensor& condition, const Branches& of) {
  check_stack(of.what);
  const TensorDesc& c = Access::desc(condition);
  if (c.rank != 0) return elementwise_switch(condition, of);
  DType dtype = dtype_of_branches(of.yes, of.no);
  if (!condition.symbolic() && !(context().symbolic && c.node)) {
    bool taken;
    attribute_errors(of.what, [&] { condition.item(&taken, bool_); });
    return taken ? of.taken_yes(dtype) : of.taken_no(dtype);
  }
  if (!Access::lazy(of.yes) && !Access::lazy(of.no)) return choose_at_replay(condition, of);
  return autograd::branch(
      of.what, condition, [&] { return of.taken_yes(dtype); }, [&] { return of.taken_no(dtype); });
}

Tensor fold(const Callable<Tensor(const Tensor&, const Tensor&)>& fn, const Operand& elements,
            const Operand& initializer, bool reverse, const char* what) {
  Arg elems(elements, DType(), {what, "elems"});
  if (!elems.tensor().defined()) fail_empty({what, "elems"});
  refuse_sparse({what, "elems"}, elems);
  if (elems.desc().rank == 0)
    fail<ValueError>({what, "elems"}, "is a scalar", kExpected, "it needs an axis to iterate over");
  autograd::LoopRequest request;
  request.what = what;
  request.reverse = reverse;
  if (initializer.is_none()) {
    if (elems.desc().rank > 0 && elems.desc().dims[0] == 0)
      fail<ValueError>({what, "elems"}, "has no elements, and there is no initializer");
    attribute_errors(what, [&] {
      request.states.push_back(reverse ? elems.tensor()[-1] : elems.tensor()[0]);
      request.xs.push_back(reverse ? elems.tensor()[kassette::slice(None, -1)] : elems.tensor()[kassette::slice(1)]);
    });
  } else {
    request.states.push_back(as_tensor(initializer, elems.desc().dtype, {what, "initializer"}));
    if (!request.states[0].defined()) fail_empty({what, "initializer"});
    refuse_sparse({what, "initializer"}, request.states[0]);
    request.xs.push_back(elems);
  }
  return autograd::run_loop(request,
                            [&](const Tensors& xs, const Tensors& states) { return Tensors(fn(states[0], xs[0])); })[0];
}

}  // namespace

Tensor switch_(const Operand& condition, const Branch& then_expression, const Branch& else_expression) {
  KASSETTE_DISPATCH(switch_, condition, then_expression, else_expression);
  Arg given(condition, bool_, {"switch_", "condition"});
  if (!given.tensor().defined()) fail_empty({"switch_", "condition"});
  refuse_sparse({"switch_", "condition"}, given);
  if (given.desc().rank == 0) check_branches(then_expression, else_expression, "switch_");
  bool tensors = !Access::lazy(then_expression) && !Access::lazy(else_expression);
  const Branches of{"switch_", then_expression, else_expression, "then_expression", "else_expression"};
  const Tensor truth = attribute_errors("switch_", [&] { return cast(given, bool_); });
  if (given.desc().rank == 0 && tensors &&
      (given.desc().node || on_tape(then_expression) || on_tape(else_expression))) {
    // As on placeholders: the gradient of the branch that is not taken is zeros, and a function over variables
    // evaluates the condition again at each call.
    return choose_at_replay(truth, of);
  }
  return choose(truth, of);
}

namespace {

/// `of.yes` in training.
Tensor by_phase(const Branches& of, const Operand& training) {
  const char* what = of.what;
  Tensor phase = training.is_none() ? learning_phase() : as_tensor(training, int32, {what, "training"});
  if (!phase.defined()) fail_empty({what, "training"});
  refuse_sparse({what, "training"}, phase);
  if (phase.ndim() != 0)
    fail<ValueError>({what, "training"}, "has shape ", phase.shape(), kExpected, "it must be a scalar");
  DType dtype = dtype_of_branches(of.yes, of.no);
  bool unset = training.is_none() && phase.symbolic();
  if (!unset && !is_tensor_operand(training)) {  // the phase is known on the host: the other branch is not evaluated
    bool taken;
    attribute_errors(what, [&] { cast(phase, bool_).item(&taken, bool_); });
    return taken ? of.force_yes(dtype) : of.force_no(dtype);
  }
  check_branches(of.yes, of.no, what);
  if (unset && !context().symbolic) {
    // Eager: the unset phase is test. If its branch turns out symbolic, both are traced and the phase may be fed.
    Tensor test = of.force_no(dtype);
    bool symbolic = test.symbolic() || (is_tensor(of.yes) && tensor_of(Access::value(of.yes)).symbolic());
    if (!symbolic) return broadcast_branch(test, of.no, of.yes, what);
  }
  return choose(attribute_errors(what, [&] { return cast(phase, bool_); }), of);
}

}  // namespace

Tensor in_train_phase(const Branch& x, const Branch& alt, const Operand& training) {
  KASSETTE_DISPATCH(in_train_phase, x, alt, training);
  return by_phase({"in_train_phase", x, alt, "x", "alt"}, training);
}
Tensor in_test_phase(const Branch& x, const Branch& alt, const Operand& training) {
  KASSETTE_DISPATCH(in_test_phase, x, alt, training);
  return by_phase({"in_test_phase", alt, x, "alt", "x"}, training);
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

CheckpointScope::CheckpointScope(std::int64_t steps) : old_(autograd::checkpoint_steps()) {
  if (steps < 0)
    fail<ValueError>({"checkpoint_steps", "n"}, "is ", steps, kExpected,
                     "it must be positive, or 0 for the square root of the length");
  autograd::set_checkpoint_steps(steps);
}
CheckpointScope::~CheckpointScope() { autograd::set_checkpoint_steps(old_); }

}  // namespace backend
}  // namespace kassette
