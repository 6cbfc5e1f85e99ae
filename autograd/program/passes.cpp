// autograd/program/passes.cpp - the passes that analyse and reorder a program before it runs.
#include "autograd/program/passes.h"

#include <algorithm>

#include "autograd/program/call.h"

namespace kassette::autograd {

/// A rule reads the values of inputs on the host (a shape to reshape to), so those values are needed even if only the
/// output's shape is.
bool reads_shape(const Instruction& s, int i) {
  return has_bit(s.op->shape_only, i) || (s.need == kShape && !has_bit(s.op->host, i));
}

void reorder(Program& p, std::vector<std::pair<int, int>> places) {
  std::ranges::sort(places);
  std::vector<Instruction> instructions;
  instructions.reserve(places.size());
  for (const auto& [at, k] : places) instructions.push_back(std::move(p.instruction(k)));
  p.instructions = std::move(instructions);
}

void find_roots(Program& p) {
  p.root.assign(p.n_slots, 0);
  for (const auto* list : {&p.outputs, &p.fetches})
    for (int slot : *list) p.root[slot] = 1;
  for (const Effect& e : p.effects) p.root[e.slot] = 1;
}

void find_needs(Program& p) {
  std::vector<Need> need(p.n_slots, kNothing);
  for (int slot = 0; slot < p.n_slots; ++slot)
    if (p.root[slot]) need[slot] = kValue;
  for (auto it = p.instructions.rbegin(); it != p.instructions.rend(); ++it) {
    Instruction& s = *it;
    for (int i = 0; i < s.n_out; ++i) s.need = std::max(s.need, need[s.out + i]);
    if (!s.need) continue;
    // The shapes of a body's results may be known only once it has run.
    if (s.op == &call_op) s.need = kValue;
    for (int i = 0; i < s.n_in; ++i) {
      Need& n = need[p.input(s, i)];
      n = std::max(n, reads_shape(s, i) ? kShape : kValue);
    }
  }
}

// Note [Commit]
// The tail of a plan is the instructions that only updates need, if they are elementwise or put values at some places
// of a tensor. They run when nothing can fail any more: outputs are computed, shapes checked, memory allocated. So they
// may write into the memory of the variables, and a call that throws leaves every variable as it was.
void find_tail(Program& p) {
  std::vector<char> only_tail(p.n_slots, 1);
  for (int o : p.outputs) only_tail[o] = 0;
  for (int o : p.fetches) only_tail[o] = 0;
  for (auto it = p.instructions.rbegin(); it != p.instructions.rend(); ++it) {
    Instruction& s = *it;
    s.tail = s.need == kValue && (s.fusible || s.overwrites) && only_tail[s.out];
    if (!s.need) continue;
    if (!s.tail)
      for (int slot : p.reads(s)) only_tail[slot] = 0;
  }
  std::stable_partition(p.instructions.begin(), p.instructions.end(),
                        [](const Instruction& s) { return s.need && !s.tail; });
  std::erase_if(p.instructions, [](const Instruction& s) { return !s.need; });
  p.first_tail = 0;
  while (p.first_tail < p.n_instructions() && !p.instructions[p.first_tail].tail) ++p.first_tail;
  // Instructions on single numbers first: an optimizer's learning rate, computed between its moments and the weights,
  // would split one chain in two.
  std::stable_partition(p.instructions.begin() + p.first_tail, p.instructions.end(),
                        [](const Instruction& s) { return s.one; });
}

namespace {

/// Fills, for each instruction, the range of Program::dead with the slots whose last use it is.
void list_dead(Program& p, const std::vector<int>& last_use, int Instruction::*first, int Instruction::*count) {
  std::vector<std::vector<int>> dead(p.instructions.size());
  for (int slot = 0; slot < p.n_slots; ++slot) {
    int last = last_use[slot];
    if (last >= 0 && !p.root[slot]) dead[last].push_back(slot);
  }
  for (std::size_t k = 0; k < p.instructions.size(); ++k) {
    Instruction& s = p.instructions[k];
    // An output that is never read is dead after its own instruction.
    for (int i = 0; i < s.n_out; ++i)
      if (last_use[s.out + i] < 0 && !p.root[s.out + i]) dead[k].push_back(s.out + i);
    s.*first = p.dead.size();
    s.*count = dead[k].size();
    p.dead.insert(p.dead.end(), dead[k].begin(), dead[k].end());
  }
}

}  // namespace

void find_last_uses(Program& p) {
  p.last_use.assign(p.n_slots, -1);
  p.last_value_use = p.last_use;
  for (int k = 0; k < p.n_instructions(); ++k)
    for (int i = 0; i < p.instruction(k).n_in; ++i) {
      const int slot = p.input(p.instruction(k), i);
      p.last_use[slot] = k;
      if (!reads_shape(p.instruction(k), i)) p.last_value_use[slot] = k;
    }
  list_dead(p, p.last_use, &Instruction::dead, &Instruction::n_dead);
  list_dead(p, p.last_value_use, &Instruction::dead_value, &Instruction::n_dead_value);
}

/// A set whose value a tail instruction computes may write in place if no later instruction reads the old value.
/// Earlier readers are safe: they have read all of it if they ran before, or read the same block first if they are
/// fused with the instruction.
void find_in_place(Program& p) {
  for (Effect& effect : p.effects) {
    const auto tail = p.instructions.begin() + p.first_tail;
    const auto maker =
        std::find_if(tail, p.instructions.end(), [&](const Instruction& s) { return s.out == effect.slot; });
    if (maker == p.instructions.end()) continue;
    const int k = maker - p.instructions.begin();
    if (effect.old_value_slot >= 0) effect.in_place_instruction = k;
    if (effect.mode != Effect::kSet) continue;
    int same = 0, values = 0;
    for (const Effect& other : p.effects) {
      same += other.cell == effect.cell;
      values += other.slot == effect.slot;
    }
    if (same != 1 || values != 1) continue;
    for (const LeafSlot& v : p.variables) {
      if (v.node->cell != effect.cell || p.last_use[v.slot] > k || p.last_use[v.slot] < 0 || p.root[v.slot]) continue;
      const auto reads = p.reads(*maker);
      if (maker->overwrites && (reads[0] != v.slot || std::ranges::count(reads, v.slot) != 1)) continue;
      effect.in_place_instruction = k;
      effect.old_value_slot = v.slot;
    }
  }
}

/// A splat may be the result of an instruction that repeats its input, if it is no root and is read only by elementwise
/// instructions or for its shape.
void find_splats(Program& p) {
  std::vector<char> readable(p.n_slots, 1);
  for (const Instruction& s : p.instructions)
    for (int i = 0; i < s.n_in; ++i)
      if (!s.fusible && !has_bit(s.op->shape_only, i)) readable[p.input(s, i)] = 0;
  for (Instruction& s : p.instructions) {
    const int out = s.out;
    s.splat = s.op->repeated && s.need == kValue && readable[out] && !p.root[out];
  }
}

void find_differentiable(Program& p) {
  std::vector<Outputs> reach(p.n_slots, 0);
  for (std::size_t k = 0; k < p.outputs.size(); ++k) reach[p.outputs[k]] |= output_bit(k);
  for (auto s = p.instructions.rbegin(); s != p.instructions.rend(); ++s) {
    Outputs from_all = 0;
    for (int k = 0; k < s->n_out; ++k) from_all |= reach[s->out + k];
    if (!from_all || !s->op->vjp) continue;
    for (int i = 0; i < s->n_in; ++i) {
      Outputs from = has_bit(s->op->shape_only, i) ? 0 : from_all;
      if (s->op == &call_op) {
        from = 0;
        for (int k = 0; k < s->n_out; ++k)
          if (procedure(*s->attrs.extra).differentiable(i, output_bit(k))) from |= reach[s->out + k];
      }
      reach[p.input(*s, i)] |= from;
    }
  }
  for (const Feed& f : p.feeds) p.differentiable.push_back(reach[f.slot]);
}

}  // namespace kassette::autograd
