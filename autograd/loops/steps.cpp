// autograd/loops/steps.cpp - the eager loop, and the checks of what a step returns.
#include "autograd/loops/steps.h"

#include <vector>

#include "autograd/loops/trace.h"
#include "autograd/loops/unstack.h"
#include "core/convert.h"
#include "core/sparse.h"
#include "core/stack.h"
#include "ops/engine/expr.h"
#include "ops/engine/observe.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"

namespace kassette::autograd {
namespace {

std::int64_t samples_of(const LoopForm& form, const TensorSpec& x) {
  return x.rank < 2 ? kUnknown : x.dims[1 - form.axis];
}

void check_same(const char* what, const std::string& which, const TensorSpec& before, const TensorSpec& after) {
  if (!before.compatible(after))
    fail<ValueError>({what}, "the step returned ", which, " of shape ", after, ", it was ", before, kExpected,
                     "the shape must stay the same");
  if (before.dtype != after.dtype)
    fail<TypeError>({what}, "the step returned ", which, " as ", after.dtype, ", it was ", before.dtype);
}

}  // namespace

Tensor stack_for(const char* what, const Tensors& list, int axis) {
  return attribute_errors(what, [&] { return stack(list, axis); });
}

void check_state(const char* what, const TensorSpec& before, const TensorSpec& after, std::int64_t i) {
  check_same(what, text("state ", i), before, after);
}

void check_rows(const char* what, const std::string& which, const TensorSpec& s, std::int64_t samples) {
  if (s.rank != 0 && !differ(s.dim(0), samples)) return;
  fail<ValueError>({what}, which, " has shape ", s, kExpected, "it must be (",
                   samples < 0 ? std::string("samples") : text(samples), ", ...), a row for each sample");
}

std::int64_t loop_length(const LoopForm& form, const Tensors& xs) {
  std::int64_t n = form.length;
  for (const Tensor& x : xs) {
    const TensorDesc& b = Access::desc(x);
    if (b.rank < 0) continue;
    if (b.rank <= form.axis)
      fail<ValueError>({form.what, "elems"}, "holds a scalar", kExpected, "it needs an axis to iterate over");
    std::int64_t d = b.dims[form.axis];
    if (differ(n, d)) {
      if (n == form.length) fail<ValueError>({form.what, "input_length"}, "is ", n, ", the inputs have ", d, " steps");
      fail<ValueError>({form.what, form.batched ? "inputs" : "elems"}, "have ", n, " and ", d,
                       " elements to iterate over", kExpected, "all must have the same number");
    }
    if (d >= 0) n = d;
    if (form.batched && differ(samples_of(form, b), samples_of(form, Access::desc(xs.begin()[0]))))
      fail<ValueError>({form.what}, "inputs of shapes ", static_cast<const TensorSpec&>(Access::desc(xs.begin()[0])),
                       " and ", static_cast<const TensorSpec&>(b), kExpected, "their first two sizes must be equal");
  }
  return n;
}

void check_step(const LoopForm& form, const Tensors& out, const Tensors& states, const Tensor* before,
                const TensorSpec& x, bool masked) {
  std::int64_t n = out.size() - form.n_outputs;
  if (n != states.size())
    fail<ValueError>({form.what}, "the step returned ", n, n == 1 ? " state" : " states", ", it was given ",
                     states.size(), kExpected, "it must return as many");
  for (std::int64_t i = 0; i < out.size(); ++i) {
    const Tensor& t = out.begin()[i];
    if (!t.defined()) fail<ValueError>({form.what}, "the function returned ", kEmptyTensor);
    refuse_sparse({form.what}, t);
    const TensorDesc& b = Access::desc(t);
    bool is_state = i >= form.n_outputs;
    const Tensor* was = is_state ? states.begin() + (i - form.n_outputs) : before ? before + i : nullptr;
    // The text is made only for an error: this runs at every step.
    auto which = [&] { return is_state ? text("state ", i - form.n_outputs) : std::string("an output"); };
    if (was && !(Access::desc(*was).compatible(b) && Access::desc(*was).dtype == b.dtype))
      check_same(form.what, which(), Access::desc(*was), b);
    if (form.batched && (!is_state || masked) && !(b.rank > 0 && b.dims[0] == samples_of(form, x)))
      check_rows(form.what, which(), b, samples_of(form, x));
  }
}

void assert_step_shapes(const LoopForm& form, Tensors& out, const Tensors& states, const Tensor& x, bool masked) {
  for (std::int64_t i = 0; i < out.size(); ++i) {
    const std::int64_t state = i - form.n_outputs;
    Tensor& o = out.begin()[i];
    if (state >= 0) o = assert_shape_of(ShapeCheck::state, o, states.begin()[state]);
    if (form.batched && (state < 0 || masked))
      o = assert_shape_of(state < 0 ? ShapeCheck::rows : ShapeCheck::state_rows, o, x);
  }
}

namespace {

Tensor zeros_of_shape(const TensorSpec& spec, Device device) {
  return filled_tensor(scalar_tensor(Scalar(0), spec.dtype, "zeros"), spec, device, "zeros");
}

/// The results of a loop without steps. One step is called, on zeros, to learn the shapes of its outputs; the last
/// outputs are zeros, as are those before the first step.
Tensors results_of_none(const LoopForm& form, const Tensors& xs, const Tensors& states,
                        const Callable<Tensors(const Tensors&, const Tensors&, std::int64_t)>& step, bool masked) {
  Tensors found, out, zeros;
  for (const Tensor& x : xs)
    zeros.push_back(zeros_of_shape(element_spec(Access::desc(x), form.axis), Access::desc(x).device));
  if (form.n_outputs > 0) {
    out = step(zeros, states, 0);
    check_step(form, out, states, nullptr, Access::desc(xs.begin()[0]), masked);
  }
  for (int i = 0; i < form.n_outputs; ++i) {
    const TensorDesc& b = Access::desc(out[i]);
    found.push_back(zeros_of_shape(stacked_spec(form.what, b, 0, form.axis), b.device));
  }
  for (int i = 0; form.last && i < form.n_outputs; ++i)
    found.push_back(zeros_of_shape(Access::desc(out[i]), Access::desc(out[i]).device));
  append(found, states);
  return found;
}

}  // namespace

Tensors run_steps(const LoopForm& form, const Tensors& xs, Tensors states,
                  const Callable<Tensors(const Tensors&, const Tensors&, std::int64_t)>& step, const MaskStep* mask) {
  check_stack(form.what);
  const ObservedScope scope(form.what);
  const std::int64_t size = loop_length(form, xs), n = form.n_outputs;
  if (size == 0) return results_of_none(form, xs, states, step, /*masked=*/mask);
  std::vector<LazyUnstack> elements;  // per input
  for (const Tensor& x : xs) elements.emplace_back(form.what, x, size, form.axis);
  std::vector<Tensors> ys(n);  // per output, per step
  for (Tensors& y : ys) y.reserve(size);
  Tensors now, last;  // the elements, and the outputs of the step before
  for (std::int64_t t = 0; t < size; ++t) {
    now.clear();
    for (LazyUnstack& e : elements) now.push_back(e[form.reverse ? size - 1 - t : t]);
    Tensors out = [&] {
      EagerStep in(t, size);
      return step(now, states, t);
    }();
    const Tensor* before = t > 0 ? last.begin() : nullptr;
    check_step(form, out, states, before, Access::desc(xs.begin()[0]), /*masked=*/mask);
    if (t == 0) assert_step_shapes(form, out, states, now.begin()[0], /*masked=*/mask);
    if (mask) (*mask)(now, states, before, out);
    last.clear();
    for (std::int64_t i = 0; i < n; ++i) {
      ys[i].push_back(out.begin()[i]);
      last.push_back(std::move(out.begin()[i]));
    }
    for (std::int64_t i = 0; i < states.size(); ++i) states.begin()[i] = std::move(out.begin()[n + i]);
  }
  Tensors found;
  for (const Tensors& y : ys) found.push_back(stack_for(form.what, y, form.axis));
  if (form.last) append(found, last);
  append(found, states);
  return found;
}

}  // namespace kassette::autograd
