// autograd/loops/loops.cpp - the procedure of a loop: one node of the tape, run compiled or recorded.
#include "autograd/loops/loops.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <unordered_set>

#include "autograd/loops/checkpoint.h"
#include "autograd/program/call.h"
#include "autograd/loops/trace.h"
#include "autograd/loops/unstack.h"
#include "autograd/loops/loop_back.h"
#include "autograd/tape/shadow.h"
#include "autograd/loops/steps.h"
#include "core/convert.h"
#include "core/fast_paths.h"
#include "core/rank.h"
#include "core/text.h"
#include "ops/engine/apply.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"
#include "ops/random/random.h"

namespace kassette::autograd {

namespace {

/// The procedure of a loop. Inputs: key, xs, states, captures. Results: stacked outputs, last states.
class Loop final : public Procedure {
 public:
  /// `eager`: the loop has run when it was recorded, so that a backward pass without residuals runs it a second time.
  Loop(const LoopRequest& r, Traced body, bool eager)
      : form_(r), body_(std::move(body.plan)), eager_(eager), nx_(r.xs.size()), ns_(r.states.size()), ny_(r.n_outputs),
        differentiable_(find_differentiable(r)),
        forward_(LoopProgram::of_body(*body_, {nx_, ns_, body_->n_inputs() - nx_ - ns_, ny_})) {}
  Tensors run(const Tensors& in) const override;
  void specs(const OpCall& call, TensorSpec* out) const override;
  int n_out() const override { return ny_ + ns_; }
  bool differentiable(int i, Outputs outputs) const override { return i > 0 && (differentiable_[i - 1] & outputs); }
  bool run_for(const Tensors& in, const VjpSignature& by, Residuals& residuals) const override;

 private:
  /// A program with the arguments that it was made for.
  struct Known {
    std::vector<TensorDesc> args;
    std::vector<char> wanted, has_dy;
    Ref<LoopProgram> program;
  };
  Tensors run_recorded(const Tensors& in, std::int64_t steps) const;
  Ref<LoopProgram> program_for(const Tensors& in, const VjpSignature& by, std::int64_t steps) const;
  Tensors run_step(const Tensors& args, std::int64_t t, std::int64_t steps, const Tensor& key) const;

  std::int64_t steps_of(const Tensors& in) const;
  std::vector<Outputs> find_differentiable(const LoopRequest& r) const;

