// autograd/plan.cpp - building plans, and running them step by step. Fusion is in fuse.cpp, commit in commit.cpp.
#include "autograd/plan.h"

#include <algorithm>

#include "autograd/frame.h"
#include "autograd/update.h"
#include "autograd/walk.h"
#include "core/convert.h"
#include "core/text.h"
#include "ops/elementwise.h"
#include "ops/binary.h"
#include "ops/operand.h"

namespace kassette {

// ---- building --------------------------------------------------------------------------------------------------------

class PlanBuilder {
 public:
  explicit PlanBuilder(const Plan::Request& request) : request_(request), plan_(Ref<Plan>::adopt(new Plan)) {}
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

  void add_feed(const Tensor& t, int i);
  void visit(const Body& root);
  void expand(Node* n);
  /// Follows results of backward nodes to the recorded ops that give them.
  const Body* resolve(const Body& b) const;
  bool fed(const Body& b) const { return fed_.count({b.node.get(), b.out}) > 0; }
  int slot_of(const Body& b);
  void add_node(Node* n);
  void add_step(Node* n, int base);
  void add_effect(Node* n);
  void add_sum(Effect& effect);
  void find_needs(const std::vector<int>& roots);
  void find_tail();
  void find_in_place();
  void reorder(const std::vector<int>& order);
  void find_deaths();
  void find_reach();

