// autograd/loops/loop_program.cpp - compiles the plan of a body to the instructions of a loop and of its adjoint. See
// Note [Loops].
#include "autograd/loops/loop_program.h"

#include <algorithm>

#include "autograd/program/call.h"
#include "autograd/loops/trace.h"
#include "autograd/tape/backward.h"
#include "core/stack.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"

namespace kassette::autograd {
namespace {

constexpr int kMaxStepAdjoints = 8;

Tensors stand_ins(const std::vector<TensorDesc>& like) {
  Tensors list;
  for (const TensorDesc& b : like) list.push_back(stand_in(b, b.device));
  return list;
}

/// The scopes in which a body's adjoint is recorded, whatever those of the caller are.
ScopeState symbolic_scope() {
  ScopeState s = context();
  s.symbolic = s.recording = s.keeps_constants = true;
  s.depth = 1;
  s.branch_depth = 0;
  s.pending_updates = nullptr;
  return s;
}

}  // namespace

Ref<LoopProgram> LoopProgram::of_body(const Plan& body, const LoopSignature& signature) {
  auto p = Ref<LoopProgram>::adopt(new LoopProgram(Ref<Plan>(const_cast<Plan*>(&body)), signature));
  for (const Instruction& s : body.program().instructions)
    if (s.makes_key) p->key_slots.push_back(s.out);
  p->key_sources = body.key_sources();
  for (const Feed& f : body.program().feeds) p->arg_slots.push_back(f.slot);
  p->out_slots = body.program().outputs;
  p->find_producers();
  p->find_forward();
  p->find_varying();
  return p;
}

namespace {

/// Records a body and the adjoints of its steps on placeholders.
class Recording {
 public:
  Recording(const Plan& body, const LoopSignature& signature, const std::vector<TensorDesc>& args,
            const std::vector<char>& wanted, std::int64_t steps);
  /// Records the adjoints from the last step, whose outputs have these cotangents, to the first. Returns false if there
  /// are more than kMaxStepAdjoints.
  bool find_step_adjoints(const std::vector<char>& has_dy);
  /// The plan of the body and all step adjoints; replaces the entries of StepAdjoint::din by slots of it.
  Ref<Plan> build(const char* what);

  Tensors keys, in, outs, sums;  // of the body; `sums`: accumulated cotangents of captures
  std::vector<int> to;           // the arguments that the backward pass differentiates for
  std::vector<Tensor> dys;       // per output: its cotangent; empty if it has none in any step
  std::vector<StepAdjoint> step_adjoints;

 private:
  std::vector<char> add_step_adjoint(const std::vector<char>& has_dy);
  bool is_capture(int arg) const { return arg >= signature_.capture(0); }

