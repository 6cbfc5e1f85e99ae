// autograd/loops/loop_request.cpp - loops along a time axis, with masks: run eagerly, or recorded as one node.
#include "autograd/loops/loop_request.h"

#include <kassette/interrupt.h>

#include "autograd/loops/checkpoint.h"
#include "autograd/loops/loops.h"
#include "autograd/loops/trace.h"
#include "autograd/loops/steps.h"
#include "core/convert.h"
#include "core/rank.h"
#include "core/sparse.h"
#include "core/text.h"
#include "ops/engine/expr.h"
#include "ops/engine/operand.h"
#include "ops/random/random.h"

namespace kassette::autograd {
namespace {

/// Swaps axes 0 and 1 if time is axis 1: a node iterates over axis 0.
Tensor time_first(const LoopForm& form, const Tensor& x) {
  if (form.axis == 0) return x;
  const TensorDesc& b = Access::desc(x);
  if (b.rank < 0) fail_unknown_rank({form.what, "inputs"});
  std::vector<int> axes{1, 0};
  for (int i = 2; i < b.rank; ++i) axes.push_back(i);
  return permute(x, axes);
}

/// The mask as one more input of the loop: (samples, times, 1), or (times, samples, 1) if time is axis 0.
Tensor mask_elements(const LoopForm& form, const Tensor& mask, const Tensor& x) {
  return expand_dims(assert_shape_of(mask_shape_check(form), mask, x), -1);
}

/// `fresh` for samples where `keep`, (samples, 1), is true, else `before`.
Tensor masked(const LoopForm& form, const Tensor& keep, const Tensor& fresh, const Operand& before) {
  const int rank = Access::desc(fresh).rank;
  if (rank < 0)
    fail<ValueError>({form.what},
                     "the rank of what the step returned is unknown, and a mask is aligned with its leading axes");
  Tensor k = rank < 2 ? squeeze(keep, 1) : keep;
  for (int i = 2; i < rank; ++i) k = expand_dims(k, -1);
  return where(k, fresh, before);
}

/// Applies a mask to the results of a step: a masked sample keeps its states, and its outputs are those of the previous
/// step, or zeros if `before` is null.
void mask_step(const LoopForm& form, const Tensor& keep, const Tensors& states, const Tensor* before, Tensors& got) {
  const int n = form.n_outputs;
  for (int i = 0; i < n; ++i) got[i] = before ? masked(form, keep, got[i], before[i]) : masked(form, keep, got[i], 0);
  for (std::int64_t i = 0; i < states.size(); ++i) got[n + i] = masked(form, keep, got[n + i], states[i]);
}

/// Initial outputs for masked samples: zeros shaped like a step's outputs. The step is called only to learn that shape;
/// a plan does not compute it.
Tensors zeros_before(const LoopRequest& r, const StepOf& step, bool symbolic) {
  Scoped<bool> on(context().symbolic, symbolic);
  Tensors xs;
  for (const Tensor& x : r.xs) {
    bool is_bool = Access::desc(x).dtype.is_bool();
    xs.push_back(is_bool ? any_of(x, r.axis) : sum(x, r.axis));
  }
  Tensors out = step(xs, r.states), zeros;
  check_step(r, out, r.states, nullptr, Access::desc(r.xs[0]), /*masked=*/true);
  for (int i = 0; i < r.n_outputs; ++i) zeros.push_back(zeros_of(out[i]));
  return zeros;
}

/// The last output, if it equals a state: that state, or zeros if there was no step.
Tensor zeros_without_steps(const LoopRequest& r, const Tensor& state) {
  if (loop_length(r, r.xs) > 0) return state;
  return where(greater(shape_of(r.xs.begin()[0], int64)[r.axis], 0), state, 0);
}

/// The last row of a stack, or zeros if it has none. Used only for outputs that are not also a state (an LSTM's h is
/// one), because the cotangent of this slice is as long as the whole sequence.
Tensor last_of(const Tensor& stacked) {
  Tensor row = stacked[slice(-1)];
  return Access::desc(stacked).dtype.is_bool() ? any_of(row, 0) : sum(row, 0);
}

bool same_value(const Tensor& a, const Tensor& b) {
  const TensorDesc &x = Access::desc(a), &y = Access::desc(b);
  return &x == &y || (x.node && x.node == y.node && x.out == y.out);
}

/// True if the same sizes are known of a state's shape as of the rows of a stack, and they are equal.
bool as_much_known(const TensorSpec& stacked, const TensorSpec& state) {
  bool same = stacked.rank == state.rank + 1;
  for (int i = 0; same && i < state.rank; ++i) same = stacked.dims[i + 1] == state.dims[i];
  return same;
}

/// The loop as one node along axis 0: the mask becomes an element, and outputs that masked samples repeat become
/// states.
Tensors recorded(const LoopRequest& r, const StepOf& step, bool symbolic) {
  bool masks = r.mask.defined(), repeats = masks && !r.zero_masked;
  LoopRequest s{r};
  s.axis = 0;
  s.last = false;
  s.mask = Tensor();
  s.xs.clear();
  for (const Tensor& x : r.xs) s.xs.push_back(time_first(r, x));
  if (masks) s.xs.push_back(time_first(r, mask_elements(r, r.mask, r.xs[0])));
  if (repeats) append(s.states, zeros_before(r, step, symbolic));
  std::int64_t ny = r.n_outputs, ns = r.states.size();
  std::vector<std::int64_t> same(ny, -1);  // per output: the state that it equals, or -1
  Tensors out = loop_node(s, symbolic, [&](const Tensors& xs, const Tensors& states) {
    const Tensors parts = std::span(xs.begin(), r.xs.size()), now = std::span(states.begin(), ns);
    Tensors got = step(parts, now);
    check_step(r, got, now, nullptr, Access::desc(r.xs[0]), masks);
    for (std::int64_t i = 0; i < ny; ++i)
      for (std::int64_t k = 0; k < ns; ++k)
        if (same_value(got[i], got[ny + k])) same[i] = k;
    if (!masks) return got;
    for (std::int64_t i = 0; !repeats && r.batched && i < ny; ++i)
      got[i] = assert_shape_of(ShapeCheck::rows, got[i], parts[0]);  // before a mask broadcasts it
    mask_step(r, xs[r.xs.size()], now, repeats ? states.begin() + ns : nullptr, got);
    for (std::int64_t i = 0; repeats && i < ny; ++i) got.push_back(got[i]);
    return got;
  });
  Tensors results;
  for (std::int64_t i = 0; i < ny; ++i) results.push_back(time_first(r, out[i]));
  for (std::int64_t i = 0; r.last && i < ny; ++i) {
    std::int64_t k = masks ? -1 : same[i];
    bool is_state = k >= 0 && as_much_known(Access::desc(out[i]), Access::desc(out[ny + k]));
    results.push_back(repeats ? out[ny + ns + i] : is_state ? zeros_without_steps(r, out[ny + k]) : last_of(out[i]));
  }
  append(results, std::span(out.begin() + ny, ns));
  return results;
}

/// Throws DeviceError unless all tensors are on one device, as the inputs of a node must be. Scalars of the CPU are
/// moved there, as for any op.
void check_devices(const LoopRequest& r) {
  Device first = Access::desc(r.xs[0]).device;
  auto check = [&](const Tensor& t, const char* argument, const char* others) {
    Device d = Access::desc(t).device;
    if (d != first && (d != cpu || Access::desc(t).rank != 0))
      fail<DeviceError>({r.what, argument}, "is on ", d, ", ", others, " on ", first, kRemedy, "move one with .to(\"",
                        first, "\")");
  };
  for (const Tensor& t : r.xs) check(t, r.elements, "others");
  for (const Tensor& t : r.states) check(t, r.initial, r.elements);
  if (r.mask.defined()) check(r.mask, "mask", r.elements);
}

// Note [No steps]
// The length of a loop may be data, so a loop of no steps has gradients like any other: zeros for its elements and for
// the tensors that its step captures. The same holds in a function that learns the length when it is called (and in
// TensorFlow's graphs; its eager loops return None). An eager loop that never calls its step would not see the
// captures, so the step is recorded once, and not run. If it cannot be recorded, because it asks for values, its
// captures have no gradient.

/// The loop of no steps as one node. Returns an empty list if recording is off or the step cannot be recorded.
Tensors of_no_steps(const LoopRequest& r, const StepOf& step) {
  if (!context().recording) return {};
  try {
    return recorded(r, step, /*symbolic=*/false);
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception&) {  // an Error, or what the user's step throws
    return {};
  }
}

}  // namespace

Tensors unrolled(const LoopRequest& r, const StepOf& step) {
  if (!r.mask.defined())
    return run_steps(r, r.xs, r.states,
                     [&](const Tensors& xs, const Tensors& states, std::int64_t) { return step(xs, states); });
  Tensors elements = r.xs;
  elements.push_back(mask_elements(r, r.mask, r.xs[0]));
  auto mask = [&](const Tensors& xs, const Tensors& states, const Tensor* last, Tensors& got) {
    mask_step(r, xs[r.xs.size()], states, r.zero_masked ? nullptr : last, got);
  };
  const MaskStep masked(mask);
  return run_steps(
      r, elements, r.states,
      [&](const Tensors& xs, const Tensors& states, std::int64_t) {
        return step(std::span(xs.begin(), r.xs.size()), states);
      },
      &masked);
}

Tensors run_loop(const LoopRequest& r, const StepOf& step) {
  SeedScope seeds;
  bool symbolic = context().symbolic || (r.mask.defined() && r.mask.symbolic());
  for (const Tensors* list : {&r.xs, &r.states})
    for (const Tensor& t : *list) {
      if (!t.defined()) fail_empty({r.what});
      refuse_sparse({r.what}, t);
      symbolic = symbolic || t.symbolic();
    }
  std::int64_t steps = loop_length(r, r.xs);
  check_devices(r);
  if (r.mask.defined()) assert_shape(mask_shape_check(r), Access::desc(r.mask), Access::desc(r.xs[0]));
  if (symbolic || checkpoint_steps() != kNoCheckpoints) return recorded(r, step, symbolic);
  Tensors out = steps == 0 ? of_no_steps(r, step) : Tensors();
  return out.empty() ? unrolled(r, step) : out;
}

}  // namespace kassette::autograd
