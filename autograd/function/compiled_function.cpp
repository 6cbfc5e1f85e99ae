// autograd/function/compiled_function.cpp - calls of functions with symbolic tensors: functions inside functions.
#include "autograd/function/compiled_function.h"

#include <algorithm>
#include <mutex>

#include "autograd/tape/deferred.h"
#include "core/fast_paths.h"

namespace kassette::autograd {

// Note [Nested functions]
// A function called with symbolic tensors records its instructions on the tape (Plan::inline_into_tape). In a chain of
// n functions that each call the previous one, this would copy O(n^2) instructions. So a call of a large function is
// recorded as one deferred node, whose ops are recorded once, when a backward pass or a plan that is to run needs them.
// K::function keeps such a node as an instruction: its plan can be inlined into the tape in turn, and is only as large
// as the ops that the function itself records. At the first call with values, a plan of all the ops is built
// (CompiledFunction::flat), the same as without deferred nodes. The ops are recorded in the scope of the call (symbolic
// or eager). They are recorded immediately if deferring could change the result: inside bodies of control flow and
// control_dependencies, for functions that draw or print, and if a result or its shape can be known without the inputs.

namespace {

class FunctionCall final : public Deferred {
 public:
  FunctionCall(Ref<CompiledFunction> function, bool symbolic) : function_(std::move(function)), symbolic_(symbolic) {}
  static Tensors record(const Ref<CompiledFunction>& function, std::span<const Tensor> args);
  Tensors expand(const Node& node) const override;
  bool may_be_instruction() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return results_.empty();
  }
  Tensors call(const Tensors& in) const override { return record(function_, in); }

 private:
  Ref<CompiledFunction> function_;
  bool symbolic_;  // the scope
  mutable std::mutex mutex_;
  mutable Tensors results_;
};

/// The scope state for recording the ops of an earlier call: the scopes that are open now must not affect them.
ScopeState scope_of_its_own(bool symbolic) {
  ScopeState s;
  s.symbolic = symbolic;
  s.in_external_call = context().in_external_call;
  s.external_call = context().external_call;
  s.random_scopes = context().random_scopes;
  return s;
}

Tensors FunctionCall::expand(const Node& node) const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!results_.empty()) return results_;
  Tensors args;
  args.reserve(node.n_in);
  for (const TensorDesc *b = node.in(), *end = b + node.n_in; b != end; ++b) args.push_back(Access::wrap(*b));
  Scoped<ScopeState> own(context(), scope_of_its_own(symbolic_));
  results_ = function_->plan().inline_into_tape(args);
  return results_;
}

Tensors FunctionCall::record(const Ref<CompiledFunction>& function, std::span<const Tensor> args) {
  count_taken(FastPath::function_as_node);
  Context& c = context();
  const Plan& plan = function->plan();
  const std::vector<TensorDesc>& outputs = plan.outputs();
  auto node = Ref<Node>::adopt(Node::make(&deferred_op, args.size(), outputs.size(), 0));
  node->attrs.extra = Ref<Extra>::adopt(new FunctionCall(function, c.symbolic));
  std::uint64_t seq = c.clock;
  unsigned phase = 0;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const TensorDesc& b = node->in()[i] = Access::desc(args[i]);
    if (b.node) seq = std::max(seq, b.node->seq);
    if (b.storage) node->saved += b.storage->bytes;
    phase |= b.flags & kPhase;
  }
  node->seq = c.clock = seq + 1;
  c.saved_bytes.add(node->saved);
  c.recorded.add(1);
  Tensors results;
  results.reserve(outputs.size());
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    TensorDesc b = outputs[k];
    const unsigned own_phase = plan.feeds_learning_phase() ? 0 : outputs[k].flags & kPhase;
    b.flags = kSymbolic | phase | own_phase;
    b.out = k;
    b.node = node;
    results.push_back(Access::wrap(std::move(b)));
  }
  return results;
}

}  // namespace

CompiledFunction::CompiledFunction(const ProgramRequest& request) {
  BuiltProgram built = build_program(request, /*keeps_calls=*/true);
  plan_ = Plan::of(std::move(built.program));
  if (built.nested) {
    nested_ = std::make_unique<Nested>();
    nested_->request = request;
  }
  find_deferrable();
}

CompiledFunction::CompiledFunction(external::Value code) : plan_(Plan::of({})), code_(std::move(code)) {}

/// Sets deferrable_: whether a call with symbolic tensors may be one node, see Note [Nested functions].
void CompiledFunction::find_deferrable() {
  const auto large = static_cast<std::size_t>(fast_path_thresholds.function_node);
  const Program& p = plan_->program();
  if (p.outputs.empty() || p.outputs.size() > kMaxOutputs || (!nested_ && p.instructions.size() <= large)) return;
  std::vector<std::uint64_t> inputs(p.n_slots, 0);
  for (std::size_t i = 0; i < p.feeds.size() && i < 64; ++i) inputs[p.feeds[i].slot] = std::uint64_t(1) << i;
  for (const Instruction& s : p.instructions) {
    if (s.op->traits & (kMakesKey | kDraws | kEffect | kPrints)) return;
    std::uint64_t from = 0;
    for (int slot : p.reads(s)) from |= inputs[slot];
    std::fill_n(inputs.begin() + s.out, s.n_out, from);
  }
  std::vector<char> taken(p.n_slots, 0);
  for (std::size_t i = 0; i < p.outputs.size(); ++i) {
    const int slot = p.outputs[i];
    const TensorDesc& b = p.outputs_as_recorded[i];
    bool shape = b.rank <= 1 && b.dtype.is_integer();  // perhaps a shape, whose values the tape may know from its ops
    if (shape || slot < static_cast<int>(p.feeds.size()) || std::exchange(taken[slot], 1)) return;
    depends_.push_back(inputs[slot]);
  }
  deferrable_ = true;
}

/// True if a call with these arguments may be a deferred node: all of its results would be symbolic if its ops were
/// recorded now.
bool CompiledFunction::may_defer(std::span<const Tensor> args) const {
  const Context& c = context();
  const Program& p = plan_->program();
  if (!deferrable_ || c.depth > 0 || c.pending_updates || !p.missing.empty()) return false;
  std::uint64_t symbolic = 0;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const Feed& feed = p.feeds[i];
    if (!args[i].defined() || feed.ignored) return false;
    const TensorDesc& b = Access::desc(args[i]);
    if ((b.flags & (kDraw | kForeign | kSparse)) || b.depth > 0 || !b.same_shape(feed.declared) ||
        b.device != feed.device)
      return false;
    if (i < 64 && (b.symbolic() || (c.symbolic && b.node))) symbolic |= std::uint64_t(1) << i;
  }
  for (std::uint64_t inputs : depends_)
    if (!(inputs & symbolic)) return false;
  return true;
}

Tensors CompiledFunction::call(std::span<const Tensor> args) {
  if (may_defer(args)) return FunctionCall::record(Ref<CompiledFunction>(this), args);
  return flat().inline_into_tape(args);
}

const Plan& CompiledFunction::build_flat() const {
  std::lock_guard<std::mutex> lock(nested_->mutex);
  if (!nested_->flat) {
    Scoped<ScopeState> own(context(), scope_of_its_own(/*symbolic=*/false));
    nested_->flat = Plan::build(nested_->request);
    nested_->request = {};
  }
  return *nested_->flat;
}

}  // namespace kassette::autograd
