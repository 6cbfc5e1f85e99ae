// autograd/function/plan.cpp - runs the instructions of a plan.
#include "autograd/function/plan.h"

#include <algorithm>
#include <optional>

#include "autograd/program/call.h"
#include "autograd/tape/deferred.h"
#include "autograd/function/commit.h"
#include "autograd/function/fuse.h"
#include "autograd/tape/splat.h"
#include "core/check_interrupt.h"
#include "core/fast_paths.h"
#include "core/inline_array.h"
#include "core/convert.h"
#include "core/sparse.h"
#include "core/stack.h"
#include "core/text.h"
#include "ops/engine/apply.h"
#include "ops/engine/observe.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/engine/error_attribution.h"
#include "ops/collective/left_out.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"

namespace kassette::autograd {

Plan::~Plan() { delete spare_.load(); }

Ref<Plan> Plan::build(const ProgramRequest& request) {
  return of(build_program(request, /*keeps_calls=*/false).program);
}

Ref<Plan> Plan::of(Program program) {
  Ref<Plan> plan = Ref<Plan>::adopt(new Plan);
  plan->program_ = std::move(program);
  return plan;
}

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

Tensor check_feed(const Feed& feed, const Tensor& arg, int i) {
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

void add_sparse_feed(const Port& port, const Feed* feeds, const Tensor& arg, int i, Tensors& checked) {
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

}  // namespace

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

namespace {

/// Puts the arguments, and the values of variables and defaults, into their slots.
void fill(Frame& f, std::span<const Tensor> args) {
  const Program& p = f.program;
  check_missing(p);
  for (const Feed& feed : p.feeds) f.at[feed.slot] = &f.own[feed.slot];
  for (std::size_t i = 0; i < args.size(); ++i) {
    const Feed& feed = p.feeds[i];
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
    if (!v.storage) fail_unset({p.what}, *leaf.node->cell);
    put(own, std::move(v));
  };
  for (const LeafSlot& leaf : p.variables) {
    const int slot = leaf.slot;
    if (p.last_use[slot] >= 0 || p.root[slot]) load(leaf);
  }
  for (const LeafSlot& leaf : p.defaults) load(leaf);
}

void run_instruction(Frame& f, const Instruction& s) {
  if (s.makes_key && f.keys) {
    f.own[s.out] = Access::desc(f.keys->begin()[f.next_key++]);
    return;
  }
  InlineArray<TensorDesc*, 4> outs(s.n_out);
  const OpCall call = f.call_of(s, outs.get());
  for (int i = 0; i < s.n_out; ++i) {
    outs[i] = &f.own[s.out + i];
    outs[i]->device = call.device;
  }
  if (!s.known) ops::infer(call);
  bool known = true;
  for (int i = 0; i < s.n_out; ++i) known = known && outs[i]->known();
  if (s.need == kShape && known) return;
  if (s.splat && run_as_splat(call, f.own[s.out], s.function)) return;
  compute(call, s.function);
}

/// To be called in a catch block: rethrows with the name of the instruction's function.
[[noreturn]] void fail_instruction(const Program& p, int k) {
  log_failure(p, k);
  rethrow_of_instruction(p.instruction(k).function, p.instruction(k).op->name);
}

/// To be called in a catch block: instruction k has failed, and the ops of many ranks behind it will not run.
void leave_out(Frame& f, int k, int end) try {
  for (int i = k; i < end; ++i)
    if (ops::runs_together(*f.instruction(i).op)) return ops::leave_out(f.call_of(f.instruction(i), nullptr), i > k);
} catch (...) {  // no memory for it: the others hear of it when this rank ends
}

void run_instructions(Frame& f, int begin, int end) {
  int k = begin;
  try {
    while (k < end) {
      check_interrupt();
      if (f.instruction(k).fusible && ((k + 1 < end && (f.instruction(k + 1).fusible || sums(f.instruction(k + 1)))) ||
                                       f.reads_splat(f.instruction(k)))) {
        FusionGroup group = form_group(f, k, end);
        if (group.fused) {
          allocate_results(f, group);
          build_chain(f, group, f.chain);
          run_group(f, group, f.chain);
          for (; k < group.end; ++k) f.release_dead(f.instruction(k));
          continue;
        }
      }
      const int n = std::max(1, run_with_bias(f, k, end));
      if (n == 1) run_instruction(f, f.instruction(k));
      for (int i = 0; i < n; ++i) f.release_dead(f.instruction(k++));
    }
  } catch (...) {
    leave_out(f, k, end);
    fail_instruction(f.program, k);
  }
}

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
  /// How many draws a call takes from the source in that slot: one for each key, or for each step of a loop.
  std::uint64_t draws_of(int slot) const {
    std::uint64_t n = 0;
    for (const Instruction& s : program_.instructions)
      if (s.makes_key && program_.input(s, 0) == slot)
        n += s.n_in > 1 ? static_cast<std::uint64_t>(frame_.at[program_.input(s, 1)]->dims[0]) : 1;
    return n;
  }

  const Program& program_;
  const Frame& frame_;
  int exceptions_;
  std::vector<SourceState> before_;
  std::optional<SeedScope> seeds_;
};

}  // namespace

Tensors Plan::run(std::span<const Tensor> args, const Tensors* keys) const {
  const Ref<ShapedPlan> shaped = may_take(FastPath::specialised) ? shaped_.find(*this, args) : Ref<ShapedPlan>();
  if (!shaped) return execute(args, keys);
  count_taken(FastPath::specialised);
  return shaped->run(args, keys);
}

Tensors Plan::execute(std::span<const Tensor> args, const Tensors* keys) const {
  check_stack(program_.what);
  const ObservedScope scope(program_.what);
  Context& c = context();
  Scoped<bool> off(c.recording, false);
  Scoped<bool> eager(c.symbolic, false);
  FrameLease lease(program_, spare_);
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
    // Without the tail, which only updates need.
    for (; k < program_.first_tail; ++k) run_instruction(program_.instruction(k));
  } catch (...) {
    fail_instruction(program_, k);
  }
  Tensors results;
  for (int o : program_.outputs) results.push_back(slots[o]);
  return results;
}

}  // namespace kassette::autograd
