// autograd/plan_build.cpp - from a segment of the tape to the steps of a plan.
#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "autograd/control.h"
#include "autograd/deferred.h"
#include "autograd/plan.h"
#include "autograd/update.h"
#include "core/sparse.h"
#include "core/text.h"
#include "ops/binary.h"
#include "ops/elementwise.h"
#include "ops/like.h"
#include "ops/reduce.h"

namespace kassette {

class PlanBuilder {
 public:
  PlanBuilder(const Plan::Request& request, bool keeps_calls) : request_(request), keeps_calls_(keeps_calls), plan_(Ref<Plan>::adopt(new Plan)) {}
  Ref<Plan> build();

 private:
  struct Key {
    const Node* node;
    int out;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& k) const {
      return std::hash<const void*>()(k.node) * 31 + static_cast<std::size_t>(k.out);
    }
  };

  void add_input(const Tensor& t, int i);
  void add_feed(const Tensor& t, int i);
  void add_fixed(const Body& key, const Body& value);
  Tensors output_parts();
  void visit(const Body& root);
  const Tensors& expanded(const Node* n);
  /// Follows results of deferred nodes to the recorded ops that give them.
  const Body* resolve(const Body& b);
  bool fed(const Body& b) const { return fed_.count({b.node.get(), b.out}) > 0; }
  /// An input that is read for its shape alone, which the tape knows: a plan needs nothing behind it.
  bool only_known_shape(const Node& n, std::uint32_t i) const {
    const Body& b = n.in()[i];
    bool shape_only = has_bit(n.op->shape_only, static_cast<int>(i)) && !(n.op->traits & kSource);   // a key draws from its source
    return shape_only && b.node && b.known() && !fed(b);
  }
  int shape_slot(const Body& b);
  int slot_of(const Body& b);
  void add_node(Node* n);
  void add_step(Node* n, int base);
  void add_effect(Node* n);
  void add_sum(Effect& effect);
  void find_needs(const std::vector<int>& roots);
  void find_tail();
  void find_in_place();
  void find_thin();
  void find_hand_overs();
  static bool reads_shape(const Plan::Step& s, int i);
  void list_deaths(const std::vector<int>& last_use, int Plan::Step::* first, int Plan::Step::* count);
  void find_deaths();
  void find_reach();
  void find_sources();
  void find_deferrable();

  const Plan::Request& request_;
  const bool keeps_calls_;
  Ref<Plan> plan_;
  std::unordered_map<Key, int, KeyHash> fed_;
  std::unordered_map<const Node*, int> base_;   // first slot
  std::unordered_map<const Node*, Tensors> expanded_;   // deferred nodes; of those that stay steps nothing
  bool nested_ = false;
  std::vector<Node*> order_;
  std::unordered_map<const Node*, bool> seen_;
  std::unordered_map<const Storage*, std::vector<std::size_t>> constants_;   // indices of the plan's
  std::vector<const Node*> listed_updates_;
  std::unordered_map<int, KeySource> key_sources_;   // by the slot of the key
};

void PlanBuilder::add_input(const Tensor& t, int i) {
  if (!t.defined()) fail<ValueError>(request_.what, ": input ", i, " is an empty Tensor (an uninitialised variable?)");
  Spec declared;
  declared.set(Access::body(t));
  bool sparse = is_sparse(t);
  plan_->inputs_.push_back({declared, sparse});
  if (!sparse) return add_feed(t, i);
  for (int part : {kIndices, kValues, kDenseShape}) {
    const Body& b = fed_part(Access::body(t), part);
    if (!b.node)
      fail<ValueError>(request_.what, ": input ", i, " is a sparse tensor of shape ", declared, " that is not a placeholder; make it with ",
                       "K::placeholder(shape, None, dtype, /*sparse=*/true)");
    add_feed(Access::wrap(b), i);
  }
}

/// The outputs; of sparse ones the parts.
Tensors PlanBuilder::output_parts() {
  Tensors parts;
  for (const Tensor& t : request_.outputs) {
    Spec declared;
    declared.set(Access::body(t));
    plan_->results_.push_back({declared, is_sparse(t)});
    if (!is_sparse(t)) {
      parts.push_back(t);
      continue;
    }
    if (request_.body) fail_sparse(request_.what, Access::body(t));
    for (int part : {kIndices, kValues, kDenseShape}) parts.push_back(sparse_part(t, part));
  }
  return parts;
}