  LoopForm form_;
  Ref<Plan> body_;
  bool eager_;
  int nx_, ns_, ny_;
  std::int64_t checkpoint_ = checkpoint_steps();
  std::vector<Outputs> differentiable_;  // per input but the key: the results that depend differentiably on it
  Ref<LoopProgram> forward_;
  mutable std::mutex mutex_;
  mutable std::vector<Known> known_;
};

Tensors values_of(const Tensors& in) {
  Tensors values;
  values.reserve(in.size());
  for (const Tensor& t : in) values.push_back(detached(Access::desc(t)));
  return values;
}

/// Which results depend differentiably on each input, in any number of steps: directly, or through states that later
/// steps read. If there may be no step at all, an initial state may also be the last state.
std::vector<Outputs> Loop::find_differentiable(const LoopRequest& r) const {
  std::vector<Outputs> found;
  const bool perhaps_none = loop_length(r, r.xs) <= 0;
  for (int i = 0; i < body_->n_inputs(); ++i) {
    Outputs to = body_->differentiable(i);
    for (Outputs before = 0; before != to;) {
      before = to;
      for (int s = 0; s < ns_; ++s)
        if (to & output_bit(ny_ + s)) to |= body_->differentiable(nx_ + s);
    }
    if (perhaps_none && i >= nx_ && i < nx_ + ns_) to |= output_bit(ny_ + i - nx_);
    found.push_back(to);
  }
  return found;
}

std::int64_t Loop::steps_of(const Tensors& in) const { return loop_length(form_, std::span(in.begin() + 1, nx_)); }

Tensors Loop::run(const Tensors& in) const {
  const std::int64_t steps = steps_of(in);
  if (is_recorded(in) || steps == 0 || !may_take(FastPath::loop)) return run_recorded(in, steps);
  Tensors results = LoopRun(forward_, {form_.what, steps, form_.reverse, 0, false, form_.batched}, values_of(in))
                        .forward(/*for_backward=*/false);
  if (__builtin_expect(shadow != nullptr, 0))
    shadow->after_loop(form_.what, results, [&] { return run_recorded(in, steps); });
  return results;
}

bool Loop::run_for(const Tensors& in, const VjpSignature& by, Residuals& residuals) const {
  const std::int64_t steps = steps_of(in);
  if (steps == 0 || !may_take(FastPath::loop_backward)) return false;
  Tensors values = values_of(in);
  Ref<LoopProgram> program = program_for(values, by, steps);
  if (!program) return false;
  auto run = Ref<LoopBack>::adopt(new LoopBack(
      program, {form_.what, steps, form_.reverse, interval_of(checkpoint_, steps), /*again=*/eager_, form_.batched},
      values));
  residuals.results = run->forward();
  if (__builtin_expect(shadow != nullptr, 0))
    shadow->after_loop(form_.what, residuals.results, [&] { return run_recorded(in, steps); });
  residuals.run = Ref<SavedRun>(run.get());
  return true;
}

/// The compiled body and adjoint for these shapes, from a cache of the last eight. Null as LoopProgram::with_adjoint.
Ref<LoopProgram> Loop::program_for(const Tensors& in, const VjpSignature& by, std::int64_t steps) const {
  constexpr std::size_t kPrograms = 8;
  std::vector<TensorDesc> args;
  std::vector<char> wanted(in.size() - 1, 0);
  for (int i : *by.wanted) wanted[i - 1] = 1;
  for (std::int64_t i = 1; i < in.size(); ++i) {
    const TensorDesc& b = Access::desc(in[i]);
    args.push_back(make_desc(i <= nx_ ? element_spec(b) : TensorSpec(b), b.device));
  }
  std::unique_lock<std::mutex> lock(mutex_);
  for (const Known& k : known_)
    if (may_take(FastPath::loop_program) && k.wanted == wanted && k.has_dy == *by.has_dy &&
        std::ranges::equal(args, k.args, alike)) {
      count_taken(FastPath::loop_program);
      return k.program;
    }
  lock.unlock();  // other calls of the loop go on while the program is made
  LoopSignature signature{nx_, ns_, static_cast<int>(args.size()) - nx_ - ns_, ny_};
  Known k{args, wanted, *by.has_dy, LoopProgram::with_adjoint(*body_, signature, args, wanted, *by.has_dy, steps)};
  lock.lock();
  if (known_.size() == kPrograms) known_.erase(known_.begin());
  known_.push_back(std::move(k));
  return known_.back().program;
}

/// Runs one step. The user's code does not run at each step, so errors say at which step they occurred.
Tensors Loop::run_step(const Tensors& args, std::int64_t t, std::int64_t steps, const Tensor& key) const {
  try {
    return run_body(*body_, args, step_keys(key, t, steps, *body_));
  } catch (const Error&) {
    rethrow_in_step(t, steps, form_.what);
  }
}

/// Runs the loop as an eager one: the ops of each step go on the tape if recording is on.
Tensors Loop::run_recorded(const Tensors& in, std::int64_t steps) const {
  const Tensor *xs = in.begin() + 1, *states = xs + nx_, *captures = states + ns_;
  return run_steps(form_, std::span(xs, states), std::span(states, captures),
                   [&](const Tensors& x, const Tensors& s, std::int64_t t) {
                     Tensors args;
                     args.reserve(in.size());
                     append(args, x);
                     append(args, s);
                     append(args, std::span(captures, in.end()));
                     return run_step(args, t, std::max<std::int64_t>(steps, 1), in[0]);
                   });
}

void Loop::specs(const OpCall& call, TensorSpec* out) const {
  std::int64_t steps = form_.length;
  for (int i = 0; i < nx_; ++i)
    if (call.spec(1 + i).rank > 0 && call.spec(1 + i).dims[0] >= 0) steps = call.spec(1 + i).dims[0];
  for (int i = 0; i < ny_; ++i) out[i].set(stacked_spec(form_.what, body_->outputs()[i], steps));
  for (int i = 0; i < ns_; ++i) out[ny_ + i].set(call.spec(1 + nx_ + i));
  for (int i = 0; i < ny_ + ns_; ++i) call.out[i]->device = body_->outputs()[i].device;
}

}  // namespace

namespace {

/// The concrete tensors with history that symbolic ones are computed from. Leaves are left out: a plan reads variables
/// itself.
Tensors borders_of(const Tensors& symbolic) {
  Tensors borders;
  std::set<std::pair<const Node*, int>> found;
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> stack;
  for (const Tensor& t : symbolic) stack.push_back(Access::desc(t).node.get());
  while (!stack.empty()) {
    const Node* n = stack.back();
    stack.pop_back();
    if (!n || !seen.insert(n).second) continue;
    for (const TensorDesc *b = n->in(), *end = b + n->n_in; b != end; ++b) {
      if (b->symbolic()) stack.push_back(b->node.get());
      else if (b->node && b->storage && !(b->flags & kLeaf) && found.insert({b->node.get(), b->out}).second)
        borders.push_back(Access::wrap(*b));
    }
  }
  return borders;
}

/// The captures of a body with their values. Tracing has recorded ops on captures alone without running them; a loop
/// that runs now runs them first. Returns the captures unchanged if one depends on a placeholder.
Tensors computed(const char* what, const Tensors& captures) {
  ProgramRequest request;
  for (const Tensor& t : captures)
    if (t.symbolic()) request.outputs.push_back(t);
  if (request.outputs.empty()) return captures;
  request.inputs = borders_of(request.outputs);
  request.what = what;
  const Ref<Plan> plan = Plan::build(request);
  if (!plan->program().missing.empty()) return captures;
  const Tensors values = plan->inline_into_tape(request.inputs);
  Tensors all;
  std::int64_t next = 0;
  for (const Tensor& t : captures) all.push_back(t.symbolic() ? values[next++] : t);
  return all;
}

}  // namespace

Tensors loop_node(const LoopRequest& r, bool symbolic, const StepOf& step) {
  std::vector<TensorSpec> args;
  const Device device = r.xs.begin()->device();
  for (const Tensor& x : r.xs) {
    const TensorDesc& b = Access::desc(x);
    if (b.rank < 0) fail_unknown_rank({r.what, "elems"});
    args.push_back(element_spec(b));
  }
  for (const Tensor& t : r.states) args.push_back(Access::desc(t));
  Traced body = trace(r.what, args, device, [&](const Tensors& a) {
    const Tensor* states = a.begin() + r.xs.size();
    Tensors out = step(std::span(a.begin(), states), std::span(states, a.end()));
    for (std::int64_t i = r.n_outputs; i < out.size(); ++i) {
      Tensor& state = out.begin()[i];
      state = number_on(state, device);
      if (state.device() != device)
        fail<DeviceError>({r.what}, "the step returned state ", i - r.n_outputs, " on ", state.device(), ", it was on ",
                          device, kExpected, "the device must stay the same");
    }
    return out;
  });
  Tensors in;
  {
    Scoped<bool> on(context().symbolic, symbolic);
    in.push_back(body.plan->key_sources().empty() ? no_key(r.what) : next_loop_key(r.xs.begin()[0], r.what));
  }
  for (const Tensors* list : {&r.xs, &r.states})
    for (const Tensor& t : *list) in.push_back(number_on(t, device));
  append(in, symbolic ? body.captures : computed(r.what, body.captures));
  auto loop = Ref<Extra>::adopt(new Loop(r, std::move(body), !symbolic));
  return symbolic ? call_node(std::move(loop), in) : call_now(std::move(loop), in);
}

}  // namespace kassette::autograd
