// autograd/loops/loop_run.cpp - the forward pass of a compiled loop. See Note [Loops].
#include "autograd/loops/loop_run.h"

#include <algorithm>
#include <cstring>

#include "autograd/loops/unstack.h"
#include "autograd/loops/steps.h"
#include "ops/elementwise/binary.h"
#include "core/check_interrupt.h"
#include "core/fast_paths.h"
#include "core/stack.h"
#include "devices/cpu/numbered_threads.h"
#include "ops/engine/apply.h"
#include "ops/engine/expr.h"
#include "ops/engine/observe.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"
#include "ops/random/random.h"

namespace kassette::autograd {
namespace {

std::vector<LoopGroup> single_groups(const std::vector<int>& instructions) {
  std::vector<LoopGroup> groups;
  groups.reserve(instructions.size());
  for (int k : instructions) groups.push_back({.instruction = k});
  return groups;
}

}  // namespace

LoopRun::LoopRun(Ref<LoopProgram> program, const LoopCall& call, const Tensors& in)
    : loop_(std::move(program)), program_(loop_->program()), call_(call), in_(in), descs_(loop_->producer.size()),
      bounds_(program_.instructions.size()), dynamic_(descs_.size()), stacks_(descs_.size()) {
  const LoopProgram& p = *loop_;
  check_missing(program_);
  if (call_.interval >= call_.steps) call_.interval = 0;
  for (const auto& [slot, value] : program_.constants) desc(slot) = value;
  int n_in = 0, n_out = 0;
  for (const Instruction& s : program_.instructions) {
    n_in += s.n_in;
    n_out += s.n_out;
  }
  arrays_.reserve(n_in);  // so that binding allocates once
  results_.reserve(n_out);
  for (std::size_t i = 0; i < p.arg_slots.size(); ++i) {
    const TensorDesc& from = Access::desc(in_[i + 1]);
    desc(p.arg_slots[i]) = make_desc(static_cast<int>(i) < p.signature.n_xs ? element_spec(from) : TensorSpec(from),
                                     from.device, from.storage, from.offset);
  }
  for (int slot : p.key_slots) desc(slot) = make_desc(TensorSpec(int64, {2}), cpu);
  for (int i = 0; i < p.signature.n_carry; ++i)
    states_.push_back({p.out_slots[p.signature.n_ys + i], p.arg_slots[p.signature.n_xs + i]});
}

LoopRun::~LoopRun() { loop_->schedules.keep(std::move(forward_)); }

// ---- binding --------------------------------------------------------------------------------------------------------

void LoopRun::bind(const std::vector<int>& instructions) {
  for (int k : instructions)
    if (!bounds_[k].instruction) bind_instruction(k);
  running_ = nullptr;
}

/// The schedule of these instructions, which must be bound: loop-invariant ones first, then the others, fused into
/// chains. Instructions whose value is not read are left out.
std::unique_ptr<Schedule> LoopRun::arrange(const std::vector<LoopGroup>& groups) {
  LoopProgram& p = *loop_;
  ScheduleKey of;
  of.may_fuse.assign(bounds_.size(), 0);
  for (const LoopGroup& group : groups) {
    const Bound& b = bounds_[group.instruction];
    of.may_fuse[group.instruction] = may_take(FastPath::loop_chain) && !b.dynamic && !b.loop_invariant && !b.skipped;
    if (b.loop_invariant || !b.skipped) (b.loop_invariant ? of.once : of.each).push_back(group);
  }
  of.specs.assign(descs_.begin(), descs_.end());
  for (const TensorDesc& b : descs_) of.devices.push_back(b.device);
  if (std::unique_ptr<Schedule> kept = may_take(FastPath::schedule_reused) ? p.schedules.take(of) : nullptr) {
    count_taken(FastPath::schedule_reused);
    return kept;
  }
  std::vector<char> live_out = p.is_residual;
  auto root = [&](const std::vector<int>& slots) {
    for (int slot : slots)
      if (slot >= 0) live_out[slot] = 1;
  };
  root(p.out_slots);
  for (const StepAdjoint& adjoint : p.step_adjoints) root(adjoint.din);
  auto made = std::make_unique<Schedule>();
  made->groups = of.once;
  std::vector<LoopGroup> found =
      LoopChains(program_, descs_, of.may_fuse, std::move(live_out), of.each).find(made->chains);
  made->groups.insert(made->groups.end(), found.begin(), found.end());
  made->of = std::move(of);
  return made;
}

/// Binds instruction k to its operands, and infers its shapes unless they differ from step to step: then it is dynamic.
void LoopRun::bind_instruction(int k) {
  const LoopProgram& p = *loop_;
  const Instruction& s = program_.instruction(k);
  running_ = &s;
  Bound& b = bounds_[k];
  b.in = arrays_.size();
  b.out = results_.size();
  b.views = s.op->traits & kView;
  for (int i = 0; i < s.n_in; ++i) {
    int slot = program_.input(s, i);
    TensorDesc& in = desc(slot);
    bool fixed = !p.loop_varying[slot] && in.storage;
    arrays_.push_back({&in, fixed ? in.data() : nullptr});
    b.dynamic = b.dynamic || dynamic_[slot];
  }
  b.device = device_of(*s.op, s.attrs, arrays_.data() + b.in, s.n_in);
  for (int i = 0; i < s.n_out; ++i) {
    results_.push_back(&desc(s.out + i));
    results_.back()->device = b.device;
  }
  b.loop_invariant = s.n_out > 0 && !p.loop_varying[s.out];
  b.kernel = b.device.type() == Device::kCpu ? s.op->cpu : s.op->cuda;
  if (!b.kernel) fail<NotImplementedError>({s.op->name}, "not available on ", b.device);
  if (!b.dynamic) {
    infer({*s.op, s.attrs, arrays_.data() + b.in, s.n_in, results_.data() + b.out, s.n_out, b.device});
    for (int i = 0; i < s.n_out; ++i) b.dynamic = b.dynamic || !results_[b.out + i]->known();
  }
  if (b.dynamic)
    for (int i = 0; i < s.n_out; ++i) dynamic_[s.out + i] = 1;
  b.skipped = !b.dynamic && s.need == kShape;
  b.instruction = &s;
}

/// True if an instruction computes that slot again each time, into memory that the run allocates, with a known shape.
bool LoopRun::writes_rows(int slot) const {
  int m = slot < 0 ? -1 : loop_->producer[slot];
  if (m < 0 || program_.instruction(m).makes_key) return false;
  const Bound& b = bounds_[m];
  return b.instruction && !b.views && !b.dynamic && !b.loop_invariant && !b.skipped;
}

void LoopRun::allocate_stack(int slot, std::int64_t rows) {
  if (has_stack(slot)) return;
  TensorDesc& b = desc(slot);
  const TensorSpec whole(b.dtype, {rows, b.numel()});
  b.storage = stacks_[slot] = Storage::allocate(whole.checked_bytes(call_.what), b.device);
  stacked_.push_back(slot);
}

/// Decides which outputs and residuals have a stack, and which are kept in lists.
void LoopRun::start_pass(Pass pass, std::int64_t rows) {
  const LoopProgram& p = *loop_;
  pass_ = pass;
  for (int slot : stacked_) {
    stacks_[slot] = {};
    desc(slot).storage = {};
  }
  stacked_.clear();
  list_slots_.clear();
  step_values_.clear();
  step_specs_.clear();
  if (pass != Pass::keeping)
    for (int i = 0; i < p.signature.n_ys; ++i)
      if (int slot = p.out_slots[i]; writes_rows(slot)) allocate_stack(slot, rows);
  if (pass != Pass::outputs) {
    for (int k : p.forward_instructions) {
      const Bound& b = bounds_[k];
      for (int slot = b.instruction->out; slot < b.instruction->out + b.instruction->n_out; ++slot) {
        const bool value = p.is_residual[slot], shape = p.needs_shape[slot] && dynamic_[slot];  // shapes differ by step
        if ((!value && !shape) || b.loop_invariant || b.skipped) continue;
        if (value && writes_rows(slot)) allocate_stack(slot, rows);
        else list_slots_.push_back(slot);
      }
    }
    for (const Carry& c : states_) {  // a state is the previous row of the slot that it is carried from
      if (!p.is_residual[c.to]) continue;
      if (writes_rows(c.from)) allocate_stack(c.from, rows);
      else list_slots_.push_back(c.to);
    }
    step_values_.resize(list_slots_.size());
    step_specs_.resize(list_slots_.size());
  }
}

// ---- the forward pass -----------------------------------------------------------------------------------------------

void copy_bytes(Device device, std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes == 0) return;
  if (device == cpu) std::memcpy(to, from, bytes);
  else device_api(device).copy(to, from, bytes);
}