void PlanBuilder::add_feed(const Tensor& t, int i) {
  const Body& b = Access::body(t);
  Plan::Feed feed{plan_->n_slots_++, {}, b.device, {}, false, {}};
  feed.declared.set(b);
  if (!b.node) {
    if (!(b.flags & kPhase))
      fail<ValueError>(request_.what, ": input ", i, " of shape ", b.shape(),
                       " is a constant; inputs are placeholders or other tensors on the tape");
    feed.ignored = true;   // a frozen learning phase
  } else {
    if (!fed_.insert({{b.node.get(), b.out}, feed.slot}).second)
      fail<ValueError>(request_.what, ": input ", i, " of shape ", b.shape(), " is listed twice");
    if ((b.flags & kLeaf) && b.node->cell->value.storage) feed.fallback = b.node->cell;
    if ((b.flags & kLeaf) && b.node->cell->name) feed.name = b.node->cell->name;
    plan_->keep_.push_back(b.node);
  }
  plan_->feeds_.push_back(std::move(feed));
}

const Body* PlanBuilder::resolve(const Body& b) {
  const Body* at = &b;
  while (at->node && is_deferred(*at->node) && !fed(*at)) {
    const Tensors& results = expanded(at->node.get());
    if (results.empty()) break;
    at = &Access::body(results.begin()[at->out]);
  }
  return at;
}

/// The results of a deferred node as recorded ops; empty where the node stays a step.
const Tensors& PlanBuilder::expanded(const Node* n) {
  auto [it, fresh] = expanded_.try_emplace(n);
  if (!fresh) return it->second;
  if (keeps_calls_ && deferred(n->attrs).may_be_step()) {
    nested_ = true;
  } else {
    Scoped<bool> on(context().symbolic, true);
    it->second = expand(*n);
  }
  return it->second;
}

/// Depth first, inputs before the nodes that use them; stops at what is fed.
void PlanBuilder::visit(const Body& raw) {
  auto prepare = [&](const Body& b) -> Node* {
    const Body* at = resolve(b);
    return at->node && !fed(*at) ? at->node.get() : nullptr;
  };
  Node* root = prepare(raw);
  if (!root) return;
  std::vector<std::pair<Node*, bool>> stack{{root, false}};
  while (!stack.empty()) {
    auto [n, done] = stack.back();
    stack.pop_back();
    if (done) {
      order_.push_back(n);
      continue;
    }
    if (!seen_.insert({n, true}).second) continue;
    stack.push_back({n, true});
    // In reverse, so that the first input is computed first: plans keep the order in which the user wrote things.
    for (std::uint32_t i = n->n_in; i-- > 0;) {
      if (n->op && only_known_shape(*n, i)) continue;
      if (Node* m = prepare(n->in()[i]))
        if (!seen_.count(m)) stack.push_back({m, false});
    }
  }
}

int PlanBuilder::shape_slot(const Body& b) {
  int slot = plan_->n_slots_++;
  Body shape;
  shape.set(b);
  shape.device = b.device;
  plan_->constants_.push_back({slot, std::move(shape)});
  return slot;
}

int PlanBuilder::slot_of(const Body& raw) {
  const Body& b = *resolve(raw);
  if (!b.node) {
    // One slot for one constant, so that steps on the same inputs are seen to be that.
    std::vector<std::size_t>& same = constants_[b.storage.get()];
    for (std::size_t i : same) {
      const auto& [slot, known] = plan_->constants_[i];
      if (known.offset == b.offset && known.same_shape(b) && known.dtype == b.dtype) return slot;
    }
    same.push_back(plan_->constants_.size());
    plan_->constants_.push_back({plan_->n_slots_, b});
    return plan_->n_slots_++;
  }
  auto it = fed_.find({b.node.get(), b.out});
  if (it != fed_.end()) return it->second;
  return base_.at(b.node.get()) + b.out;
}

