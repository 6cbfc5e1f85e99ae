// autograd/loop_program.cpp - compiles the plan of a body to the instructions of a loop and of its adjoint. See
// Note [Loops].
#include "autograd/loop_program.h"

#include <algorithm>

#include "autograd/control.h"
#include "autograd/backward.h"
#include "ops/error_attribution.h"
#include "ops/operand.h"

namespace kassette::autograd {
namespace {

constexpr int kMaxVariants = 8;

Tensors stand_ins(const std::vector<Body>& like) {
  Tensors list;
  for (const Body& b : like) list.push_back(stand_in(b, b.device));
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

Ref<LoopProgram> LoopProgram::of_body(const Plan& body, const LoopSignature& arity) {
  auto p = Ref<LoopProgram>::adopt(new LoopProgram(Ref<Plan>(const_cast<Plan*>(&body)), arity));
  for (const Instruction& s : body.program().instructions)
    if (s.source) p->key_slots.push_back(s.out);
  p->sources = body.sources();
  for (const Feed& f : body.program().feeds) p->arg_slots.push_back(f.slot);
  p->out_slots = body.program().outputs;
  p->find_producers();
  p->find_forward();
  p->find_varying();
  return p;
}

namespace {

/// Records a body and, variant by variant, its adjoint on placeholders.
class Recording {
 public:
  Recording(const Plan& body, const LoopSignature& arity, const std::vector<Body>& args,
            const std::vector<char>& wanted, std::int64_t steps);
  /// Records the variants from the last step, whose outputs have these cotangents, to the first. Returns false if there
  /// are more than kMaxVariants.
  bool find_variants(const std::vector<char>& has_dy);
  /// The plan of the body and all variants; replaces the entries of Variant::din by slots of it.
  Ref<Plan> build(const char* what);

  Tensors keys, in, outs, sums;  // of the body; `sums`: accumulated cotangents of captures
  std::vector<int> to;           // the arguments that the backward pass differentiates for
  std::vector<Tensor> dys;       // per output: its cotangent; empty if it has none in any variant
  std::vector<Variant> variants;

 private:
  std::vector<char> add_variant(const std::vector<char>& has_dy);
  bool is_capture(int arg) const { return arg >= arity_.capture(0); }

  const LoopSignature& arity_;
  Tensors xs_, results_;
};

Recording::Recording(const Plan& body, const LoopSignature& arity, const std::vector<Body>& args,
                     const std::vector<char>& wanted, std::int64_t steps)
    : in(stand_ins(args)), arity_(arity) {
  for (std::size_t i = 0; i < body.sources().size(); ++i) keys.push_back(stand_in(TensorSpec(int64, {2}), cpu));
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
    const bool state = i >= arity.n_xs && !is_capture(i);
    if (!args[i].dtype.is_float() || (!state && !wanted[i])) continue;
    to.push_back(i);
    xs_.push_back(in[i]);
    if (is_capture(i)) sums.push_back(stand_in(args[i], args[i].device));
  }
}

/// Records the adjoint of one step. Returns the pattern of cotangents of the step before it.
std::vector<char> Recording::add_variant(const std::vector<char>& has_dy) {
  Variant v;
  v.has_dy = has_dy;
  v.din.assign(in.size(), -1);
  std::vector<char> before = has_dy;
  std::fill(before.begin() + arity_.n_ys, before.end(), 0);
  // The sums first, so that the cotangents of this step are added to them.
  const std::int64_t first_sum = xs_.size() - sums.size();
  Tensors ys = std::span(xs_.begin() + first_sum, sums.size()), seeds = sums;
  for (std::size_t k = 0; k < has_dy.size(); ++k) {
    if (!has_dy[k]) continue;
    const Body& out = Access::body(outs[k]);
    if (!dys[k].defined()) dys[k] = stand_in(out, out.device);
    ys.push_back(outs[k]);
    seeds.push_back(dys[k]);
  }
  const Tensors d = backward(ys, xs_, seeds);
  for (std::int64_t k = 0; k < d.size(); ++k) {
    if (!d[k].defined() || (k >= first_sum && Access::impl(d[k]) == Access::impl(sums[k - first_sum])))
      continue;                      // this step does not depend on it
    v.din[to[k]] = results_.size();  // index into results_; build() turns it into a slot
    if (to[k] >= arity_.n_xs && !is_capture(to[k])) before[to[k] - arity_.n_xs + arity_.n_ys] = 1;
    results_.push_back(d[k]);
  }
  variants.push_back(std::move(v));
  return before;
}

bool Recording::find_variants(const std::vector<char>& has_dy) {
  for (std::vector<char> now = has_dy;;) {
    now = add_variant(now);
    auto same = std::ranges::find(variants, now, &Variant::has_dy);
    variants.back().next = same - variants.begin();
    if (same != variants.end()) return true;
    if (static_cast<int>(variants.size()) == kMaxVariants) return false;
  }
}

Ref<Plan> Recording::build(const char* what) {
  Plan::Request request;
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
  for (Variant& v : variants)
    for (int& at : v.din)
      if (at >= 0) at = built->program().outputs[at];
  return built;
}

}  // namespace

Ref<LoopProgram> LoopProgram::with_adjoint(const Plan& body, const LoopSignature& arity, const std::vector<Body>& args,
                                           const std::vector<char>& wanted, const std::vector<char>& has_dy,
                                           std::int64_t steps) {
  Scoped<ScopeState> on(context(), symbolic_scope());
  Recording r(body, arity, args, wanted, steps);
  if (!r.find_variants(has_dy)) return {};
  auto p = Ref<LoopProgram>::adopt(new LoopProgram(r.build(body.program().what), arity));
  auto feed = p->plan().feeds.begin();
  for (std::int64_t i = 0; i < r.keys.size(); ++i) p->key_slots.push_back((feed++)->slot);
  p->sources = body.sources();
  for (std::int64_t i = 0; i < r.in.size(); ++i) p->arg_slots.push_back((feed++)->slot);
  p->sum_slots.assign(arity.n_captures, -1);
  for (int i : r.to)
    if (i >= arity.capture(0)) p->sum_slots[i - arity.capture(0)] = (feed++)->slot;
  for (const Tensor& t : r.dys) p->dy_slots.push_back(t.defined() ? (feed++)->slot : -1);
  const std::vector<int>& outputs = p->plan().outputs;
  p->out_slots.assign(outputs.begin(), outputs.begin() + r.outs.size());
  p->variants = std::move(r.variants);
  p->find_producers();
  p->find_forward();
  p->find_varying();
  p->find_variants();
  return p;
}

void LoopProgram::find_producers() {
  producer.assign(plan().n_slots, -1);
  for (int k = 0; k < plan().n_instructions(); ++k) {
    const Instruction& s = plan().instruction(k);
    for (int i = 0; i < s.n_out; ++i) producer[s.out + i] = k;
  }
}

/// Per instruction of the plan, 1 if one of these slots depends on it.
std::vector<char> LoopProgram::needed_for(const std::vector<int>& roots) const {
  std::vector<char> needed(plan().instructions.size(), 0);
  auto mark = [&](int slot) {
    if (slot >= 0 && producer[slot] >= 0) needed[producer[slot]] = 1;
  };
  for (int slot : roots) mark(slot);
  for (std::size_t k = plan().instructions.size(); k-- > 0;)
    if (needed[k])
      for (int slot : plan().reads(plan().instruction(k))) mark(slot);
  return needed;
}

void LoopProgram::find_forward() {
  std::vector<char> needed = needed_for(out_slots);
  for (int k = 0; k < plan().n_instructions(); ++k)
    if (needed[k] && !plan().instruction(k).source) forward_instructions.push_back(k);
  is_residual.assign(plan().n_slots, 0);
  needs_shape = is_residual;
}

void LoopProgram::find_variants() {
  std::vector<char> there(plan().instructions.size(), 0);
  for (int k : forward_instructions) there[k] = 1;
  auto keep = [&](int slot) {
    if (slot < 0) return;
    int m = producer[slot];
    if (m < 0 || there[m]) is_residual[slot] = 1;
  };
  for (Variant& v : variants) {
    std::vector<char> needed = needed_for(v.din);
    for (int k = 0; k < plan().n_instructions(); ++k) {
      if (!needed[k] || there[k]) continue;
      v.instructions.push_back(k);
      const Instruction& s = plan().instruction(k);
      for (int i = 0; i < s.n_in; ++i) {
        const int slot = plan().input(s, i);
        needs_shape[slot] = 1;
        if (!has_bit(s.op->shape_only, i)) keep(slot);
      }
    }
    for (int slot : v.din) keep(slot);
  }
}

/// Constants and captures are loop-invariant, and so is what is computed from them alone.
void LoopProgram::find_varying() {
  loop_varying.assign(plan().n_slots, 0);
  auto mark = [&](int slot) {
    if (slot >= 0) loop_varying[slot] = 1;
  };
  for (const std::vector<int>* list : {&key_slots, &dy_slots, &sum_slots})
    for (int slot : *list) mark(slot);
  for (int i = 0; i < arity.n_xs + arity.n_carry; ++i) mark(arg_slots[i]);
  for (const Instruction& s : plan().instructions) {
    bool any = s.op->traits & kPrints || residual_call(s);
    for (int slot : plan().reads(s)) any = any || loop_varying[slot];
    for (int i = 0; any && i < s.n_out; ++i) mark(s.out + i);
  }
}

}  // namespace kassette::autograd
