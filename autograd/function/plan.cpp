// autograd/function/plan.cpp - runs the instructions of a plan. Building is in build.cpp, fusion in fuse.cpp, the
// end of a call in commit.cpp.
#include "autograd/function/plan.h"

#include <algorithm>
#include <optional>

#include "autograd/loops/control.h"
#include "autograd/tape/deferred.h"
#include "autograd/function/frame.h"
#include "autograd/tape/splat.h"
#include "core/check_interrupt.h"
#include "core/fast_paths.h"
#include "core/inline_array.h"
#include "core/convert.h"
#include "core/log.h"
#include "core/sparse.h"
#include "core/stack.h"
#include "core/text.h"
#include "ops/engine/apply.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/engine/error_attribution.h"
#include "ops/collective/left_out.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"

namespace kassette::autograd {

Frame::Frame(const Program& p) : at(p.n_slots), own(p.n_slots) {
  for (std::size_t i = 0; i < at.size(); ++i) at[i] = &own[i];
  for (const auto& [slot, desc] : p.constants) at[slot] = &desc;
  if (!p.specialised) return;
  own = p.known;
  groups.resize(p.instructions.size());
}
void Frame::clear() {
  for (TensorDesc& b : own) {
    b.storage = {};
    b.node = {};
  }
  commit.replaced.clear();
}

Plan::~Plan() { delete spare_.load(); }

Ref<Plan> Plan::of(Program program) {
  Ref<Plan> plan = Ref<Plan>::adopt(new Plan);
  plan->program_ = std::move(program);
  return plan;
}

Ref<Plan> Plan::external(external::Value code) {
  Ref<Plan> plan = Ref<Plan>::adopt(new Plan);
  plan->code_ = std::move(code);
  return plan;
}

namespace {

/// A frame of the plan for one call, returned to the plan afterwards.
class FrameLease {
 public:
  FrameLease(const Plan& plan, std::atomic<Frame*>& spare)
      : spare_(spare), frame_(spare.exchange(nullptr, std::memory_order_acquire)) {
    if (!frame_) frame_ = new Frame(plan.program());
  }
  ~FrameLease() {
    frame_->clear();
    Frame* nobody = nullptr;
    if (!spare_.compare_exchange_strong(nobody, frame_, std::memory_order_release)) delete frame_;
  }
  FrameLease(const FrameLease&) = delete;
  FrameLease& operator=(const FrameLease&) = delete;
  Frame& operator*() { return *frame_; }