void PlanBuilder::add_node(Node* n) {
  int base = base_[n] = plan_->n_slots_;
  plan_->n_slots_ += static_cast<int>(n->n_out);
  if (n->op) {
    add_step(n, base);
    return;
  }
  plan_->keep_.push_back(Ref<Node>(n));
  Cell& cell = *n->cell;
  if (cell.kind == Leaf::variable) {
    plan_->variables_.push_back({base, Ref<Node>(n)});
  } else if (cell.kind == Leaf::source) {
    plan_->sources_.push_back({base, Ref<Node>(n)});
  } else if (cell.value.storage) {
    plan_->defaults_.push_back({base, Ref<Node>(n)});
  } else if (plan_->missing_.empty()) {
    plan_->missing_ =
        cell.in_body ? text(request_.what, ": a tensor made inside the body of a control-flow function was used outside of it")
                     : text(request_.what, ": the placeholder ", cell.name ? text("'", cell.name, "' ") : std::string(),
                            cell.spec, " is not fed; list it among the inputs of a K::function");
  }
}

void PlanBuilder::add_step(Node* n, int base) {
  Plan::Step s{};
  s.op = n->op;
  s.attrs = n->attrs;
  s.function = n->function;
  s.in = static_cast<int>(plan_->ins_.size());
  s.n_in = static_cast<int>(n->n_in);
  s.out = base;
  s.n_out = static_cast<int>(n->n_out);
  s.source = n->op->traits & kSource;
  if (s.source) key_sources_[base] = key_source(*n);
  s.fusible = n->op->loops && !n->op->loops->bool_out && n->op->loops->arity == s.n_in && s.n_in <= 2;
  s.one = s.fusible && std::all_of(n->in(), n->in() + n->n_in, [](const Body& b) { return b.known() && b.numel() == 1; });
  std::vector<int> ins;
  for (std::uint32_t i = 0; i < n->n_in; ++i) ins.push_back(only_known_shape(*n, i) ? shape_slot(n->in()[i]) : slot_of(n->in()[i]));
  plan_->ins_.insert(plan_->ins_.end(), ins.begin(), ins.end());
  plan_->steps_.push_back(std::move(s));
  if (n->op->traits & kEffect && std::find(listed_updates_.begin(), listed_updates_.end(), n) == listed_updates_.end())
    add_effect(n);
}

void PlanBuilder::add_effect(Node* n) {
  if (request_.body)
    fail<ValueError>(request_.what, ": an update inside a body of control flow; return the new value and update outside");
  auto mode = static_cast<Effect::Mode>(n->attrs.a);
  plan_->effects_.push_back({n->in()[0].node->cell, slot_of(n->in()[1]), mode, update_name(n->attrs)});
}

/// An add or subtract that is the only effect on its variable becomes a step of its own, which fuses with what makes the
/// increment and writes in place. Its variable is read under the lock at commit, so that no increment is lost.
void PlanBuilder::add_sum(Effect& effect) {
  Plan& p = *plan_;
  const Cell& cell = *effect.cell;
  if (effect.mode == Effect::kSet || (cell.spec.dtype != float32 && cell.spec.dtype != float64) || cell.device != cpu) return;
  for (const Effect& other : p.effects_)
    if (&other != &effect && other.cell == effect.cell) return;
  Plan::Step s{};
  s.op = &row_of(effect.mode);
  s.in = static_cast<int>(p.ins_.size());
  s.n_in = 2;
  effect.current = p.n_slots_++;
  p.ins_.push_back(effect.current);
  p.ins_.push_back(effect.slot);
  s.out = effect.slot = p.n_slots_++;
  s.n_out = 1;
  s.fusible = true;
  p.steps_.push_back(std::move(s));
}

/// What a pair of feed_dict puts in the place of a tensor.
void PlanBuilder::add_fixed(const Body& key, const Body& value) {
  if (!key.node) fail<ValueError>(request_.what, ": a key of feed_dict is a constant; keys are placeholders");
  if (value.symbolic()) fail<ValueError>(request_.what, ": a value of feed_dict is symbolic");
  if (is_sparse(key) != is_sparse(value))
    fail<ValueError>(request_.what, ": feed_dict has a ", is_sparse(value) ? "sparse value for a dense" : "dense value for a sparse", " tensor of shape ",
                     key.shape(), "; K::to_dense and K::to_sparse convert");
  if (is_sparse(key)) {
    for (int part : {kIndices, kValues, kDenseShape}) add_fixed(fed_part(key, part), sparse_part(value, part));
    return;
  }
  int slot = fed_[{key.node.get(), key.out}] = plan_->n_slots_++;
  if (!value.storage) plan_->variables_.push_back({slot, value.node});   // a variable: read afresh at every call
  else plan_->constants_.push_back({slot, value});
}

