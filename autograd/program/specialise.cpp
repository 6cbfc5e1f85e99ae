// autograd/program/specialise.cpp - a program for inputs whose shapes are known.
#include "autograd/program/specialise.h"

#include <algorithm>
#include <numeric>

#include "autograd/program/call.h"
#include "autograd/program/passes.h"
#include "ops/engine/apply.h"

namespace kassette::autograd {

// Note [Plans for shapes]
// A plan for a batch of any size runs every rule at every call, and its gradients have many instructions that would
// undo a broadcasting but find nothing to undo: sum_to_like between tensors of one shape. So a plan that is called
// again with the same shapes gets a program for them: shapes are inferred once, instructions that return their input
// unchanged are removed, and more instructions can be fused. Results are the same to the last bit. Some shapes do not
// follow from those of the inputs: a shape that is a value, those of the results of control flow, shapes that depend on
// data. These, and shapes inferred from them, stay unknown until a call. Instructions that draw, print or run a body
// are never removed.

namespace {

/// True if a rule may read this host input now: it is a constant, in memory that the user cannot write to.
bool is_fixed_value(const TensorDesc& b) { return b.storage && b.storage->kind != Storage::kBorrowed; }

void infer(Program& p, const std::vector<TensorDesc>& inputs) {
  TensorDesc open;
  open.rank = -1;
  p.known.assign(p.n_slots, open);
  for (const auto& [slot, desc] : p.constants) p.known[slot] = desc;
  for (std::size_t i = 0; i < inputs.size(); ++i) p.known[p.feeds[i].slot] = inputs[i];
  p.for_each_cell([&](int slot, const Cell& cell) { p.known[slot] = make_desc(cell.spec, cell.device); });
  std::vector<InputView> arrays;
  std::vector<TensorSpec> specs;
  for (Instruction& s : p.instructions) {
    arrays.clear();
    bool known = s.op != &call_op;
    for (int i = 0; i < s.n_in; ++i) {
      const TensorDesc& b = p.known[p.input(s, i)];
      known = known && b.known() && (!has_bit(s.op->host, i) || has_bit(s.op->shape_only, i) || is_fixed_value(b));
      arrays.push_back({&b, b.storage ? b.data() : nullptr});
    }
    if (!known) continue;
    const Device device = device_of(*s.op, s.attrs, arrays.data(), s.n_in);
    specs.resize(s.n_out);
    s.op->rule(OpCall{*s.op, s.attrs, arrays.data(), s.n_in, nullptr, s.n_out, device}, specs.data());
    s.known = std::all_of(specs.begin(), specs.end(), [](const TensorSpec& spec) { return spec.known(); });
    for (int i = 0; s.known && i < s.n_out; ++i) p.known[s.out + i] = make_desc(specs[i], device);
  }
  for (TensorDesc& b : p.known) b.storage = {};
}

void resolve_aliases(Program& p) {
  std::vector<int> stands_for(p.n_slots);
  std::iota(stands_for.begin(), stands_for.end(), 0);
  auto resolve = [&](int& slot) { slot = stands_for[slot]; };
  for (const Instruction& s : p.instructions) {
    if (!s.known || s.op->pattern != Pattern::alias) continue;
    int from = p.input(s, 0);
    resolve(from);
    const TensorDesc &a = p.known[from], &b = p.known[s.out];
    if (alike(a, b)) stands_for[s.out] = from;
  }
  std::ranges::for_each(p.ins, resolve);
  std::ranges::for_each(p.outputs, resolve);
  std::ranges::for_each(p.fetches, resolve);
  for (Effect& e : p.effects) resolve(e.slot);
}

/// Moves each instruction that makes a splat directly after the instruction that computes its number, where it does not
/// split a chain. It needs only the shape of its other input, which is known.
void hoist_splats(Program& p) {
  std::vector<int> maker(p.n_slots, -1);
  std::vector<std::pair<int, int>> places;  // for reorder()
  for (int k = 0; k < p.n_instructions(); ++k) {
    const Instruction& s = p.instruction(k);
    std::fill_n(maker.begin() + s.out, s.n_out, k);
    const bool moves = s.splat && s.known && p.known[p.input(s, 0)].numel() == 1 && p.known[s.out].device == cpu;
    places.push_back({moves ? maker[p.input(s, 0)] : k, k});
  }
  reorder(p, std::move(places));
}

}  // namespace

Program specialise(const Program& program, const std::vector<TensorDesc>& inputs) {
  Program p = program;
  p.specialised = true;
  infer(p, inputs);
  resolve_aliases(p);
  for (Effect& e : p.effects) {
    e.in_place_instruction = -1;
    if (e.mode == Effect::kSet) e.old_value_slot = -1;
  }
  find_roots(p);
  for (Instruction& s : p.instructions) {
    if (s.op != &call_op && !(s.op->traits & (kMakesKey | kDraws | kEffect | kPrints))) s.need = kNothing;
    const auto ins = p.ins.begin() + s.in;
    if (s.known && s.fusible)
      s.one = std::all_of(ins, ins + s.n_in, [&](int slot) { return p.known[slot].numel() == 1; });
  }
  find_needs(p);
  for (Instruction& s : p.instructions)
    if (s.known && s.need == kShape) s.need = kNothing;  // Program::known has the shape
  find_tail(p);
  find_splats(p);
  hoist_splats(p);
  p.dead.clear();
  find_last_uses(p);
  find_in_place(p);
  return p;
}

}  // namespace kassette::autograd