 private:
  std::atomic<Frame*>& spare_;
  Frame* frame_;
};

}  // namespace

namespace {

/// Throws E about an input: "function: input 2 'x' ...", or without a name if that is empty.
template <class E, class... Parts>
[[noreturn]] void fail_input(int i, const std::string& name, const Parts&... parts) {
  fail_item<E>("function", "input", i, name.empty() ? name : text('\'', name, "' "), parts...);
}

void check_shape(const TensorDesc& b, const TensorSpec& declared, int i, const std::string& name) {
  if (!b.compatible(declared)) fail_input<ValueError>(i, name, "is ", b.shape(), ", declared ", declared);
}

Tensor cast_feed(const Tensor& arg, DType dtype, int i, const std::string& name) {
  const TensorDesc& b = Access::desc(arg);
  if (b.dtype == dtype) return arg;
  if (b.symbolic()) fail_input<TypeError>(i, name, "is ", b.dtype, ", declared ", dtype, kRemedy, "cast it (K::cast)");
  return value_cast(arg, dtype);
}

}  // namespace

void fail_missing(const Program& p) { fail<ValueError>({p.what}, p.missing, kRemedy, p.missing_remedy); }

Tensor Plan::check_feed(const Feed& feed, const Tensor& arg, int i) const {
  if (feed.ignored) return arg;
  if (!arg.defined()) {  // an empty Tensor takes the default
    if (!feed.fallback)
      fail_input<ValueError>(i, feed.name, "is an empty Tensor, and the placeholder ", feed.declared,
                             " has no default");
    return Access::wrap(make_desc(feed.declared, feed.fallback->device, feed.fallback->load()));
  }
  const TensorDesc& b = Access::desc(arg);
  if (is_sparse(b))
    fail_input<ValueError>(i, feed.name, "is sparse ", b.shape(), ", declared dense ", feed.declared, kRemedy,
                           "feed K::to_dense(x)");
  check_shape(b, feed.declared, i, feed.name);
  Tensor fed = cast_feed(arg, feed.declared.dtype, i, feed.name);
  return fed.symbolic() ? fed : fed.to(feed.device);
}

void Plan::add_sparse_feed(const Port& port, const Feed* feeds, const Tensor& arg, int i, Tensors& checked) const {
  const std::string& name = feeds[kValues].name;
  if (!arg.defined())
    fail_input<ValueError>(i, name, "is an empty Tensor, and the sparse placeholder ", port.declared,
                           " has no default");
  const TensorDesc& b = Access::desc(arg);
  if (!is_sparse(b))
    fail_input<ValueError>(i, name, "is dense ", b.shape(), ", declared sparse ", port.declared, kRemedy,
                           "feed a sparse tensor (K::sparse_coo, K::sparse_csr, K::to_sparse)");
  check_shape(b, port.declared, i, name);
  checked.push_back(sparse_part(arg, kIndices));
  Tensor values = cast_feed(sparse_part(arg, kValues), port.declared.dtype, i, name);
  checked.push_back(values.symbolic() ? values : values.to(feeds[kValues].device));
  checked.push_back(cast(sparse_part(arg, kDenseShape), int64));
}

Tensors Plan::check_feeds(const Tensors& args) const {
  if (args.size() != n_inputs())
    fail<ValueError>(
        {"function"}, args.size(), args.size() == 1 ? " value for " : " values for ", n_inputs(),
        n_inputs() == 1 ? " input" : " inputs", kRemedy,
        n_inputs() == 1 && args.size() > 1 ? "a list is one value in braces of its own, as in f({{1, 2}})" : "");
  Tensors checked;
  checked.reserve(program_.feeds.size());
  for (int i = 0; i < n_inputs(); ++i) {
    const Port& port = program_.inputs[i];
    const Feed* feed = &program_.feeds[checked.size()];
    if (port.sparse) add_sparse_feed(port, feed, args.begin()[i], i, checked);
    else checked.push_back(check_feed(*feed, args.begin()[i], i));
  }
  return checked;
}

Tensors Plan::pack_results(const Tensors& outputs) const {
  if (outputs.size() == n_results()) return outputs;
  Tensors results;
  const Tensor* at = outputs.begin();
  for (const Port& port : program_.results) {
    if (!port.sparse) {
      results.push_back(*at++);
      continue;
    }
    TensorSpec spec = port.declared;
    const TensorDesc& shape = Access::desc(at[kDenseShape]);
    if (shape.storage) std::copy_n(reinterpret_cast<const std::int64_t*>(shape.data()), spec.rank, spec.dims);
    results.push_back(make_sparse(at[kIndices], at[kValues], at[kDenseShape], spec));
    at += 3;
  }
  return results;
}

void Plan::fill(Frame& f, std::span<const Tensor> args) const {
  check_missing(program_);
  for (const Feed& feed : program_.feeds) f.at[feed.slot] = &f.own[feed.slot];
  for (std::size_t i = 0; i < args.size(); ++i) {
    const Feed& feed = program_.feeds[i];
    if (feed.ignored || !args[i].defined()) continue;
    const TensorDesc& b = Access::desc(args[i]);
    const int slot = feed.slot;
    if (b.storage || b.symbolic()) {
      f.at[slot] = &b;
      continue;
    }
    f.own[slot] = make_desc(b, b.device, concrete_value(b, "function"));
  }
  auto load = [&](const LeafSlot& leaf) {
    TensorDesc& own = f.own[leaf.slot];
    Value v = leaf.node->cell->load();
    if (!v.storage) fail_unset({program_.what}, *leaf.node->cell);
    put(own, std::move(v));
  };
  for (const LeafSlot& leaf : program_.variables) {
    const int slot = leaf.slot;
    if (program_.last_use[slot] >= 0 || program_.root[slot]) load(leaf);
  }
  for (const LeafSlot& leaf : program_.defaults) load(leaf);
}

/// The call of an instruction's kernel, with the current values of its input slots and `out` as outputs.
OpCall Plan::call_of(Frame& f, const Instruction& s, TensorDesc* const* out) const {
  f.arrays.resize(std::max<std::size_t>(f.arrays.size(), s.n_in));
  for (int i = 0; i < s.n_in; ++i) {
    const TensorDesc* b = f.at[input(s, i)];
    f.arrays[i] = {b, b->storage ? b->data() : nullptr};
  }
  return {*s.op, s.attrs, f.arrays.data(), s.n_in, out, s.n_out, device_of(*s.op, s.attrs, f.arrays.data(), s.n_in)};
}

void Plan::run_instruction(Frame& f, const Instruction& s) const {
  if (s.makes_key && f.keys) {
    f.own[s.out] = Access::desc(f.keys->begin()[f.next_key++]);
    return;
  }
  InlineArray<TensorDesc*, 4> outs(s.n_out);
  const OpCall call = call_of(f, s, outs.get());
  for (int i = 0; i < s.n_out; ++i) {
    outs[i] = &f.own[s.out + i];
    outs[i]->device = call.device;
  }
  if (!s.known) ops::infer(call);
  bool known = true;
  for (int i = 0; i < s.n_out; ++i) known = known && outs[i]->known();
  if (s.need == kShape && known) return;
  if (s.splat && run_as_splat(call, f.own[s.out])) return;
  compute(call);
}

void Plan::release_dead(Frame& f, const Instruction& s) const {
  for (int i = 0; i < s.n_dead_value; ++i) f.own[program_.dead[s.dead_value + i]].storage = {};
}

/// An instruction throws the error that an eager call would; the log adds which instruction of the plan it was.
void log_failure(const Program& p, int k) {
  if (log_enabled(LogLevel::debug))
    log_debug(
        text(p.what, ": instruction ", k, " of ", p.instructions.size(), ", ", p.instruction(k).op->name, ", failed"));
}
/// To be called in a catch block: rethrows with the name of the instruction's function.
void Plan::fail_instruction(int k) const {
  log_failure(program_, k);
  rethrow_of_instruction(instruction(k).function, instruction(k).op->name);
}

/// To be called in a catch block: instruction k has failed, and the ops of many ranks behind it will not run.
void Plan::leave_out(Frame& f, int k, int end) const try {
  for (int i = k; i < end; ++i)
    if (ops::runs_together(*instruction(i).op)) return ops::leave_out(call_of(f, instruction(i), nullptr), i > k);
} catch (...) {  // no memory for it: the others hear of it when this rank ends
}

bool Plan::reads_splat(const Frame& f, const Instruction& s) const {
  return std::ranges::any_of(program_.reads(s), [&](int slot) { return is_splat(*f.at[slot]); });
}
bool Plan::sums(const Instruction& s) const { return s.op->pattern == Pattern::sum || s.op->pattern == Pattern::mean; }

void Plan::run_instructions(Frame& f, int begin, int end) const {
  int k = begin;
  try {
    while (k < end) {
      check_interrupt();
      if (instruction(k).fusible && ((k + 1 < end && (instruction(k + 1).fusible || sums(instruction(k + 1)))) ||
                                     reads_splat(f, instruction(k)))) {
        FusionGroup group = form_group(f, k, end);
        if (group.fused) {
          allocate(f, group);
          build_chain(f, group, f.chain);
          run_chain(f, group, f.chain);
          for (; k < group.end; ++k) release_dead(f, instruction(k));
          continue;
        }
      }
      const int n = std::max(1, run_with_bias(f, k, end));
      if (n == 1) run_instruction(f, instruction(k));
      for (int i = 0; i < n; ++i) release_dead(f, instruction(k++));
    }
  } catch (...) {
    leave_out(f, k, end);
    fail_instruction(k);
  }
}

namespace {

/// A call that throws draws nothing: the counters of its random sources are set back, unless another call has drawn
/// from them since, and so are the seeds that they have taken for this call.
class RandomSourceRollback {
 public:
  RandomSourceRollback(const Program& program, const Frame& frame, const Tensors* keys)
      : program_(program), frame_(frame), exceptions_(std::uncaught_exceptions()) {
    if (keys) return;  // a body's draws follow from the key of its node
    if (program.random_sources.empty()) return;
    seeds_.emplace();
    for (const LeafSlot& leaf : program.random_sources) before_.push_back(before_call(*leaf.node->cell));
  }
  ~RandomSourceRollback() {
    if (std::uncaught_exceptions() == exceptions_) return;
    for (std::size_t i = 0; i < before_.size(); ++i) {
      const LeafSlot& source = program_.random_sources[i];
      undo_call(*source.node->cell, before_[i], draws_of(source.slot), *seeds_);
    }
  }
  RandomSourceRollback(const RandomSourceRollback&) = delete;
  RandomSourceRollback& operator=(const RandomSourceRollback&) = delete;