Ref<Plan> PlanBuilder::build() {
  Plan& p = *plan_;
  p.what_ = request_.what;
  int i = 0;
  for (const Tensor& t : request_.inputs) add_input(t, i++);
  const Tensors outputs = output_parts();
  for (const auto& [t, value] : request_.feed_dict) add_fixed(Access::body(t), Access::body(value));
  for (const Tensor& t : outputs) visit(Access::body(t));
  for (const SetPair& pair : request_.set_pairs) visit(Access::body(pair.value));
  for (const Tensor& t : request_.update_ops) {
    visit(Access::body(t));
    listed_updates_.push_back(Access::body(t).node.get());
  }
  Tensors fetches;
  for (const Tensor& t : request_.fetches) fetches.push_back(is_sparse(t) ? sparse_part(t, kValues) : t);
  for (const Tensor& t : fetches) visit(Access::body(t));
  // Bodies go in the order in which the user wrote them, as a plain loop does: see Note [Order of a walk].
  if (request_.body && expanded_.empty())
    std::stable_sort(order_.begin(), order_.end(), [](const Node* a, const Node* b) { return a->seq < b->seq; });
  for (Node* n : order_) add_node(n);
  // In the order of the list: each pair has its place there, and the ops have the others.
  auto pair = request_.set_pairs.begin();
  const Tensor* op = request_.update_ops.begin();
  for (int place = 0; pair != request_.set_pairs.end() || op != request_.update_ops.end(); ++place) {
    if (pair == request_.set_pairs.end() || (pair->number != place && op != request_.update_ops.end())) {
      add_effect(Access::body(*op++).node.get());
      continue;
    }
    const Ref<Node>& variable = Access::body(pair->variable).node;
    p.effects_.push_back({variable->cell, slot_of(Access::body(pair->value)), Effect::kSet, request_.what, pair->number});
    ++pair;
  }
  for (Effect& e : p.effects_) add_sum(e);
  for (const Tensor& t : outputs) {
    p.outputs_.push_back(slot_of(Access::body(t)));
    Body& b = p.outputs_as_recorded_.emplace_back();
    b.set(Access::body(t));
    b.device = Access::body(t).device;
    b.flags = Access::body(t).flags & kPhase;
  }
  for (const Tensor& t : fetches) p.fetches_.push_back(slot_of(Access::body(t)));
  std::vector<int> roots = p.outputs_;
  roots.insert(roots.end(), p.fetches_.begin(), p.fetches_.end());
  p.root_.assign(static_cast<std::size_t>(p.n_slots_), 0);
  for (const Effect& e : p.effects_) roots.push_back(e.slot);
  for (int r : roots) p.root_[static_cast<std::size_t>(r)] = 1;
  find_needs(roots);
  find_tail();
  find_hand_overs();
  find_deaths();
  find_in_place();
  find_thin();
  find_reach();
  find_sources();
  find_deferrable();
  // Nodes of an expanded backward pass that nobody else holds die here; what steps need of them was copied.
  return std::move(plan_);
}

/// Whether step s reads of its input i the shape alone. A rule reads the values of inputs on the host (a shape to reshape to), so those are needed even
/// for a shape.
bool PlanBuilder::reads_shape(const Plan::Step& s, int i) { return has_bit(s.op->shape_only, i) || (s.need == 1 && !has_bit(s.op->host, i)); }

/// What is needed of each slot: nothing, its shape, its value.
void PlanBuilder::find_needs(const std::vector<int>& roots) {
  Plan& p = *plan_;
  std::vector<std::uint8_t> need(static_cast<std::size_t>(p.n_slots_), 0);
  auto at = [&](int slot) -> std::uint8_t& { return need[static_cast<std::size_t>(slot)]; };
  for (int r : roots) at(r) = 2;
  for (auto it = p.steps_.rbegin(); it != p.steps_.rend(); ++it) {
    Plan::Step& s = *it;
    for (int i = 0; i < s.n_out; ++i) s.need = std::max(s.need, at(s.out + i));
    if (!s.need) continue;
    // What a body gives may have sizes that only running it tells.
    if (s.op == &call_row) s.need = 2;
    for (int i = 0; i < s.n_in; ++i) {
      const bool shape = reads_shape(s, i);
      std::uint8_t& n = at(p.ins_[static_cast<std::size_t>(s.in + i)]);
      n = std::max<std::uint8_t>(n, shape ? 1 : 2);
    }
  }
}