TensorDesc LoopRun::copy_of(const TensorDesc& b) {
  TensorDesc copy = make_desc(b, b.device, Storage::allocate(b.bytes(), b.device));
  copy_bytes(b.device, copy.data(), b.data(), b.bytes());
  return copy;
}

/// The last carried value; a copy if it is in a stack, which the tensor would keep alive as a whole.
Tensor LoopRun::carried_tensor(int slot) {
  const TensorDesc& b = desc(slot);
  auto in = [&](const Ref<Storage>& s) { return s && s == b.storage; };
  if (std::ranges::none_of(stacks_, in)) return detached(b);
  return Access::wrap(copy_of(b));
}

void LoopRun::fail_at(std::int64_t t, const char* direction) {
  if (running_) log_failure(program_, running_ - program_.instructions.data());
  try {
    if (!running_) throw;
    rethrow_of_instruction(running_->function, running_->op->name);
  } catch (const Error&) {
    rethrow_in_step(t, call_.steps, text(direction, call_.what));
  }
}

Tensors LoopRun::forward(bool for_backward) {
  check_stack(call_.what);
  const ObservedScope scope(call_.what);
  Context& c = context();
  Scoped<bool> off(c.recording, false), eager(c.symbolic, false);
  const LoopProgram& p = *loop_;
  const bool checkpoints = for_backward && call_.interval > 0;
  count_taken(FastPath::loop);
  lists_.resize(p.signature.n_ys);
  try {
    bind(p.forward_instructions);
    forward_ = arrange(single_groups(p.forward_instructions));
    start_pass(for_backward && !checkpoints ? Pass::both : Pass::outputs, call_.steps);
  } catch (const Error&) {
    fail_at(0, "");
  }
  check_shapes();
  run_forward(0, call_.steps);
  Tensors results;
  for (int i = 0; i < p.signature.n_ys; ++i) {
    int slot = p.out_slots[i];
    if (!has_stack(slot)) {
      results.push_back(stack_for(call_.what, lists_[i]));
    } else {
      const TensorDesc& row = desc(slot);
      results.push_back(Access::wrap(make_desc(stacked_spec(call_.what, row, call_.steps), row.device, stacks_[slot])));
    }
  }
  lists_.clear();
  for (const Carry& s : states_) results.push_back(carried_tensor(s.to));
  if (for_backward) drop_temporaries(/*stacks_too=*/checkpoints);
  return results;
}

