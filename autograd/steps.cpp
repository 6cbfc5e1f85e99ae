// autograd/steps.cpp - what every loop does around its step.
#include "autograd/steps.h"

#include "core/convert.h"
#include "core/sparse.h"
#include "core/rank.h"
#include "ops/expr.h"
#include "ops/named.h"
#include "ops/operand.h"

namespace kassette {
namespace {

bool fits(std::int64_t a, std::int64_t b) { return a < 0 || b < 0 || a == b; }

std::int64_t samples_of(const LoopForm& form, const Spec& x) { return x.rank < 2 ? kUnknown : x.dims[1 - form.axis]; }

void check_same(const char* what, const std::string& which, const Spec& before, const Spec& after) {
  if (!before.compatible(after))
    fail<ValueError>(what, ": the step returned ", which, " of shape ", after, ", it was ", before, "; the shape must stay the same");
  if (before.dtype != after.dtype)
    fail<TypeError>(what, ": the step returned ", which, " as ", after.dtype, ", it was ", before.dtype);
}

}  // namespace

Tensors unstack_for(const char* what, const Tensor& x, std::int64_t n, int axis) {
  return in_name_of(what, [&] { return unstack(x, static_cast<int>(n), axis); });
}
Tensor stack_for(const char* what, const Tensors& list, int axis) {
  return in_name_of(what, [&] { return stack(list, axis); });
}

void check_state(const char* what, const Spec& before, const Spec& after, std::int64_t i) {
  check_same(what, text("state ", i), before, after);
}

void check_rows(const char* what, const std::string& which, const Spec& s, std::int64_t samples) {
  if (s.rank < 0 || (s.rank > 0 && (samples < 0 || s.dims[0] < 0 || s.dims[0] == samples))) return;
  fail<ValueError>(what, ": ", which, " has shape ", s, ", expected (", samples < 0 ? std::string("samples") : text(samples), ", ...), a row for each sample");
}

std::int64_t loop_length(const LoopForm& form, const Tensors& xs) {
  std::int64_t n = form.length;
  for (const Tensor& x : xs) {
    const Body& b = Access::body(x);
    if (b.rank < 0) continue;
    if (b.rank <= form.axis) fail<ValueError>(form.what, ": elements are a scalar; they need an axis to iterate over");
    std::int64_t d = b.dims[form.axis];
    if (!fits(n, d)) {
      if (n == form.length) fail<ValueError>(form.what, ": input_length is ", n, ", the inputs have ", d, " steps");
      fail<ValueError>(form.what, ": elements of length ", n, " and ", d);
    }
    if (d >= 0) n = d;
    if (form.batched && !fits(samples_of(form, b), samples_of(form, Access::body(xs.begin()[0]))))
      fail<ValueError>(form.what, ": inputs of shapes ", static_cast<const Spec&>(Access::body(xs.begin()[0])), " and ", static_cast<const Spec&>(b),
                       "; their first two sizes must be equal");
  }
  return n;
}

void check_step(const LoopForm& form, const Tensors& out, const Tensors& states, const Tensor* before, const Spec& x, bool masked) {
  std::int64_t n = out.size() - form.n_outputs;
  if (n != states.size())
    fail<ValueError>(form.what, ": the step returned ", n, n == 1 ? " state" : " states", ", it was given ", states.size());
  for (std::int64_t i = 0; i < out.size(); ++i) {
    const Tensor& t = out.begin()[i];
    if (!t.defined()) fail<ValueError>(form.what, ": the function returned an empty Tensor");
    refuse_sparse(form.what, t);
    const Body& b = Access::body(t);
    bool is_state = i >= form.n_outputs;
    const Tensor* was = is_state ? states.begin() + (i - form.n_outputs) : before ? before + i : nullptr;
    // The words are put together only where they are needed: this runs at each step.
    auto which = [&] { return is_state ? text("state ", i - form.n_outputs) : std::string("an output"); };
    if (was && !(Access::body(*was).compatible(b) && Access::body(*was).dtype == b.dtype)) check_same(form.what, which(), Access::body(*was), b);
    if (form.batched && (!is_state || masked) && !(b.rank > 0 && b.dims[0] == samples_of(form, x))) check_rows(form.what, which(), b, samples_of(form, x));
  }
}

Steps::Steps(const LoopForm& form, const Tensors& xs, Tensor mask, Tensors states)
    : form_(form), xs_(xs), mask_(std::move(mask)), states_(std::move(states)), size_(loop_length(form, xs)), ys_(static_cast<std::size_t>(form.n_outputs)) {
  if (mask_.defined()) mask_ = fitting(mask_fit(form), mask_, xs.begin()[0]);
  for (const Tensor& x : xs) elements_.emplace_back(form.what, x, size_, form.axis);
  for (Tensors& y : ys_) y.reserve(size_);
}

const Tensor& Steps::mask_at(std::int64_t t, int rank) {
  if (rank < 0) fail<ValueError>(form_.what, ": the rank of what the step returned is unknown, and a mask is aligned with its leading axes");
  Tensors& steps = masks_[rank];
  if (steps.empty()) {
    Tensor m = mask_;
    for (int i = 1; i < rank; ++i) m = expand_dims(m, -1);
    steps = unstack_for(form_.what, m, size_, form_.axis);
  }
  return steps.begin()[place(t)];
}

/// Where the mask says so `fresh`, else `before`; of the first output nothing is before, or where zeros are wanted.
Tensor Steps::masked(const Tensor& fresh, const Tensor& before, std::int64_t t) {
  const Tensor& keep = mask_at(t, Access::body(fresh).rank);
  return before.defined() ? where(keep, fresh, before) : where(keep, fresh, 0);
}

void Steps::take(Tensors out, const Tensors& xs, std::int64_t t) {
  check_step(form_, out, states_, t > 0 ? last_.begin() : nullptr, Access::body(xs_.begin()[0]), mask_.defined());
  auto n = static_cast<std::int64_t>(ys_.size());
  // What a placeholder does not know yet is checked when it is known: of the first step alone, for the others are as it is.
  for (std::int64_t i = 0; t == 0 && i < out.size(); ++i) {
    Tensor& o = out.begin()[i];
    if (i >= n) o = fitting(Fit::state, o, states_.begin()[i - n]);
    if (form_.batched && (i < n || mask_.defined())) o = fitting(i < n ? Fit::rows : Fit::state_rows, o, xs.begin()[0]);
  }
  if (mask_.defined())
    for (std::int64_t i = 0; i < out.size(); ++i) {
      Tensor& o = out.begin()[i];
      if (i >= n) o = masked(o, states_.begin()[i - n], t);
      else o = masked(o, form_.zero_masked || t == 0 ? Tensor() : last_.begin()[i], t);
    }
  last_.clear();
  for (std::int64_t i = 0; i < n; ++i) {
    ys_[static_cast<std::size_t>(i)].push_back(out.begin()[i]);
    last_.push_back(std::move(out.begin()[i]));
  }
  for (std::int64_t i = 0; i < states_.size(); ++i) states_.begin()[i] = std::move(out.begin()[n + i]);
}

Tensors Steps::results() {
  Tensors found;
  for (const Tensors& y : ys_) found.push_back(stack_for(form_.what, y, form_.axis));
  if (form_.last)
    for (const Tensor& y : last_) found.push_back(y);
  for (const Tensor& s : states_) found.push_back(s);
  return found;
}

namespace {

Tensor zeros_of_shape(const Spec& spec, Device device) {
  return filled_tensor(scalar_tensor(Scalar(0), spec.dtype, "zeros"), spec, "zeros").to(device);
}

}  // namespace

Tensors Steps::zero_slices() const {
  Tensors zeros;
  for (const Tensor& x : xs_) {
    const Body& b = Access::body(x);
    Spec s;
    s.dtype = b.dtype;
    for (int k = 0; k < b.rank; ++k)
      if (k != form_.axis) s.dims[s.rank++] = b.dims[k];
    zeros.push_back(zeros_of_shape(s, b.device));
  }
  return zeros;
}

/// Outputs without steps; the last one is what stands before the first: zeros.
Tensors Steps::results_of_none(const Tensors& out) {
  if (form_.n_outputs > 0) check_step(form_, out, states_, nullptr, Access::body(xs_.begin()[0]), mask_.defined());
  Tensors found;
  for (int i = 0; i < form_.n_outputs; ++i) {
    const Body& b = Access::body(out[i]);
    Spec s;
    s.dtype = b.dtype;
    s.rank = checked_rank(form_.what, b.rank + 1, "outputs of shape ", static_cast<const Spec&>(b), ", stacked");
    for (int k = 0; k < s.rank; ++k) s.dims[k] = k < form_.axis ? b.dims[k] : k == form_.axis ? 0 : b.dims[k - 1];
    found.push_back(zeros_of_shape(s, b.device));
  }
  for (int i = 0; form_.last && i < form_.n_outputs; ++i) found.push_back(zeros_of_shape(Access::body(out[i]), Access::body(out[i]).device));
  for (const Tensor& s : states_) found.push_back(s);
  return found;
}

}  // namespace kassette
