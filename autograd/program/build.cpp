// autograd/program/build.cpp - from a segment of the tape to the instructions of a program.
#include "autograd/program/build.h"

#include <algorithm>
#include <unordered_map>

#include "autograd/program/call.h"
#include "autograd/tape/deferred.h"
#include "autograd/program/passes.h"
#include "autograd/program/residuals_pass.h"
#include "autograd/program/update.h"
#include "core/sparse.h"
#include "core/stack.h"
#include "core/text.h"
#include "ops/elementwise/elementwise.h"

namespace kassette::autograd {
namespace {

class ProgramBuilder {
 public:
  ProgramBuilder(const ProgramRequest& request, bool keeps_calls) : request_(request), keeps_calls_(keeps_calls) {}
  Program build();
  /// True if an instruction is a deferred call: Note [Nested functions].
  bool nested() const { return nested_; }

 private:
  struct Key {
    const Node* node;
    int out;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& k) const { return std::hash<const void*>()(k.node) * 31 + k.out; }
  };

  void add_input(const Tensor& t, int i);
  void add_feed(const Tensor& t, int i);
  void add_fixed(const TensorDesc& key, const TensorDesc& value);
  Tensors output_parts();
  void visit(const TensorDesc& root);
  const Tensors& expanded(const Node* n);
  /// `b`, or if it is the result of a deferred node, the recorded result that it stands for.
  const TensorDesc* resolve(const TensorDesc& b);
  bool fed(const TensorDesc& b) const { return fed_.count({b.node.get(), b.out}) > 0; }
  /// True if only the shape of input i is read, and the tape knows it: the plan need not compute that input.
  bool only_known_shape(const Node& n, std::uint32_t i) const {
    const TensorDesc& b = n.in()[i];
    bool shape_only = has_bit(n.op->shape_only, i) && !(n.op->traits & kMakesKey);  // a key draws from its source
    return shape_only && b.node && b.known() && !fed(b);
  }
  int shape_slot(const TensorDesc& b);
  int slot_of(const TensorDesc& b);
  void add_node(Node* n);
  void add_instruction(Node* n, int base);
  void add_effect(Node* n);
  void add_sum(Effect& effect);
  void add_sums();