/// Releases what the backward pass does not read.
void LoopRun::drop_temporaries(bool stacks_too) {
  const LoopProgram& p = *loop_;
  auto history = [&](int slot) {
    return std::ranges::any_of(states_, [&](const Carry& c) { return c.from == slot && p.is_residual[c.to]; });
  };
  std::vector<int> stay;
  for (int slot : stacked_) {
    if (!stacks_too && (p.is_residual[slot] || history(slot))) stay.push_back(slot);
    else stacks_[slot] = {};
  }
  stacked_ = std::move(stay);
  for (std::size_t slot = 0; slot < descs_.size(); ++slot)
    if (p.loop_varying[slot] && !stacks_[slot]) descs_[slot].storage = {};
}

void LoopRun::run_forward(std::int64_t begin, std::int64_t end) {
  std::int64_t t = begin;
  try {
    for (; t < end; ++t) {
      if (pass_ == Pass::outputs && call_.interval > 0 && t % call_.interval == 0) {
        starts_.emplace_back();
        for (const Carry& c : states_) starts_.back().push_back(value_in(desc(c.to)));
      }
      row_ = t - begin;
      forward_step(t);
    }
  } catch (const Error&) {
    fail_at(t, "");
  }
}

void LoopRun::forward_step(std::int64_t t) {
  set_elements(t);
  set_keys(t);
  execute(*forward_);
  if (pass_ != Pass::outputs) save_residuals();
  if (pass_ != Pass::keeping) collect_outputs();
  carry(states_);
}