  const Plan::Request& request_;
  Ref<Plan> plan_;
  std::unordered_map<Key, int, KeyHash> fed_;
  std::unordered_map<const Node*, int> base_;   // first slot
  std::unordered_map<const Node*, Tensors> expanded_;
  std::vector<Node*> order_;
  std::unordered_map<const Node*, bool> seen_;
  std::vector<const Node*> listed_updates_;
};

void PlanBuilder::add_feed(const Tensor& t, int i) {
  if (!t.defined()) fail<ValueError>(request_.what, ": input ", i, " is an empty Tensor (an uninitialised variable?)");
  const Body& b = Access::body(t);
  Plan::Feed feed{plan_->n_slots_++, {}, {}, false, {}};
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

const Body* PlanBuilder::resolve(const Body& b) const {
  const Body* at = &b;
  while (at->node && at->node->op == &backward_row && !fed(*at)) {
    auto it = expanded_.find(at->node.get());
    if (it == expanded_.end()) break;
    at = &Access::body(it->second[at->out]);
  }
  return at;
}

void PlanBuilder::expand(Node* n) {
  if (expanded_.count(n)) return;
  Scoped<bool> on(context().symbolic, true);
  expanded_[n] = expand_backward(*n);
}

/// Depth first, inputs before the nodes that use them; stops at what is fed.
void PlanBuilder::visit(const Body& raw) {
  auto prepare = [&](const Body& b) -> Node* {
    const Body* at = &b;
    while (at->node && at->node->op == &backward_row && !fed(*at)) {
      expand(at->node.get());
      at = &Access::body(expanded_[at->node.get()][at->out]);
    }
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
    for (std::uint32_t i = n->n_in; i-- > 0;)
      if (Node* m = prepare(n->in()[i]))
        if (!seen_.count(m)) stack.push_back({m, false});
  }
}

int PlanBuilder::slot_of(const Body& raw) {
  const Body& b = *resolve(raw);
  if (!b.node) {
    int slot = plan_->n_slots_++;
    plan_->constants_.push_back({slot, b});
    return slot;
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
  s.in = static_cast<int>(plan_->ins_.size());
  s.n_in = static_cast<int>(n->n_in);
  s.out = base;
  s.n_out = static_cast<int>(n->n_out);
  s.source = n->op->traits & kSource;
  s.fusible = n->op->loops && !n->op->loops->bool_out && n->op->loops->arity == s.n_in && s.n_in <= 2;
  std::vector<int> ins;
  for (std::uint32_t i = 0; i < n->n_in; ++i) ins.push_back(slot_of(n->in()[i]));
  plan_->ins_.insert(plan_->ins_.end(), ins.begin(), ins.end());
  if (s.source) ++plan_->n_sources_;
  plan_->steps_.push_back(std::move(s));
  if (n->op->traits & kEffect && std::find(listed_updates_.begin(), listed_updates_.end(), n) == listed_updates_.end())
    add_effect(n);
}

void PlanBuilder::add_effect(Node* n) {
  if (request_.body)
    fail<ValueError>(request_.what, ": an update inside a body of control flow; return the new value and update outside");
  auto mode = static_cast<Effect::Mode>(n->attrs.a);
  plan_->effects_.push_back({n->in()[0].node->cell, slot_of(n->in()[1]), mode});
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
  s.op = effect.mode == Effect::kAdd ? &binary_row<Add>() : &binary_row<Subtract>();
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

Ref<Plan> PlanBuilder::build() {
  Plan& p = *plan_;
  int i = 0;
  for (const Tensor& t : request_.inputs) add_feed(t, i++);
  for (const auto& [t, value] : request_.feed_dict) {
    const Body &b = Access::body(t), &v = Access::body(value);
    if (!b.node) fail<ValueError>(request_.what, ": a key of feed_dict is a constant; keys are placeholders");
    if (v.symbolic()) fail<ValueError>(request_.what, ": a value of feed_dict is symbolic");
    int slot = fed_[{b.node.get(), b.out}] = p.n_slots_++;
    if (!v.storage) p.variables_.push_back({slot, v.node});   // a variable: read afresh at every call
    else p.constants_.push_back({slot, v});
  }
  for (const Tensor& t : request_.outputs) visit(Access::body(t));
  for (const auto& pair : request_.set_pairs) visit(Access::body(pair.second));
  for (const Tensor& t : request_.update_ops) {
    visit(Access::body(t));
    listed_updates_.push_back(Access::body(t).node.get());
  }
  for (const Tensor& t : request_.fetches) visit(Access::body(t));
  for (Node* n : order_) add_node(n);
  for (const Tensor& t : request_.update_ops) {
    const Body& b = Access::body(t);
    add_effect(b.node.get());
  }
  for (const auto& pair : request_.set_pairs) {
    const Body& b = Access::body(pair.first);
    p.effects_.push_back({b.node->cell, slot_of(Access::body(pair.second)), Effect::kSet});
  }
  for (Effect& e : p.effects_) add_sum(e);
  for (const Tensor& t : request_.outputs) {
    p.outputs_.push_back(slot_of(Access::body(t)));
    Spec s;
    s.set(Access::body(t));
    p.output_specs_.push_back(s);
  }
  for (const Tensor& t : request_.fetches) p.fetches_.push_back(slot_of(Access::body(t)));
  std::vector<int> roots = p.outputs_;
  roots.insert(roots.end(), p.fetches_.begin(), p.fetches_.end());
  p.root_.assign(static_cast<std::size_t>(p.n_slots_), 0);
  for (const Effect& e : p.effects_) roots.push_back(e.slot);
  for (int r : roots) p.root_[static_cast<std::size_t>(r)] = 1;
  find_needs(roots);
  find_tail();
  find_deaths();
  find_in_place();
  find_reach();
  // Nodes of an expanded backward pass that nobody else holds die here; what steps need of them was copied.
  return std::move(plan_);
}

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
    for (int i = 0; i < s.n_in; ++i) {
      // A rule reads the values of inputs on the host (a shape to reshape to), so those are needed even for a shape.
      bool shape = has_bit(s.op->shape_only, i) || (s.need == 1 && !has_bit(s.op->host, i));
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
}

void PlanBuilder::find_deaths() {
  Plan& p = *plan_;
  p.last_use_.assign(static_cast<std::size_t>(p.n_slots_), -1);
  for (std::size_t k = 0; k < p.steps_.size(); ++k)
    for (int i = 0; i < p.steps_[k].n_in; ++i)
      p.last_use_[static_cast<std::size_t>(p.ins_[static_cast<std::size_t>(p.steps_[k].in + i)])] = static_cast<int>(k);
  std::vector<std::vector<int>> dead(p.steps_.size());
  for (int slot = 0; slot < p.n_slots_; ++slot) {
    int last = p.last_use_[static_cast<std::size_t>(slot)];
    if (last >= 0 && !p.root_[static_cast<std::size_t>(slot)]) dead[static_cast<std::size_t>(last)].push_back(slot);
  }
  for (std::size_t k = 0; k < p.steps_.size(); ++k) {
    Plan::Step& s = p.steps_[k];
    // Outputs that nobody reads die with their step.
    for (int i = 0; i < s.n_out; ++i)
      if (p.last_use_[static_cast<std::size_t>(s.out + i)] < 0 && !p.root_[static_cast<std::size_t>(s.out + i)])
        dead[k].push_back(s.out + i);
    s.dead = static_cast<int>(p.dead_.size());
    s.n_dead = static_cast<int>(dead[k].size());
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

Ref<Plan> Plan::build(const Request& request) { return PlanBuilder(request).build(); }

// ---- running ---------------------------------------------------------------------------------------------------------

Frame::Frame(const Plan& p) : at(static_cast<std::size_t>(p.n_slots_)), own(static_cast<std::size_t>(p.n_slots_)) {
  for (std::size_t i = 0; i < at.size(); ++i) at[i] = &own[i];
  for (const auto& [slot, body] : p.constants_) at[static_cast<std::size_t>(slot)] = &body;
}
void Frame::clear() {
  for (Body& b : own) {
    b.storage = {};
    b.node = {};
  }
  args.clear();
}

Plan::~Plan() { delete spare_.load(); }

namespace {

/// A frame of the plan, given back when the call is over.
class Borrowed {
 public:
  Borrowed(const Plan& plan, std::atomic<Frame*>& spare) : spare_(spare), frame_(spare.exchange(nullptr, std::memory_order_acquire)) {
    if (!frame_) frame_ = new Frame(plan);
  }
  ~Borrowed() {
    frame_->clear();
    Frame* nobody = nullptr;
    if (!spare_.compare_exchange_strong(nobody, frame_, std::memory_order_release)) delete frame_;
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  Frame& operator*() { return *frame_; }

 private:
  std::atomic<Frame*>& spare_;
  Frame* frame_;
};

}  // namespace

Tensors Plan::check_feeds(const Tensors& args) const {
  if (args.size() != n_inputs()) fail<ValueError>("function: ", args.size(), " values for ", n_inputs(), " inputs");
  Tensors checked;
  checked.reserve(args.size());
  for (int i = 0; i < n_inputs(); ++i) {
    const Feed& feed = feeds_[static_cast<std::size_t>(i)];
    const Tensor& arg = args.begin()[i];
    if (feed.ignored) {
      checked.push_back(arg);
      continue;
    }
    if (!arg.defined()) {   // "leave unfed"
      if (!feed.fallback)
        fail<ValueError>("function: input ", i, " is an empty Tensor, and the placeholder ", feed.declared, " has no default");
      Body b;
      b.set(feed.declared);
      b.device = cpu;
      Value v = feed.fallback->load();
      b.storage = v.storage;
      b.offset = v.offset;
      checked.push_back(Access::wrap(std::move(b)));
      continue;
    }
    const Body& b = Access::body(arg);
    bool fits = b.rank == feed.declared.rank || feed.declared.rank < 0 || b.rank < 0;
    if (feed.declared.rank >= 0 && b.rank >= 0)
      for (int k = 0; fits && k < b.rank; ++k)
        fits = feed.declared.dims[k] < 0 || b.dims[k] < 0 || feed.declared.dims[k] == b.dims[k];
    if (!fits)
      fail<ValueError>("function: input ", i, feed.name.empty() ? std::string() : " '" + feed.name + "'", " is ",
                       b.shape(), ", declared ", feed.declared);
    if (b.dtype == feed.declared.dtype) {
      checked.push_back(arg);
    } else if (b.symbolic()) {
      fail<TypeError>("function: input ", i, " is ", b.dtype, ", declared ", feed.declared.dtype);
    } else {
      Tensor host = host_copy(arg, feed.declared.dtype);
      checked.push_back(b.device == cpu ? host : host.to(b.device));
    }
  }
  return checked;
}

void Plan::fill(Frame& f, const Tensor* args, int n_args) const {
  if (!missing_.empty()) fail<ValueError>(missing_);
  for (const Feed& feed : feeds_) f.at[static_cast<std::size_t>(feed.slot)] = &f.own[static_cast<std::size_t>(feed.slot)];
  for (int i = 0; i < n_args; ++i) {
    const Feed& feed = feeds_[static_cast<std::size_t>(i)];
    if (feed.ignored || !args[i].defined()) continue;
    const Body& b = Access::body(args[i]);
    auto slot = static_cast<std::size_t>(feed.slot);
    if (b.storage || b.symbolic()) {
      f.at[slot] = &b;
      continue;
    }
    Value v = concrete_value(b, "function");
    Body& own = f.own[slot];
    own.set(b);
    own.device = b.device;
    own.storage = std::move(v.storage);
    own.offset = v.offset;
    f.at[slot] = &own;
  }
  auto load = [&](const Leaf_& leaf) {
    Body& own = f.own[static_cast<std::size_t>(leaf.slot)];
    Value v = leaf.node->cell->load();
    if (!v.storage) fail<RuntimeError>("function: a variable has no value yet; give it one with K::set_value");
    own.storage = std::move(v.storage);
    own.offset = v.offset;
  };
  for (const Leaf_& leaf : variables_) {
    auto slot = static_cast<std::size_t>(leaf.slot);
    if (last_use_[slot] >= 0 || root_[slot]) load(leaf);
  }
  for (const Leaf_& leaf : defaults_) load(leaf);
}

void Plan::prepare(Frame& f, const Step& s) const {
  f.arrays.resize(std::max(f.arrays.size(), static_cast<std::size_t>(s.n_in)));
  f.device = Device();
  for (int i = 0; i < s.n_in; ++i) {
    const Body* b = f.at[static_cast<std::size_t>(ins_[static_cast<std::size_t>(s.in + i)])];
    f.arrays[static_cast<std::size_t>(i)] = {b, b->storage ? b->data() : nullptr};
    if (!f.device.given() && !has_bit(s.op->host, i)) f.device = b->device;
  }
  if (!f.device.given()) f.device = cpu;
}

void Plan::run_step(Frame& f, const Step& s) const {
  if (s.source && f.keys) {
    f.own[static_cast<std::size_t>(s.out)] = Access::body(f.keys->begin()[f.next_key++]);
    return;
  }
  prepare(f, s);
  Body* few[4];
  std::vector<Body*> many;
  Body** outs = few;
  if (s.n_out > 4) {
    many.resize(static_cast<std::size_t>(s.n_out));
    outs = many.data();
  }
  for (int i = 0; i < s.n_out; ++i) {
    outs[i] = &f.own[static_cast<std::size_t>(s.out + i)];
    outs[i]->device = f.device;
  }
  Call call{*s.op, s.attrs, f.arrays.data(), s.n_in, outs, s.n_out, f.device};
  if (s.n_out == 1) {
    s.op->rule(call, outs[0]);
  } else {
    std::vector<Spec> specs(static_cast<std::size_t>(s.n_out));
    s.op->rule(call, specs.data());
    for (int i = 0; i < s.n_out; ++i) outs[i]->set(specs[static_cast<std::size_t>(i)]);
  }
  bool known = true;
  for (int i = 0; i < s.n_out; ++i) known = known && outs[i]->known();
  if (s.need == 1 && known) return;
  if (!(s.op->traits & kView))
    for (int i = 0; i < s.n_out; ++i)
      if (outs[i]->known()) outs[i]->storage = Storage::allocate(outs[i]->checked_bytes(), f.device);
  Kernel kernel = f.device.type() == Device::kCpu ? s.op->cpu : s.op->cuda;
  if (!kernel) fail<NotImplementedError>(s.op->name, ": not available on ", f.device);
  kernel(call);
}

void Plan::bury(Frame& f, const Step& s) const {
  for (int i = 0; i < s.n_dead; ++i) f.own[static_cast<std::size_t>(dead_[static_cast<std::size_t>(s.dead + i)])].storage = {};
}

void Plan::run_steps(Frame& f, int begin, int end) const {
  for (int k = begin; k < end;) {
    if (step(k).fusible && k + 1 < end && step(k + 1).fusible) {
      Item item = gather(f, k, end);
      if (item.fused()) {
        allocate(f, item);
        run_item(f, item);
        for (; k < item.end; ++k) bury(f, step(k));
        continue;
      }
    }
    run_step(f, step(k));
    bury(f, step(k));
    ++k;
  }
}

Tensor Plan::take(Frame& f, int slot) const {
  const Body& from = *f.at[static_cast<std::size_t>(slot)];
  Body b;
  b.set(from);
  b.device = from.device;
  b.storage = from.storage;
  b.offset = from.offset;
  return Access::wrap(std::move(b));
}

Tensors Plan::run(const Tensor* args, int n_args, const Tensors* keys) const {
  Context& c = context();
  Scoped<bool> off(c.recording, false);
  Scoped<bool> eager(c.symbolic, false);
  Borrowed borrowed(*this, spare_);
  Frame& f = *borrowed;
  // Frames are made before the first call with the specs of the leaves; those never change.
  if (!f.leaves_set) {
    for (const auto* list : {&variables_, &defaults_, &sources_})
      for (const Leaf_& leaf : *list) {
        Body& own = f.own[static_cast<std::size_t>(leaf.slot)];
        const Spec& spec = leaf.node->cell->spec;
        own.set(spec);
        own.device = leaf.node->cell->device;
      }
    for (const Effect& e : effects_)
      if (e.current >= 0) {
        Body& own = f.own[static_cast<std::size_t>(e.current)];
        own.set(e.cell->spec);
        own.device = e.cell->device;
      }
    f.leaves_set = true;
  }
  for (const Leaf_& leaf : sources_) {
    Body& own = f.own[static_cast<std::size_t>(leaf.slot)];
    own.flags = kLeaf;
    own.node = leaf.node;
  }
  f.keys = keys;
  f.next_key = 0;
  fill(f, args, n_args);
  run_steps(f, 0, first_tail_);
  Tensors results;
  results.reserve(n_outputs());
  for (int o : outputs_) results.push_back(take(f, o));
  if (!effects_.empty()) commit(f);
  return results;
}

Tensors Plan::connect(const Tensor* args, int n_args, const Tensors* keys) const {
  if (!missing_.empty()) fail<ValueError>(missing_);
  std::vector<Tensor> slots(static_cast<std::size_t>(n_slots_));
  auto at = [&](int slot) -> Tensor& { return slots[static_cast<std::size_t>(slot)]; };
  for (int i = 0; i < n_args; ++i) at(feeds_[static_cast<std::size_t>(i)].slot) = args[i];
  for (const auto& [slot, body] : constants_) at(slot) = Access::wrap(body);
  auto leaf_tensor = [&](const Leaf_& leaf) {
    Body b;
    b.set(leaf.node->cell->spec);
    b.device = leaf.node->cell->device;
    b.flags = static_cast<std::uint8_t>(kLeaf | (leaf.node->cell->kind == Leaf::placeholder ? kSymbolic : 0));
    b.node = leaf.node;
    at(leaf.slot) = Access::wrap(std::move(b));
  };
  for (const Leaf_& leaf : variables_) leaf_tensor(leaf);
  for (const Leaf_& leaf : defaults_) leaf_tensor(leaf);
  for (const Leaf_& leaf : sources_) leaf_tensor(leaf);
  int key = 0;
  for (int k = 0; k < first_tail_; ++k) {   // the tail serves updates alone
    const Step& s = step(k);
    if (s.source && keys) {
      at(s.out) = keys->begin()[key++];
      continue;
    }
    std::vector<In> in(static_cast<std::size_t>(s.n_in));
    for (int i = 0; i < s.n_in; ++i) in[static_cast<std::size_t>(i)] = In(at(ins_[static_cast<std::size_t>(s.in + i)]));
    apply(*s.op, s.attrs, in.data(), s.n_in, &at(s.out), s.n_out);
    for (int i = 0; i < s.n_dead; ++i) at(dead_[static_cast<std::size_t>(s.dead + i)]) = Tensor();
  }
  Tensors results;
  for (int o : outputs_) results.push_back(at(o));
  return results;
}

}  // namespace kassette
