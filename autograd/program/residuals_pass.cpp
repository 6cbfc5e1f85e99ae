// autograd/program/residuals_pass.cpp - which instructions of a program return residuals, and which take them. See Note
// [Residuals].
#include "autograd/program/residuals_pass.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "autograd/program/call.h"
#include "core/fast_paths.h"

namespace kassette::autograd {
namespace {

/// Identifies the run of a body: its procedure and the slots of its inputs.
using Run = std::pair<Extra*, std::vector<int>>;
struct HashRun {
  std::size_t operator()(const Run& r) const {
    std::size_t h = std::hash<const void*>()(r.first);
    for (int slot : r.second) h = h * 31 + slot;
    return h;
  }
};
using MakerOf = std::unordered_map<Run, int, HashRun>;  // the index of the instruction

Run run_of(const Program& p, Extra* procedure, const Instruction& s, int n_in) {
  const auto ins = p.reads(s).begin();
  return {procedure, {ins, ins + n_in}};
}
/// The signature of an adjoint that may take residuals; all pointers are null for any other instruction.
VjpSignature vjp_of(const Instruction& s) {
  if (s.op != &call_op) return {};
  const VjpSignature r = vjp_signature(s.attrs);
  return r.of && procedure(*r.of).keeps_residuals() ? r : VjpSignature{};
}

/// The ResidualCall of a `call` instruction; wraps its procedure in one if it has none yet.
ResidualCall& as_residual_call(Instruction& s) {
  if (!residual_call(s)) s.attrs.extra = Ref<Extra>::adopt(new ResidualCall(s.attrs.extra));
  return static_cast<ResidualCall&>(*s.attrs.extra);
}

/// The slot of the residuals that an instruction returns: its last result.
int residuals_slot(const Instruction& s) { return s.out + s.n_out - 1; }

/// The instructions whose runs other instructions differentiate. If the program has no such instruction yet, one is
/// inserted before the tail.
MakerOf find_makers(Program& p) {
  MakerOf calls, makers;
  for (int k = 0; k < p.first_tail; ++k)
    if (const Instruction& s = p.instruction(k); s.op == &call_op)
      calls.try_emplace(run_of(p, s.attrs.extra.get(), s, s.n_in), k);
  for (int k = 0; k < p.first_tail; ++k) {  // inserted instructions, too
    const VjpSignature r = vjp_of(p.instruction(k));
    if (!r.of) continue;
    const Run run = run_of(p, r.of, p.instruction(k), r.n_in);
    const auto [maker, missing] = calls.try_emplace(run, p.first_tail);
    makers.insert(*maker);
    if (!missing) continue;
    Instruction s = p.instruction(k);  // an adjoint's first inputs are those of the run
    s.n_in = r.n_in;
    s.n_out = r.has_dy->size();
    s.attrs = {ListAttrs{s.n_out}, Ref<Extra>(r.of)};
    s.out = p.n_slots;
    p.n_slots += s.n_out + 1;
    p.instructions.insert(p.instructions.begin() + p.first_tail++, std::move(s));
  }
  p.root.resize(p.n_slots, 0);
  return makers;
}

/// Moves the instruction that returns residuals before the first instruction that takes them. That is allowed: all
/// inputs of the former are inputs of the latter, too.
void order(Program& p) {
  std::unordered_map<int, bool> made;  // residuals, by slot: whether they are ready
  for (int k = 0; k < p.first_tail; ++k)
    if (const ResidualCall* call = residual_call(p.instruction(k)); call && call->returns)
      made[residuals_slot(p.instruction(k))] = false;
  for (int k = 0; k < p.first_tail;) {
    Instruction& s = p.instruction(k);
    const ResidualCall* call = residual_call(s);
    const int residuals = call && call->takes ? p.input(s, s.n_in - 1) : -1;
    if (residuals >= 0 && !made[residuals]) {
      int maker = k + 1;
      while (residuals_slot(p.instruction(maker)) != residuals) ++maker;
      std::rotate(p.instructions.begin() + k, p.instructions.begin() + maker, p.instructions.begin() + maker + 1);
      continue;  // with the maker, which may take residuals itself
    }
    if (call && call->returns) made[residuals_slot(s)] = true;
    ++k;
  }
}

/// Fills ResidualCall::wanted, last, consumes and vjp: which inputs of a run need history, and which instruction is the
/// last to use its residuals.
void find_takers(Program& p) {
  struct Returned {
    ResidualCall* by;
    int family;  // the slot of the first residuals that these, directly or not, extend
    bool taken = false, consumed = false;
  };
  std::unordered_map<int, Returned> returned;
  auto taken = [&](const Instruction& s) -> Returned& { return returned.at(p.input(s, s.n_in - 1)); };
  std::vector<Instruction*> instructions;
  for (int k = 0; k < p.first_tail; ++k) {
    Instruction& s = p.instruction(k);
    if (!residual_call(s)) continue;
    instructions.push_back(&s);
    const int residuals = residuals_slot(s);
    if (ResidualCall& t = as_residual_call(s); t.returns) {
      returned[residuals] = {&t, t.takes ? taken(s).family : residuals};
      t.wanted.assign(s.n_in - t.takes, 0);
    }
  }
  // Instructions that take residuals are visited before the instructions that return these.
  for (auto it = instructions.rbegin(); it != instructions.rend(); ++it) {
    ResidualCall& t = as_residual_call(**it);
    if (!t.takes) continue;
    Returned& from = taken(**it);
    const VjpSignature r = vjp_signature(Attrs(t.of));
    for (int i : *r.wanted) from.by->wanted[i] = 1;
    // And those inputs, shared with the run, that the instructions which take its own residuals want.
    for (int i = 0; t.returns && i < r.n_in; ++i) from.by->wanted[i] |= t.wanted[i];
    t.last = !std::exchange(from.taken, true);
    t.consumes = !std::exchange(returned.at(from.family).consumed, true);
    from.by->vjp = t.last && !t.returns ? t.of : Ref<Extra>();
  }
}

}  // namespace

void find_residuals(Program& p) {
  if (!may_take(FastPath::residuals_reused)) return;
  const MakerOf makers = find_makers(p);
  if (makers.empty()) return;
  std::vector<int> takes(p.first_tail, -1);  // per instruction: the instruction whose residuals it takes
  for (int k = 0; k < p.first_tail; ++k)
    if (const VjpSignature r = vjp_of(p.instruction(k)); r.of)
      takes[k] = makers.at(run_of(p, r.of, p.instruction(k), r.n_in));
  for (const auto& [run, k] : makers) {
    Instruction& s = p.instruction(k);
    as_residual_call(s).returns = true;
    s.attrs = {ListAttrs{++s.n_out}, s.attrs.extra};
  }
  for (int k = 0; k < p.first_tail; ++k) {
    const int maker = takes[k];
    if (maker < 0) continue;
    Instruction& s = p.instruction(k);
    as_residual_call(s).takes = true;
    const int in = p.ins.size();
    for (int i = 0; i < s.n_in; ++i) p.ins.push_back(p.input(s, i));
    p.ins.push_back(residuals_slot(p.instruction(maker)));
    s.in = in;
    ++s.n_in;
  }
  order(p);
  find_takers(p);
}

}  // namespace kassette::autograd