  const LoopSignature& signature_;
  Tensors xs_, results_;
};

Recording::Recording(const Plan& body, const LoopSignature& signature, const std::vector<TensorDesc>& args,
                     const std::vector<char>& wanted, std::int64_t steps)
    : in(stand_ins(args)), signature_(signature) {
  for (std::size_t i = 0; i < body.key_sources().size(); ++i) keys.push_back(stand_in(TensorSpec(int64, {2}), cpu));
  try {
    outs = body.inline_into_tape(in, &keys);
  } catch (const Error&) {  // shapes that do not agree: the error is reported as that of the first step
    rethrow_in_step(0, steps, body.program().what);
  }
  results_ = outs;
  dys.resize(outs.size());
  // The backward pass differentiates for the wanted elements and captures, and for every state: its cotangent is
  // carried to the step before.
  for (int i = 0; i < static_cast<int>(args.size()); ++i) {
    const bool state = i >= signature.n_xs && !is_capture(i);
    if (!args[i].dtype.is_float() || (!state && !wanted[i])) continue;
    to.push_back(i);
    xs_.push_back(in[i]);
    if (is_capture(i)) sums.push_back(stand_in(args[i], args[i].device));
  }
}

/// Records the adjoint of one step. Returns the pattern of cotangents of the step before it.
std::vector<char> Recording::add_step_adjoint(const std::vector<char>& has_dy) {
  StepAdjoint adjoint;
  adjoint.has_dy = has_dy;
  adjoint.din.assign(in.size(), -1);
  std::vector<char> before = has_dy;
  std::fill(before.begin() + signature_.n_ys, before.end(), 0);
  // The sums first, so that the cotangents of this step are added to them.
  const std::int64_t first_sum = xs_.size() - sums.size();
  Tensors ys = std::span(xs_.begin() + first_sum, sums.size()), seeds = sums;
  for (std::size_t k = 0; k < has_dy.size(); ++k) {
    if (!has_dy[k]) continue;
    const TensorDesc& out = Access::desc(outs[k]);
    if (!dys[k].defined()) dys[k] = stand_in(out, out.device);
    ys.push_back(outs[k]);
    seeds.push_back(dys[k]);
  }
  const Tensors d = backward(ys, xs_, seeds);
  for (std::int64_t k = 0; k < d.size(); ++k) {
    if (!d[k].defined() || (k >= first_sum && Access::impl(d[k]) == Access::impl(sums[k - first_sum])))
      continue;                            // this step does not depend on it
    adjoint.din[to[k]] = results_.size();  // index into results_; build() turns it into a slot
    if (to[k] >= signature_.n_xs && !is_capture(to[k])) before[to[k] - signature_.n_xs + signature_.n_ys] = 1;
    results_.push_back(d[k]);
  }
  step_adjoints.push_back(std::move(adjoint));
  return before;
}

bool Recording::find_step_adjoints(const std::vector<char>& has_dy) {
  for (std::vector<char> now = has_dy;;) {
    now = add_step_adjoint(now);
    auto same = std::ranges::find(step_adjoints, now, &StepAdjoint::has_dy);
    step_adjoints.back().next = same - step_adjoints.begin();
    if (same != step_adjoints.end()) return true;
    if (static_cast<int>(step_adjoints.size()) == kMaxStepAdjoints) return false;
  }
}

Ref<Plan> Recording::build(const char* what) {
  ProgramRequest request;
  request.inputs = keys;
  append(request.inputs, in);
  append(request.inputs, sums);
  for (const Tensor& t : dys)
    if (t.defined()) request.inputs.push_back(t);
  request.outputs = results_;
  request.what = what;
  request.body = true;
  Ref<Plan> built = Plan::build(request);
  built->forget_inputs();
  for (StepAdjoint& adjoint : step_adjoints)
    for (int& at : adjoint.din)
      if (at >= 0) at = built->program().outputs[at];
  return built;
}

}  // namespace

Ref<LoopProgram> LoopProgram::with_adjoint(const Plan& body, const LoopSignature& signature,
                                           const std::vector<TensorDesc>& args, const std::vector<char>& wanted,
                                           const std::vector<char>& has_dy, std::int64_t steps) {
  check_stack(body.program().what);
  Scoped<ScopeState> on(context(), symbolic_scope());
  Recording r(body, signature, args, wanted, steps);
  if (!r.find_step_adjoints(has_dy)) return {};
  auto p = Ref<LoopProgram>::adopt(new LoopProgram(r.build(body.program().what), signature));
  auto feed = p->program().feeds.begin();
  for (std::int64_t i = 0; i < r.keys.size(); ++i) p->key_slots.push_back((feed++)->slot);
  p->key_sources = body.key_sources();
  for (std::int64_t i = 0; i < r.in.size(); ++i) p->arg_slots.push_back((feed++)->slot);
  p->sum_slots.assign(signature.n_captures, -1);
  for (int i : r.to)
    if (i >= signature.capture(0)) p->sum_slots[i - signature.capture(0)] = (feed++)->slot;
  for (const Tensor& t : r.dys) p->dy_slots.push_back(t.defined() ? (feed++)->slot : -1);
  const std::vector<int>& outputs = p->program().outputs;
  p->out_slots.assign(outputs.begin(), outputs.begin() + r.outs.size());
  p->step_adjoints = std::move(r.step_adjoints);
  p->find_producers();
  p->find_forward();
  p->find_varying();
  p->find_step_adjoints();
  return p;
}

void LoopProgram::find_producers() {
  producer.assign(program().n_slots, -1);
  for (int k = 0; k < program().n_instructions(); ++k) {
    const Instruction& s = program().instruction(k);
    for (int i = 0; i < s.n_out; ++i) producer[s.out + i] = k;
  }
}

/// Per instruction of the program, 1 if one of these slots depends on it.
std::vector<char> LoopProgram::needed_for(const std::vector<int>& roots) const {
  std::vector<char> needed(program().instructions.size(), 0);
  auto mark = [&](int slot) {
    if (slot >= 0 && producer[slot] >= 0) needed[producer[slot]] = 1;
  };
  for (int slot : roots) mark(slot);
  for (std::size_t k = program().instructions.size(); k-- > 0;)
    if (needed[k])
      for (int slot : program().reads(program().instruction(k))) mark(slot);
  return needed;
}

void LoopProgram::find_forward() {
  std::vector<char> needed = needed_for(out_slots);
  for (int k = 0; k < program().n_instructions(); ++k)
    if (needed[k] && !program().instruction(k).makes_key) forward_instructions.push_back(k);
  is_residual.assign(program().n_slots, 0);
  needs_shape = is_residual;
}

void LoopProgram::find_step_adjoints() {
  std::vector<char> there(program().instructions.size(), 0);
  for (int k : forward_instructions) there[k] = 1;
  auto keep = [&](int slot) {
    if (slot < 0) return;
    int m = producer[slot];
    if (m < 0 || there[m]) is_residual[slot] = 1;
  };
  for (StepAdjoint& adjoint : step_adjoints) {
    std::vector<char> needed = needed_for(adjoint.din);
    for (int k = 0; k < program().n_instructions(); ++k) {
      if (!needed[k] || there[k]) continue;
      adjoint.instructions.push_back(k);
      const Instruction& s = program().instruction(k);
      for (int i = 0; i < s.n_in; ++i) {
        const int slot = program().input(s, i);
        needs_shape[slot] = 1;
        if (!has_bit(s.op->shape_only, i)) keep(slot);
      }
    }
    for (int slot : adjoint.din) keep(slot);
  }
}

/// Constants and captures are loop-invariant, and so is what is computed from them alone.
void LoopProgram::find_varying() {
  loop_varying.assign(program().n_slots, 0);
  auto mark = [&](int slot) {
    if (slot >= 0) loop_varying[slot] = 1;
  };
  for (const std::vector<int>* list : {&key_slots, &dy_slots, &sum_slots})
    for (int slot : *list) mark(slot);
  for (int i = 0; i < signature.n_xs + signature.n_carry; ++i) mark(arg_slots[i]);
  for (const Instruction& s : program().instructions) {
    bool any = s.op->traits & kPrints || residual_call(s);
    for (int slot : program().reads(s)) any = any || loop_varying[slot];
    for (int i = 0; any && i < s.n_out; ++i) mark(s.out + i);
  }
}

}  // namespace kassette::autograd