// Note [Commit]
// The tail of a plan are the elementwise steps that serve updates alone. They run when nothing can fail any more: outputs
// are made, shapes are checked, memory is there. So they may write into the variables themselves, and a call that throws
// leaves every variable as it was.
void PlanBuilder::find_tail() {
  Plan& p = *plan_;
  std::vector<char> only_tail(static_cast<std::size_t>(p.n_slots_), 1);
  for (int o : p.outputs_) only_tail[static_cast<std::size_t>(o)] = 0;
  for (int o : p.fetches_) only_tail[static_cast<std::size_t>(o)] = 0;
  for (auto it = p.steps_.rbegin(); it != p.steps_.rend(); ++it) {
    Plan::Step& s = *it;
    s.tail = s.need == 2 && s.fusible && only_tail[static_cast<std::size_t>(s.out)];
    if (!s.need) continue;
    if (!s.tail)
      for (int i = 0; i < s.n_in; ++i) only_tail[static_cast<std::size_t>(p.ins_[static_cast<std::size_t>(s.in + i)])] = 0;
  }
  std::stable_partition(p.steps_.begin(), p.steps_.end(), [](const Plan::Step& s) { return s.need && !s.tail; });
  p.steps_.erase(std::remove_if(p.steps_.begin(), p.steps_.end(), [](const Plan::Step& s) { return !s.need; }), p.steps_.end());
  p.first_tail_ = 0;
  while (p.first_tail_ < static_cast<int>(p.steps_.size()) && !p.steps_[static_cast<std::size_t>(p.first_tail_)].tail) ++p.first_tail_;
  // Numbers first: the rate of an optimizer, computed between its moments and the weights, would cut one pass over memory in two.
  std::stable_partition(p.steps_.begin() + p.first_tail_, p.steps_.end(), [](const Plan::Step& s) { return s.one; });
}

/// Pairs the call steps that rewind a procedure with the step that ran it, if that is there, and with each other: see
/// Note [Hand-over]. A tape is known by its procedure and the slots of its inputs.
void PlanBuilder::find_hand_overs() {
  Plan& p = *plan_;
  auto end = p.steps_.begin() + p.first_tail_;
  if (std::none_of(p.steps_.begin(), end, [](const Plan::Step& s) { return s.op == &call_row; })) return;
  struct Known {
    const Extra* procedure;
    std::vector<int> ins;
  };
  std::vector<Known> known;
  std::unordered_map<const Extra*, std::vector<int>> by_procedure;
  auto find = [&](const Extra* procedure, const int* ins, int n) {
    for (int t : by_procedure[procedure])
      if (std::equal(ins, ins + n, known[static_cast<std::size_t>(t)].ins.begin(), known[static_cast<std::size_t>(t)].ins.end())) return t;
    return -1;
  };
  auto ins = [&](const Plan::Step& s) { return p.ins_.data() + s.in; };
  for (auto s = p.steps_.begin(); s != end; ++s) {
    if (s->op != &call_row) continue;
    Rewound r = rewound_by(s->attrs);
    if (!r.of) continue;
    s->of_tape = find(r.of, ins(*s), r.n_in);
    if (s->of_tape >= 0) continue;
    s->of_tape = static_cast<int>(known.size());
    by_procedure[r.of].push_back(s->of_tape);
    known.push_back({r.of, std::vector<int>(ins(*s), ins(*s) + r.n_in)});
  }
  std::vector<char> made(known.size(), 0);
  for (auto s = p.steps_.begin(); s != end; ++s) {
    if (s->op != &call_row) continue;
    int tape = find(s->attrs.extra.get(), ins(*s), s->n_in);
    if (tape >= 0 && !std::exchange(made[static_cast<std::size_t>(tape)], 1)) s->own_tape = tape;
  }
  // The step that makes a tape comes before those that take it, as it may: all its inputs are theirs. Moving one that takes
  // a tape itself may put it before its own maker, so once more.
  for (bool moved = true; std::exchange(moved, false);)
    for (auto s = p.steps_.begin(); s != end; ++s) {
      if (s->own_tape < 0) continue;
      auto taker = std::find_if(p.steps_.begin(), s, [&](const Plan::Step& t) { return t.of_tape == s->own_tape; });
      if (taker == s) continue;
      std::rotate(taker, s, s + 1);
      moved = true;
    }
  for (const Known& k : known) p.tapes_.emplace_back(k.ins.size(), 0);
  // An adjoint's tape goes on from the tape that it rewound: the whole family is consumed by the last that takes of any.
  std::vector<std::size_t> family(known.size());
  std::iota(family.begin(), family.end(), std::size_t(0));
  for (auto s = p.steps_.begin(); s != end; ++s)
    if (s->own_tape >= 0 && s->of_tape >= 0) family[static_cast<std::size_t>(s->own_tape)] = family[static_cast<std::size_t>(s->of_tape)];
  std::vector<char> taken(known.size(), 0), consumed(known.size(), 0);
  for (auto s = end; s != p.steps_.begin();) {
    --s;
    if (s->of_tape < 0) continue;
    auto of = static_cast<std::size_t>(s->of_tape);
    s->last_taker = !std::exchange(taken[of], 1);
    s->consumes = !std::exchange(consumed[family[of]], 1);
    for (int i : *rewound_by(s->attrs).wanted) p.tapes_[of][static_cast<std::size_t>(i)] = 1;
    if (s->own_tape < 0) continue;   // what its own takers want of the inputs that it shares with the rewound procedure
    const std::vector<char>& own = p.tapes_[static_cast<std::size_t>(s->own_tape)];
    for (std::size_t i = 0; i < p.tapes_[of].size(); ++i) p.tapes_[of][i] = p.tapes_[of][i] || own[i];
  }
  for (auto s = p.steps_.begin(); s != end; ++s) {
    if (s->own_tape < 0) continue;
    auto takes = [&](const Plan::Step& t) { return t.of_tape == s->own_tape; };
    auto taker = std::find_if(p.steps_.begin(), end, takes);
    if (std::count_if(p.steps_.begin(), end, takes) == 1 && taker->own_tape < 0) s->taker = static_cast<int>(taker - p.steps_.begin());
  }
}