 private:
  /// How many draws a call takes from the source in that slot: one, or one for each step of a loop.
  std::uint64_t draws_of(int slot) const {
    for (const Instruction& s : program_.instructions)
      if (s.makes_key && s.n_in > 1 && program_.input(s, 0) == slot)
        return static_cast<std::uint64_t>(frame_.at[program_.input(s, 1)]->dims[0]);
    return 1;
  }

  const Program& program_;
  const Frame& frame_;
  int exceptions_;
  std::vector<SourceState> before_;
  std::optional<SeedScope> seeds_;
};

}  // namespace

Tensors Plan::run(std::span<const Tensor> args, const Tensors* keys) const {
  if (nested_) return flat().run(args, keys);
  const Ref<Plan> shaped = may_take(FastPath::specialised) ? shaped_.find(*this, args) : Ref<Plan>();
  if (!shaped) return execute(args, keys);
  count_taken(FastPath::specialised);
  return shaped->graph_.run(shaped->program_.known, [&] { return shaped->execute(args, keys); });
}

Tensors Plan::execute(std::span<const Tensor> args, const Tensors* keys) const {
  check_stack(program_.what);
  Context& c = context();
  Scoped<bool> off(c.recording, false);
  Scoped<bool> eager(c.symbolic, false);
  FrameLease lease(*this, spare_);
  Frame& f = *lease;
  // The shapes and dtypes of leaves never change, so they are set once for each frame.
  if (!f.leaves_set) {
    program_.for_each_cell([&](int slot, const Cell& cell) { f.own[slot] = make_desc(cell.spec, cell.device); });
    f.leaves_set = true;
  }
  for (const LeafSlot& leaf : program_.random_sources) {
    TensorDesc& own = f.own[leaf.slot];
    own.flags = kLeaf;
    own.node = leaf.node;
  }
  f.keys = keys;
  f.next_key = 0;
  const RandomSourceRollback rollback(program_, f, keys);
  fill(f, args);
  run_instructions(f, 0, program_.first_tail);
  Tensors results;
  results.reserve(program_.outputs.size());
  for (int o : program_.outputs) results.push_back(detached(*f.at[o]));
  if (!program_.effects.empty()) commit(f);
  return results;
}

namespace {

/// Records an instruction. Control flow on concrete tensors is run, which records the ops of its steps.
Tensors connect_instruction(const Instruction& s, const Tensors& in) {
  if (s.op == &deferred_op) return deferred(s.attrs).call(in);
  const bool concrete = !context().symbolic && std::ranges::none_of(in, &Tensor::symbolic);
  if (s.op == &call_op && concrete) return run_call(s.attrs, in);
  AttributionScope named(s.function);
  const ResidualCall* call = residual_call(s);
  if (!call) return apply_all(*s.op, s.attrs, in);
  // Without residuals: find_residuals() runs on the program that these ops become a part of.
  return call_now(call->of, std::span(in.begin(), in.size() - call->takes));
}

}  // namespace

Tensors Plan::inline_into_tape(std::span<const Tensor> args, const Tensors* keys) const {
  check_stack(program_.what);
  check_missing(program_);
  std::vector<Tensor> slots(program_.n_slots);
  for (std::size_t i = 0; i < args.size(); ++i) slots[program_.feeds[i].slot] = args[i];
  for (const auto& [slot, desc] : program_.constants) slots[slot] = Access::wrap(desc);
  auto leaf_tensor = [&](const LeafSlot& leaf) {
    const Cell& cell = *leaf.node->cell;
    TensorDesc b = make_desc(cell.spec, cell.device);
    b.flags = kLeaf |
              (cell.kind == Leaf::placeholder     ? kSymbolic
               : cell.kind == Leaf::random_source ? kDraw
                                                  : 0) |
              (cell.learning_phase ? kPhase : 0);
    b.node = leaf.node;
    slots[leaf.slot] = Access::wrap(std::move(b));
  };
  for (const LeafSlot& leaf : program_.variables) leaf_tensor(leaf);
  for (const LeafSlot& leaf : program_.defaults) leaf_tensor(leaf);
  for (const LeafSlot& leaf : program_.random_sources) leaf_tensor(leaf);
  int k = 0, key = 0;
  auto run_instruction = [&](const Instruction& s) {
    if (s.makes_key && keys) {
      slots[s.out] = keys->begin()[key++];
      return;
    }
    Tensors in;
    in.reserve(s.n_in);
    for (int slot : program_.reads(s)) in.push_back(slots[slot]);
    Tensors results = connect_instruction(s, in);
    std::move(results.begin(), results.end(), slots.begin() + s.out);
    for (int i = 0; i < s.n_dead; ++i) slots[program_.dead[s.dead + i]] = Tensor();
  };
  try {
    for (; k < program_.first_tail; ++k) run_instruction(instruction(k));  // without the tail, which only updates need
  } catch (...) {
    fail_instruction(k);
  }
  Tensors results;
  for (int o : program_.outputs) results.push_back(slots[o]);
  return results;
}

}  // namespace kassette::autograd