void LoopRun::set_elements(std::int64_t t) {
  const LoopProgram& p = *loop_;
  for (int i = 0; i < p.signature.n_xs; ++i) {
    TensorDesc& x = desc(p.arg_slots[i]);
    const TensorDesc& whole = Access::desc(in_[i + 1]);
    if (!x.storage) x.storage = whole.storage;
    x.offset = whole.offset + index_of(t) * x.bytes();
  }
}

void LoopRun::set_keys(std::int64_t t) {
  const LoopProgram& p = *loop_;
  if (p.key_slots.empty()) return;
  const TensorDesc& key = Access::desc(in_[0]);
  for (std::size_t i = 0; i < p.key_slots.size(); ++i) {
    TensorDesc& k = desc(p.key_slots[i]);
    if (!uniquely_owned(k.storage.get(), k.bytes())) k.storage = Storage::allocate(k.bytes(), cpu);
    derive_key(key.data(), t, call_.steps, i, p.key_sources[i], k.data());
  }
}

void LoopRun::execute(Schedule& schedule) {
  check_interrupt();
  for (const LoopGroup& group : schedule.groups) {
    if (group.chain >= 0) execute(*schedule.chains[group.chain]);
    else if (group.sum >= 0) add_product_to(group);
    else execute(bounds_[group.instruction]);
  }
  running_ = nullptr;
}

OpCall LoopRun::call_of(Bound& b) {
  const Instruction& s = *b.instruction;
  running_ = &s;
  InputView* in = arrays_.data() + b.in;
  for (int i = 0; i < s.n_in; ++i) in[i].data = in[i].desc->storage ? in[i].desc->data() : nullptr;
  return {*s.op, s.attrs, in, s.n_in, results_.data() + b.out, s.n_out, b.device};
}

/// Sets a result's storage: its row of the stack, or else its memory of the previous step unless something else refers
/// to that, or else new memory.
void LoopRun::bind_output_storage(int slot) {
  TensorDesc& o = desc(slot);
  std::int64_t bytes = o.bytes();
  if (has_stack(slot)) {
    o.offset = row_ * bytes;
    return;
  }
  if (!uniquely_owned(o.storage.get(), bytes)) {
    o.storage = {};
    o.storage = Storage::allocate(bytes, o.device);
  }
  o.offset = 0;
}

inline void LoopRun::execute(Bound& b) {
  if (b.skipped) return;
  const Instruction& s = *b.instruction;
  const OpCall call = call_of(b);
  if (b.loop_invariant) b.skipped = true;
  if (b.dynamic) return execute_dynamic(call, s);
  if (b.views) return run(call, s);
  for (int i = 0; i < s.n_out; ++i) bind_output_storage(s.out + i);
  run_kernel(b.kernel, call, s.function);
}