void PlanBuilder::find_deaths() {
  Plan& p = *plan_;
  p.last_use_.assign(static_cast<std::size_t>(p.n_slots_), -1);
  p.last_value_use_ = p.last_use_;
  for (std::size_t k = 0; k < p.steps_.size(); ++k)
    for (int i = 0; i < p.steps_[k].n_in; ++i) {
      const Plan::Step& s = p.steps_[k];
      const auto slot = static_cast<std::size_t>(p.input(s, i));
      p.last_use_[slot] = static_cast<int>(k);
      if (!reads_shape(s, i)) p.last_value_use_[slot] = static_cast<int>(k);
    }
  list_deaths(p.last_use_, &Plan::Step::dead, &Plan::Step::n_dead);
  list_deaths(p.last_value_use_, &Plan::Step::spent, &Plan::Step::n_spent);
}

/// Lists for each step the slots of which it is the last use.
void PlanBuilder::list_deaths(const std::vector<int>& last_use, int Plan::Step::* first, int Plan::Step::* count) {
  Plan& p = *plan_;
  std::vector<std::vector<int>> dead(p.steps_.size());
  for (int slot = 0; slot < p.n_slots_; ++slot) {
    int last = last_use[static_cast<std::size_t>(slot)];
    if (last >= 0 && !p.root_[static_cast<std::size_t>(slot)]) dead[static_cast<std::size_t>(last)].push_back(slot);
  }
  for (std::size_t k = 0; k < p.steps_.size(); ++k) {
    Plan::Step& s = p.steps_[k];
    // Outputs that nobody reads die with their step.
    for (int i = 0; i < s.n_out; ++i)
      if (last_use[static_cast<std::size_t>(s.out + i)] < 0 && !p.root_[static_cast<std::size_t>(s.out + i)]) dead[k].push_back(s.out + i);
    s.*first = static_cast<int>(p.dead_.size());
    s.*count = static_cast<int>(dead[k].size());
    p.dead_.insert(p.dead_.end(), dead[k].begin(), dead[k].end());
  }
}

