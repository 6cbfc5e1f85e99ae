// autograd/function/gradients.cpp - gradients(), and the history of its results.
#include "autograd/function/gradients.h"

#include <algorithm>

#include "autograd/program/build.h"
#include "autograd/tape/backward_pass.h"
#include "autograd/tape/deferred.h"
#include "autograd/function/plan.h"
#include "autograd/tape/shadow.h"
#include "core/fast_paths.h"
#include "core/log.h"
#include "core/stack.h"
#include "core/text.h"
#include "ops/engine/observe.h"
#include "ops/shape/like.h"
#include "ops/engine/operand.h"
#include "ops/shape/shaping.h"

namespace kassette::autograd {
namespace {

/// The arguments of a backward pass that ran unrecorded. If its results are differentiated or become part of a plan,
/// the pass runs again, recorded.
struct DeferredBackward final : Deferred {
  Tensor loss;
  Tensors xs;
  Tensors leaves;  // with Note [Rematerialization]: what the loss was computed from, with the values of that time
  Tensors expand(const Node& node) const override;
  Tensors computed_from(const Node&) const override { return loss; }
};

constinit WarnOnce growing;

/// Warns once if the history grows from one gradients() to the next: the mistake is `total = total + loss`.
void watch_growth(Context& c, std::size_t visited) {
  auto n = static_cast<std::int64_t>(visited);
  c.growing = n > c.last_segment ? c.growing + 1 : 0;
  c.last_segment = n;
  if (c.growing >= 64 && n > 1000)
    growing.say("the history behind the loss has grown in " + std::to_string(c.growing) +
                " successive calls of gradients and is now " + std::to_string(n) +
                " ops long: something carries its history from one step to the next. Keep a value without history "
                "with x.detach() or K::eval(x), or keep it in a variable (K::update)");
}

/// The cotangent of the loss: ones in its shape, on its device.
Tensor seed_for(const Tensor& loss) { return broadcast_like(number_like(1, loss), loss); }

}  // namespace

Tensors DeferredBackward::expand(const Node&) const {
  Scoped<bool> on(context().recording, true);
  Tensors ys = loss;
  if (!leaves.empty()) {
    ProgramRequest request;
    request.inputs = leaves;
    request.outputs = ys;
    request.what = "gradients";
    ys = Plan::build(request)->inline_into_tape(leaves);
  }
  return backward(ys, xs, seed_for(ys[0]));
}

Tensors gradients(const Tensor& loss, const Tensors& xs, SavedValues saved, GradientHook* hook) {
  if (!loss.defined()) fail_empty({"gradients", "loss"});
  const TensorDesc& l = Access::desc(loss);
  if (!l.dtype.is_float()) fail_not_float({"gradients", "loss"}, l.dtype);
  check_stack("gradients");
  for (std::int64_t i = 0; i < xs.size(); ++i) {
    if (!xs[i].defined()) fail_item<ValueError>("gradients", "variable", i, "is ", kEmptyTensor);
    const TensorDesc& x = Access::desc(xs[i]);
    if (!x.node)
      fail_item<ValueError>("gradients", "variable", i, "of shape ", x.shape(), " was not recorded (it is a constant)",
                            kRemedy, "make it a K::variable or a K::placeholder");
  }
  if (xs.empty()) return Tensors();
  const ObservedScope scope("gradients");
  Context& c = context();
  if (xs.size() > kMaxOutputs && c.recording && !l.symbolic() && !c.symbolic)
    fail<NotImplementedError>({"gradients", "variables"}, "are ", xs.size(), kExpected, "one call takes at most ",
                              kMaxOutputs);
  if (!l.node) return std::vector<Tensor>(xs.size());
  if (l.symbolic() || c.symbolic) return backward({loss}, xs, {seed_for(loss)}, SavedValues::retain, hook);
  if (c.saved_bytes.get() < fast_path_thresholds.released) saved = SavedValues::retain;
  Tensors raw, leaves, before;
  if (__builtin_expect(shadow != nullptr, 0)) before = shadow->before_pass(loss, xs, seed_for(loss));
  {
    Scoped<bool> off(c.recording, false);
    BackwardPass w(xs, saved, hook);
    const Tensor seed = seed_for(loss);
    raw = w.run(&loss, &seed, 1);
    watch_growth(c, w.visited());
    leaves = w.leaves();
  }
  if (__builtin_expect(shadow != nullptr, 0)) shadow->after_pass(before, raw);
  if (!c.recording) return raw;
  // Note [Lazy backward]
  // An eager backward pass runs unrecorded: most gradients are never differentiated. Its results share one deferred
  // node, which holds the arguments of the pass. If a result is differentiated or becomes part of a plan, the pass runs
  // again, recorded.
  auto* held = new DeferredBackward;
  const Ref<Extra> kept = Ref<Extra>::adopt(held);
  held->loss = loss;
  held->xs = xs;
  held->leaves = std::move(leaves);
  defer(raw, kept, loss);
  return raw;
}

}  // namespace kassette::autograd