void LoopRun::execute(LoopChain& c) {
  running_ = &program_.instruction(c.instructions.front());
  for (int slot : c.made) bind_output_storage(slot);
  c.chain.place_buffers([&](int slot) { return desc(slot).data(); });
  const ChainShape& shape = c.chain.shape();
  count_taken(shape.rows > 1 ? FastPath::loop_chain_of_rows : FastPath::loop_chain);
  const FusedScope scope(program_, c.instructions, [&](int slot) -> const TensorDesc& { return desc(slot); });
  if (c.chain.device() != cpu) return c.chain.enqueue();
  std::int64_t part = std::max<std::int64_t>(1, fast_path_thresholds.loop_chain_part / c.chain.work());
  const bool rows = shape.rows > 1;
  const std::int64_t n = rows ? shape.rows : shape.width, each = c.chain.scratch_bytes();
  if (rows) part = std::max<std::int64_t>(1, part / shape.width);
  chain_scratch_.reserve(each, devices::threads_for(n, part));
  devices::numbered_for(n, part, chain_scratch_.threads(each), [&](std::int64_t begin, std::int64_t end, int thread) {
    std::byte* const scratch = chain_scratch_.of(thread, each);
    rows ? c.chain.run_rows(begin, end, scratch) : c.chain.run(begin, end, scratch);
  });
}

/// Accumulates an instruction's product into the cotangent of a capture.
void LoopRun::add_product_to(const LoopGroup& group) {
  TensorDesc& sum = desc(group.sum);
  if (!uniquely_owned(sum.storage.get(), sum.bytes())) sum = copy_of(sum);
  Bound& product = bounds_[group.instruction];
  if (const OpCall call = call_of(product); run_accumulate(call, sum, product.instruction->function)) {
    count_taken(FastPath::loop_accumulated);
    return;
  }
  execute(product);
  const TensorDesc& share = desc(product.instruction->out);
  const InputView in[] = {{&sum, sum.data()}, {&share, share.data()}};
  run_binary(*program_.instruction(group.add).op, in, sum);
}

void LoopRun::run(const OpCall& call, const Instruction& s) {
  if ((pass_ == Pass::keeping || call_.again) && s.op->traits & kPrints) {  // recomputed, but not printed again
    put(*call.out[0], read_value(*call.in[0].desc));
  } else {
    compute(call, s.function);
  }
}

/// Runs an instruction whose shapes may differ each time: its rule runs, and its memory is new, as in
/// run_instruction in plan.cpp.
void LoopRun::execute_dynamic(const OpCall& call, const Instruction& s) {
  infer(call);
  bool known = true;
  for (int i = 0; i < s.n_out; ++i) {
    put(*call.out[i], {});
    known = known && call.out[i]->known();
  }
  if (s.need != kShape || !known) run(call, s);
}

void LoopRun::save_residuals() {
  for (std::size_t i = 0; i < list_slots_.size(); ++i) {
    const TensorDesc& b = desc(list_slots_[i]);
    step_values_[i].push_back(loop_->is_residual[list_slots_[i]] ? value_in(b) : Value());
    if (dynamic_[list_slots_[i]]) step_specs_[i].push_back(b);
  }
}

void LoopRun::collect_outputs() {
  const LoopProgram& p = *loop_;
  for (int i = 0; i < p.signature.n_ys; ++i)
    if (int slot = p.out_slots[i]; !has_stack(slot)) {
      if (call_.batched && dynamic_[slot]) check_output(slot);
      lists_[i].push_back(detached(desc(slot)));
    }
}

void LoopRun::check_output(int slot) {
  check_rows(call_.what, "an output", desc(slot), desc(loop_->arg_slots[0]).dims[0]);
}

void LoopRun::carry(const std::vector<Carry>& list) {
  moved_.clear();  // all are read before one is written
  for (const Carry& c : list) moved_.push_back(c.from < 0 ? Value() : value_in(desc(c.from)));
  for (std::size_t i = 0; i < list.size(); ++i) {
    TensorDesc& to = desc(list[i].to);
    const int from = list[i].from;
    if (from >= 0 && dynamic_[from] && &list == &states_) check_state(call_.what, to, desc(from), i);
    put(to, std::move(moved_[i]));
  }
}

void LoopRun::check_shapes() {
  for (int i = 0; call_.batched && i < loop_->signature.n_ys; ++i)
    if (int slot = loop_->out_slots[i]; !dynamic_[slot]) check_output(slot);
  for (std::size_t i = 0; i < states_.size(); ++i)
    if (!dynamic_[states_[i].from]) check_state(call_.what, desc(states_[i].to), desc(states_[i].from), i);
}

}  // namespace kassette::autograd