/// A set whose value a tail step computes may write in place if nobody reads the old value after that step. Steps before it
/// have read it: all of it if they ran earlier, the same block if they are fused with it.
void PlanBuilder::find_in_place() {
  Plan& p = *plan_;
  for (Effect& effect : p.effects_) {
    for (int k = p.first_tail_; effect.current >= 0 && k < static_cast<int>(p.steps_.size()); ++k)
      if (p.step(k).out == effect.slot) effect.step = k;
    if (effect.mode != Effect::kSet) continue;
    int same = 0, values = 0;
    for (const Effect& other : p.effects_) {
      same += other.cell == effect.cell;
      values += other.slot == effect.slot;
    }
    if (same != 1 || values != 1) continue;
    for (int k = p.first_tail_; k < static_cast<int>(p.steps_.size()); ++k) {
      if (p.step(k).out != effect.slot) continue;
      for (const auto& v : p.variables_) {
        auto slot = static_cast<std::size_t>(v.slot);
        if (v.node->cell != effect.cell || p.last_use_[slot] > k || p.last_use_[slot] < 0 || p.root_[slot]) continue;
        effect.step = k;
        effect.current = v.slot;
      }
    }
  }
}

/// Steps that repeat their input and whose result is no root and is read by elementwise steps alone, or for its shape.
void PlanBuilder::find_thin() {
  Plan& p = *plan_;
  std::vector<char> readable(static_cast<std::size_t>(p.n_slots_), 1);
  for (const Plan::Step& s : p.steps_)
    for (int i = 0; i < s.n_in; ++i)
      if (!s.fusible && !has_bit(s.op->shape_only, i)) readable[static_cast<std::size_t>(p.input(s, i))] = 0;
  for (Plan::Step& s : p.steps_) {
    auto out = static_cast<std::size_t>(s.out);
    s.thin = s.op->repeated && s.need == 2 && readable[out] && !p.root_[out];
  }
}

void PlanBuilder::find_reach() {
  Plan& p = *plan_;
  std::vector<char> reach(static_cast<std::size_t>(p.n_slots_), 0);
  for (int o : p.outputs_) reach[static_cast<std::size_t>(o)] = 1;
  for (auto it = p.steps_.rbegin(); it != p.steps_.rend(); ++it) {
    bool any = false;
    for (int i = 0; i < it->n_out; ++i) any = any || reach[static_cast<std::size_t>(it->out + i)];
    if (!any || !it->op->vjp) continue;
    for (int i = 0; i < it->n_in; ++i)
      if (!has_bit(it->op->shape_only, i)) reach[static_cast<std::size_t>(p.ins_[static_cast<std::size_t>(it->in + i)])] = 1;
  }
  for (const Plan::Feed& f : p.feeds_) p.reaches_.push_back(reach[static_cast<std::size_t>(f.slot)]);
}

void PlanBuilder::find_sources() {
  for (const Plan::Step& s : plan_->steps_)
    if (s.source) plan_->key_sources_.push_back(key_sources_.at(s.out));
}

/// Whether a call with symbolic tensors may be one node, see Note [Nested functions].
void PlanBuilder::find_deferrable() {
  constexpr std::size_t kLarge = 64;   // steps
  Plan& p = *plan_;
  if (nested_) {
    p.nested_ = std::make_unique<Plan::Nested>();
    p.nested_->request = request_;
  }
  if (request_.body || p.outputs_.empty() || p.outputs_.size() > kMaxOutputs || (!nested_ && p.steps_.size() <= kLarge)) return;
  std::vector<std::uint64_t> inputs(static_cast<std::size_t>(p.n_slots_), 0);
  for (std::size_t i = 0; i < p.feeds_.size() && i < 64; ++i) inputs[static_cast<std::size_t>(p.feeds_[i].slot)] = std::uint64_t(1) << i;
  for (const Plan::Step& s : p.steps_) {
    if (s.op->traits & (kSource | kDraws | kEffect | kPrints)) return;
    std::uint64_t from = 0;
    for (int i = 0; i < s.n_in; ++i) from |= inputs[static_cast<std::size_t>(p.input(s, i))];
    std::fill_n(inputs.begin() + s.out, s.n_out, from);
  }
  std::vector<char> taken(static_cast<std::size_t>(p.n_slots_), 0);
  for (std::size_t i = 0; i < p.outputs_.size(); ++i) {
    auto slot = static_cast<std::size_t>(p.outputs_[i]);
    const Body& b = p.outputs_as_recorded_[i];
    bool shape = b.rank <= 1 && b.dtype.is_integer();   // the tape knows its dims from its ops
    if (shape || slot < p.feeds_.size() || std::exchange(taken[slot], 1)) return;
    p.depends_.push_back(inputs[slot]);
  }
  p.deferrable_ = true;
}

Ref<Plan> Plan::build(const Request& request, bool keeps_calls) { return PlanBuilder(request, keeps_calls).build(); }

}  // namespace kassette
