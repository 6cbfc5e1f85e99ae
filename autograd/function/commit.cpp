// autograd/function/commit.cpp - the end of a plan's call: the tail runs and the variables get their new values. See
// Note [Commit].
#include "autograd/function/commit.h"

#include <algorithm>

#include "autograd/function/fuse.h"
#include "autograd/program/update.h"
#include "core/check_interrupt.h"
#include "core/fast_paths.h"
#include "core/text.h"
#include "ops/elementwise/binary.h"
#include "ops/engine/detect_nan.h"
#include "ops/engine/device_graph.h"

namespace kassette::autograd {
namespace {

/// Locks several cells, always in the order of their addresses, so that two calls cannot deadlock.
class Locks {
 public:
  explicit Locks(std::vector<Cell*>& cells) : cells_(cells) { cells_.clear(); }
  void add(Cell* cell) { cells_.push_back(cell); }
  void lock() {
    std::ranges::sort(cells_);
    cells_.erase(std::unique(cells_.begin(), cells_.end()), cells_.end());
    for (Cell* c : cells_) c->lock();
    locked_ = true;
  }
  ~Locks() {
    if (locked_)
      for (Cell* c : cells_) c->unlock();
  }

 private:
  std::vector<Cell*>& cells_;
  bool locked_ = false;
};

/// Which of the updates of a function it is, for errors.
std::string which(const Effect& e) { return e.update_index < 0 ? std::string() : text("update ", e.update_index); }

/// Throws RuntimeError if an increment's variable has no value and no earlier update in the list sets one.
void check_increments(const Frame& f) {
  for (std::size_t i = 0; i < f.program.effects.size(); ++i) {
    const Effect& e = f.program.effects[i];
    if (e.in_place_instruction >= 0 || e.mode == Effect::kSet || e.cell->load().storage) continue;
    bool set = false;
    for (std::size_t k = 0; k < i; ++k)
      set = set || (f.program.effects[k].cell == e.cell && f.program.effects[k].mode == Effect::kSet);
    if (!set) fail_unset({e.what, which(e).c_str()}, *e.cell);
  }
}

/// Lets instructions write into a variable's own memory if nothing else refers to that. The variables must be locked.
void bind_in_place(Frame& f) {
  f.commit.in_place.assign(f.program.effects.size(), 0);
  for (std::size_t i = 0; i < f.program.effects.size(); ++i) {
    const Effect& e = f.program.effects[i];
    if (e.in_place_instruction < 0) continue;
    TensorDesc& current = f.own[e.old_value_slot];
    const Value& now = e.cell->value;
    if (e.mode != Effect::kSet) put(current, now);  // an increment is added to the current value
    // The only two references are the cell's and this frame's, and the cell's lock keeps others from taking one.
    if (may_take(FastPath::updated_in_place) && current.storage == now.storage &&
        now.storage->kind != Storage::kBorrowed && now.storage->count.load(std::memory_order_acquire) == 2) {
      put(f.own[f.instruction(e.in_place_instruction).out], value_in(current));
      f.commit.in_place[i] = 1;
      count_taken(FastPath::updated_in_place);
    }
  }
}

/// Groups the instructions of the tail, allocates their results, builds their chains, and checks shapes that were
/// unknown when the updates were recorded.
void prepare_tail(Frame& f) {
  f.commit.groups.clear();
  f.commit.n_chains = 0;
  const int end = f.program.n_instructions();
  for (int k = f.program.first_tail; k < end;) {
    FusionGroup group = form_group(f, k, end);
    if (f.instruction(k).overwrites) f.infer(f.instruction(k));
    allocate_results(f, group);
    if (group.fused) {
      if (f.commit.n_chains == f.commit.chains.size()) f.commit.chains.emplace_back();
      build_chain(f, group, f.commit.chains[f.commit.n_chains++]);
    }
    f.commit.groups.push_back(group);
    k = group.end;
  }
  // The rule of update saw static shapes only: sizes that were unknown then are known now.
  for (const Effect& e : f.program.effects) {
    const TensorDesc& value = e.in_place_instruction >= 0 ? f.own[e.slot] : *f.at[e.slot];
    if (!value.same_shape(e.cell->spec)) fail_shapes({e.what, which(e).c_str()}, e.cell.get(), e.cell->spec, value);
  }
  f.commit.replaced.reserve(f.program.effects.size());
  for (int k = f.program.first_tail; k < end; ++k)
    f.arrays.resize(std::max<std::size_t>(f.arrays.size(), f.instruction(k).n_in));
}

/// Sets a variable to its new value. `room`: memory for an increment that is no instruction.
void store(Frame& f, const Effect& e, Ref<Storage> room) {
  if (e.in_place_instruction >= 0) {
    Value made = value_in(f.own[e.slot]);
    e.cell->set(made);
    f.commit.replaced.push_back(std::move(made));
    return;
  }
  const TensorDesc& from = *f.at[e.slot];
  if (e.mode == Effect::kSet) {
    e.cell->store(value_in(from));
    return;
  }
  for (const LeafSlot& v : f.program.variables)  // the frame's reference would prevent accumulating in place
    if (v.node->cell == e.cell && !f.program.root[v.slot]) f.own[v.slot].storage = {};
  accumulate(*e.cell, from, e.mode == Effect::kSubtract, std::move(room));
}

/// Throws what the tail has found, or what the increments will make that are no instructions: nothing has changed yet.
/// An increment adds to what the updates before it in the list have made of its variable.
void check_updates(Frame& f) {
  const std::vector<Effect>& effects = f.program.effects;
  std::vector<TensorDesc> made(effects.size());  // per update: its variable afterwards
  for (std::size_t i = 0; i < effects.size(); ++i) {
    const Effect& e = effects[i];
    if (e.in_place_instruction >= 0) continue;  // the only update of its variable
    const TensorDesc& value = *f.at[e.slot];
    made[i] = value;
    if (e.mode == Effect::kSet) continue;
    TensorDesc old = make_desc(e.cell->spec, e.cell->device, e.cell->load());
    for (std::size_t k = 0; k < i; ++k)
      if (effects[k].cell == e.cell) old = made[k];
    made[i] = old;
    allocate_output(made[i], old.device);
    const InputView in[] = {{&old, old.data()}, {&value, value.data()}};
    run_binary(op_of(e.mode), in, made[i]);
  }
  throw_found();
}

}  // namespace

void commit(Frame& f) {
  check_increments(f);
  Locks locks(f.commit.cells);
  for (const Effect& e : f.program.effects)
    if (e.in_place_instruction >= 0) locks.add(e.cell.get());
  locks.lock();
  for (const Effect& e : f.program.effects)
    if (e.in_place_instruction >= 0 && !e.cell->value.storage) fail_unset({e.what, which(e).c_str()}, *e.cell);
  bind_in_place(f);
  prepare_tail(f);
  std::vector<Ref<Storage>> room;  // for increments that are no instructions, in case they cannot be made in place
  for (const Effect& e : f.program.effects)
    if (e.in_place_instruction < 0 && e.mode != Effect::kSet)
      room.push_back(Storage::allocate(e.cell->spec.bytes(), e.cell->device));
  auto next_room = room.begin();
  // From here on nothing fails.
  IgnoreInterruptsScope whole;
  auto chain = f.commit.chains.cbegin();
  for (const FusionGroup& group : f.commit.groups) {
    if (group.fused) run_group(f, group, *chain++);
    else run_unfused(f, f.instruction(group.begin));
  }
  if (detecting_nan()) check_updates(f);
  launch_captured();  // others see the variables from now on
  for (std::size_t i = 0; i < f.program.effects.size(); ++i) {
    const Effect& e = f.program.effects[i];
    if (f.commit.in_place[i]) e.cell->changed();
    else store(f, e, e.in_place_instruction < 0 && e.mode != Effect::kSet ? std::move(*next_room++) : Ref<Storage>());
  }
}

}  // namespace kassette::autograd