  const ProgramRequest& request_;
  const bool keeps_calls_;
  Program program_;
  std::unordered_map<Key, int, KeyHash> fed_;
  std::unordered_map<const Node*, int> base_;  // first slot
  // results of deferred nodes; empty for those that remain instructions
  std::unordered_map<const Node*, Tensors> expanded_;
  bool nested_ = false;
  std::vector<Node*> order_;
  std::unordered_map<const Node*, bool> seen_;
  std::unordered_map<const Storage*, std::vector<std::size_t>> constants_;  // indices into Program::constants
  std::vector<const Node*> listed_updates_;
  std::unordered_map<int, KeySource> key_sources_;  // by the slot of the key
};

void ProgramBuilder::add_input(const Tensor& t, int i) {
  if (!t.defined()) fail_item<ValueError>(request_.what, "input", i, "is ", kEmptyTensor);
  TensorSpec declared;
  declared.set(Access::desc(t));
  bool sparse = is_sparse(t);
  program_.inputs.push_back({declared, sparse});
  if (!sparse) return add_feed(t, i);
  for (int part : {kIndices, kValues, kDenseShape}) {
    const TensorDesc& b = fed_part(Access::desc(t), part);
    if (!b.node)
      fail_item<ValueError>(request_.what, "input", i, "is a sparse tensor of shape ", declared,
                            " that is not a placeholder", kRemedy, "make it with ",
                            "K::placeholder(shape, None, dtype, /*sparse=*/true)");
    add_feed(Access::wrap(b), i);
  }
}

/// The outputs, with sparse ones replaced by their parts.
Tensors ProgramBuilder::output_parts() {
  Tensors parts;
  for (const Tensor& t : request_.outputs) {
    TensorSpec declared;
    declared.set(Access::desc(t));
    program_.results.push_back({declared, is_sparse(t)});
    if (!is_sparse(t)) {
      parts.push_back(t);
      continue;
    }
    if (request_.body) fail_sparse({request_.what}, Access::desc(t));
    for (int part : {kIndices, kValues, kDenseShape}) parts.push_back(sparse_part(t, part));
  }
  return parts;
}

void ProgramBuilder::add_feed(const Tensor& t, int i) {
  const TensorDesc& b = Access::desc(t);
  Feed feed{program_.n_slots++, {}, b.device, {}, false, {}};
  feed.declared.set(b);
  if (!b.node) {
    if (!(b.flags & kPhase))
      fail_item<ValueError>(request_.what, "input", i, "of shape ", b.shape(), " is a constant", kExpected,
                            "inputs are placeholders or other tensors on the tape");
    feed.ignored = true;  // a frozen learning phase
  } else {
    if (!fed_.insert({{b.node.get(), b.out}, feed.slot}).second)
      fail_item<ValueError>(request_.what, "input", i, "of shape ", b.shape(), " is given twice");
    if ((b.flags & kLeaf) && b.node->cell->value.storage) feed.fallback = b.node->cell;
    if ((b.flags & kLeaf) && b.node->cell->name) feed.name = b.node->cell->name;
    program_.owned_nodes.push_back(b.node);
  }
  program_.feeds.push_back(std::move(feed));
}

const TensorDesc* ProgramBuilder::resolve(const TensorDesc& b) {
  const TensorDesc* at = &b;
  while (at->node && is_deferred(*at->node) && !fed(*at)) {
    const Tensors& results = expanded(at->node.get());
    if (results.empty()) break;
    at = &Access::desc(results.begin()[at->out]);
  }
  return at;
}

/// The results of a deferred node as recorded ops; empty if the node remains an instruction.
const Tensors& ProgramBuilder::expanded(const Node* n) {
  auto [it, fresh] = expanded_.try_emplace(n);
  if (!fresh) return it->second;
  if (keeps_calls_ && deferred(n->attrs).may_be_instruction()) {
    nested_ = true;
  } else {
    Scoped<bool> on(context().symbolic, true);
    it->second = expand(*n);
  }
  return it->second;
}

/// Appends to order_ the nodes that compute `raw`, depth first, inputs before the nodes that use them. Stops at fed
/// tensors.
void ProgramBuilder::visit(const TensorDesc& raw) {
  auto prepare = [&](const TensorDesc& b) -> Node* {
    const TensorDesc* at = resolve(b);
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
    // In reverse, so that the first input is computed first: plans keep the order of the user's code.
    for (std::uint32_t i = n->n_in; i-- > 0;) {
      if (n->op && only_known_shape(*n, i)) continue;
      if (Node* m = prepare(n->in()[i]))
        if (!seen_.count(m)) stack.push_back({m, false});
    }
  }
}

int ProgramBuilder::shape_slot(const TensorDesc& b) {
  program_.constants.push_back({program_.n_slots, make_desc(b, b.device)});
  return program_.n_slots++;
}

int ProgramBuilder::slot_of(const TensorDesc& raw) {
  const TensorDesc& b = *resolve(raw);
  if (!b.node) {
    // Constants are deduplicated: find_residuals() recognises equal inputs by equal slots.
    std::vector<std::size_t>& same = constants_[b.storage.get()];
    for (std::size_t i : same) {
      const auto& [slot, known] = program_.constants[i];
      if (known.offset == b.offset && known.same_shape(b) && known.dtype == b.dtype) return slot;
    }
    same.push_back(program_.constants.size());
    program_.constants.push_back({program_.n_slots, b});
    return program_.n_slots++;
  }
  auto it = fed_.find({b.node.get(), b.out});
  if (it != fed_.end()) return it->second;
  return base_.at(b.node.get()) + b.out;
}

void ProgramBuilder::add_node(Node* n) {
  int base = base_[n] = program_.n_slots;
  program_.n_slots += n->n_out + (n->op == &call_op);  // one more for residuals
  if (n->op) {
    add_instruction(n, base);
    return;
  }
  program_.owned_nodes.push_back(Ref<Node>(n));
  Cell& cell = *n->cell;
  if (cell.kind == Leaf::variable) {
    program_.variables.push_back({base, Ref<Node>(n)});
  } else if (cell.kind == Leaf::random_source) {
    program_.random_sources.push_back({base, Ref<Node>(n)});
  } else if (cell.value.storage) {
    program_.defaults.push_back({base, Ref<Node>(n)});
  } else if (program_.missing.empty() && cell.in_body) {
    program_.missing = "a tensor made inside the body of a control-flow function was used outside of it";
  } else if (program_.missing.empty()) {
    program_.missing = text("the placeholder ", leaf_text(cell), " is not fed");
    program_.missing_remedy = "list it among the inputs of a K::function";
  }
}

void ProgramBuilder::add_instruction(Node* n, int base) {
  Instruction s{};
  s.op = n->op;
  s.attrs = n->attrs;
  s.function = n->function;
  s.in = program_.ins.size();
  s.n_in = n->n_in;
  s.out = base;
  s.n_out = n->n_out;
  s.makes_key = n->op->traits & kMakesKey;
  if (s.makes_key) key_sources_[base] = key_source(*n);
  s.fusible = n->op->loops && !n->op->loops->bool_out && n->op->loops->arity == s.n_in && s.n_in <= 2;
  s.overwrites = n->op->traits & kOverwrites && n->in()[0].device == cpu;
  s.one = s.fusible &&
          std::all_of(n->in(), n->in() + n->n_in, [](const TensorDesc& b) { return b.known() && b.numel() == 1; });
  for (std::uint32_t i = 0; i < n->n_in; ++i)
    program_.ins.push_back(only_known_shape(*n, i) ? shape_slot(n->in()[i]) : slot_of(n->in()[i]));
  program_.instructions.push_back(std::move(s));
  if (n->op->traits & kEffect && !std::ranges::count(listed_updates_, n)) add_effect(n);
}

void ProgramBuilder::add_effect(Node* n) {
  if (request_.body)
    fail<ValueError>({request_.what}, "an update inside a body of control flow", kRemedy,
                     "return the new value and update outside");
  program_.effects.push_back(
      {n->in()[0].node->cell, slot_of(n->in()[1]), n->attrs.as<UpdateAttrs>().mode, update_name(n->attrs)});
}

/// Turns an increment that is the only effect on its variable into an instruction, which can be fused with the
/// instruction that computes the increment and can write in place. The variable is loaded under its lock at commit, so
/// that no concurrent increment is lost.
void ProgramBuilder::add_sum(Effect& effect) {
  Program& p = program_;
  const Cell& cell = *effect.cell;
  if (effect.mode == Effect::kSet || (cell.spec.dtype != float32 && cell.spec.dtype != float64) || cell.device != cpu)
    return;
  for (const Effect& other : p.effects)
    if (&other != &effect && other.cell == effect.cell) return;
  Instruction s{};
  s.op = &op_of(effect.mode);
  s.in = p.ins.size();
  s.n_in = 2;
  effect.old_value_slot = p.n_slots++;
  p.ins.push_back(effect.old_value_slot);
  p.ins.push_back(effect.slot);
  s.out = effect.slot = p.n_slots++;
  s.n_out = 1;
  s.fusible = true;
  p.instructions.push_back(std::move(s));
}

/// Moves each such instruction directly after the instruction that computes its increment: only consecutive
/// instructions are fused into a chain.
void ProgramBuilder::add_sums() {
  Program& p = program_;
  std::vector<std::pair<int, int>> places(p.instructions.size());  // for reorder()
  std::vector<int> maker(p.n_slots, -1);
  for (int k = 0; k < p.n_instructions(); ++k) {
    places[k] = {k, k};
    std::fill_n(maker.begin() + p.instruction(k).out, p.instruction(k).n_out, k);
  }
  for (Effect& e : p.effects) {
    const int increment = e.slot;
    add_sum(e);
    if (e.slot != increment) places.push_back({maker[increment], static_cast<int>(places.size())});
  }
  reorder(p, std::move(places));
}

/// Feeds a tensor that is not an input with the value that feed_dict gives it.
void ProgramBuilder::add_fixed(const TensorDesc& key, const TensorDesc& value) {
  if (!key.node)
    fail<ValueError>({request_.what, "feed_dict"}, "has a constant as a key", kExpected, "keys are placeholders");
  if (value.symbolic())
    fail<ValueError>({request_.what, "feed_dict"}, "has a symbolic value", kRemedy, "K::eval computes it");
  if (is_sparse(key) != is_sparse(value))
    fail<ValueError>({request_.what, "feed_dict"}, "has a ",
                     is_sparse(value) ? "sparse value for a dense" : "dense value for a sparse", " tensor of shape ",
                     key.shape(), kRemedy, "K::to_dense and K::to_sparse convert");
  if (is_sparse(key)) {
    for (int part : {kIndices, kValues, kDenseShape}) add_fixed(fed_part(key, part), sparse_part(value, part));
    return;
  }
  int slot = fed_[{key.node.get(), key.out}] = program_.n_slots++;
  if (!value.storage) program_.variables.push_back({slot, value.node});  // a variable: read at every call
  else program_.constants.push_back({slot, value});
}

Program ProgramBuilder::build() {
  Program& p = program_;
  p.what = request_.what;
  int i = 0;
  for (const Tensor& t : request_.inputs) add_input(t, i++);
  const Tensors outputs = output_parts();
  for (const auto& [t, value] : request_.feed_dict) add_fixed(Access::desc(t), Access::desc(value));
  for (const Tensor& t : outputs) visit(Access::desc(t));
  for (const SetPair& pair : request_.set_pairs) visit(Access::desc(pair.value));
  for (const Tensor& t : request_.update_ops) {
    visit(Access::desc(t));
    listed_updates_.push_back(Access::desc(t).node.get());
  }
  Tensors fetches;
  for (const Tensor& t : request_.fetches) fetches.push_back(is_sparse(t) ? sparse_part(t, kValues) : t);
  for (const Tensor& t : fetches) visit(Access::desc(t));
  // The instructions of a body are in the order in which the user wrote them, as in an eager loop: see
  // Note [Order of a backward pass].
  if (request_.body && expanded_.empty()) std::ranges::stable_sort(order_, {}, &Node::seq);
  for (Node* n : order_) add_node(n);
  // Effects are in the order of the user's list of updates: a (variable, value) pair has its number in that list, and
  // the update ops take the remaining numbers in order.
  auto pair = request_.set_pairs.begin();
  const Tensor* op = request_.update_ops.begin();
  for (int place = 0; pair != request_.set_pairs.end() || op != request_.update_ops.end(); ++place) {
    if (pair == request_.set_pairs.end() || (pair->number != place && op != request_.update_ops.end())) {
      add_effect(Access::desc(*op++).node.get());
      continue;
    }
    const Ref<Node>& variable = Access::desc(pair->variable).node;
    p.effects.push_back(
        {variable->cell, slot_of(Access::desc(pair->value)), Effect::kSet, request_.what, pair->number});
    ++pair;
  }
  add_sums();
  for (const Tensor& t : outputs) {
    p.outputs.push_back(slot_of(Access::desc(t)));
    const TensorDesc& b = Access::desc(t);
    p.outputs_as_recorded.push_back(make_desc(b, b.device));
    p.outputs_as_recorded.back().flags = b.flags & kPhase;
  }
  for (const Tensor& t : fetches) p.fetches.push_back(slot_of(Access::desc(t)));
  find_roots(p);
  find_needs(p);
  find_tail(p);
  find_residuals(p);
  find_last_uses(p);
  find_in_place(p);
  find_splats(p);
  find_differentiable(p);
  for (const Instruction& s : p.instructions)
    if (s.makes_key) p.key_sources.push_back(key_sources_.at(s.out));
  // The builder holds the last references to the nodes of an expanded backward pass; the instructions have copies of
  // what they need.
  return std::move(program_);
}

}  // namespace

BuiltProgram build_program(const ProgramRequest& request, bool keeps_calls) {
  check_stack(request.what);
  ProgramBuilder builder(request, keeps_calls);
  Program program = builder.build();
  return {std::move(program), builder.nested()};
}

}  // namespace kassette::autograd
