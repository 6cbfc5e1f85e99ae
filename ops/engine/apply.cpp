// ops/engine/apply.cpp - running one op.
#include "ops/engine/apply.h"

#include "core/check_interrupt.h"
#include "core/external_backend_access.h"
#include "core/inline_array.h"
#include "core/sparse.h"
#include "core/text.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/observe.h"
#include "ops/engine/refusals.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace kassette::ops {
namespace {

/// An input and the value read from it.
struct InputValue {
  const TensorDesc* desc;
  Storage* storage;
  std::int64_t offset;
  std::int64_t version;  // of a variable
  std::byte* data() const { return static_cast<std::byte*>(storage->data) + offset; }
};

/// Keeps the values of variables alive while an op reads them. The first, if small, is read under its lock: counting a
/// reference would take two more atomic operations, a fifth of a small op. For all others a reference is counted.
class VariableReadGuard {
 public:
  /// `counted` has room for one pointer more than there are inputs.
  explicit VariableReadGuard(Storage** counted) : counted_(counted) {}
  VariableReadGuard(const VariableReadGuard&) = delete;
  VariableReadGuard& operator=(const VariableReadGuard&) = delete;
  ~VariableReadGuard() {
    if (locked_) locked_->unlock();
    for (int i = 0; i < n_counted_; ++i) Ref<Storage>::drop(counted_[i]);
  }
  static bool small(const Storage* s) { return s->bytes <= kSmall; }
  /// Returns an InputValue without storage if there is no value.
  __attribute__((always_inline)) InputValue read(const TensorDesc& b) {
    Storage* s = b.storage.get();
    std::int64_t offset = b.offset, version = 0;
    if (!s && (b.flags & (kLeaf | kSymbolic)) == kLeaf) s = read(*b.node->cell, offset, version);
    return {&b, s, offset, version};
  }
  /// Replaces the lock by a counted reference: the caller may then read the variable again.
  void count() {
    if (!locked_) return;
    Ref<Storage> value = locked_->value.storage;
    std::exchange(locked_, nullptr)->unlock();
    hold(std::move(value));
  }

 private:
  static constexpr std::int64_t kSmall = 1024;  // bytes: the lock is then held for tens of ns
  __attribute__((always_inline)) Storage* read(const Cell& cell, std::int64_t& offset, std::int64_t& version) {
    if (!any_) {
      any_ = true;
      cell.lock();
      Storage* s = cell.value.storage.get();
      if (s && small(s)) {
        locked_ = &cell;
        offset = cell.value.offset;
        version = cell.value.version;
        return s;
      }
      cell.unlock();
    }
    return read_counted(cell, offset, version);
  }
  __attribute__((noinline)) Storage* read_counted(const Cell& cell, std::int64_t& offset, std::int64_t& version) {
    if (locked_ == &cell) {
      offset = cell.value.offset;
      version = cell.value.version;
      return cell.value.storage.get();
    }
    count();  // never wait for a lock while holding another
    Value v = cell.load();
    offset = v.offset;
    version = v.version;
    return hold(std::move(v.storage));
  }
  Storage* hold(Ref<Storage> s) { return counted_[n_counted_++] = s.release(); }

  Storage** counted_;
  const Cell* locked_ = nullptr;
  bool any_ = false;
  int n_counted_ = 0;
};

[[noreturn]] __attribute__((noinline, cold)) void fail_no_value(const OpDef& op, const TensorDesc& b) {
  if (b.flags & kLeaf) fail_unset({op.name}, *b.node->cell);
  fail<RuntimeError>({op.name}, "the value of an operand ", static_cast<const TensorSpec&>(b), " was not kept");
}

/// Makes the call after moving rank-0 operands (numbers, learning rates) from the CPU to the device of the others.
/// Throws if any other operand is elsewhere.
__attribute__((noinline, cold)) void apply_on_one_device(const OpDef& op, const Attrs& attrs, const In* inputs,
                                                         int n_in, Tensor* out, int n_out) {
  Device device;
  for (int i = 0; i < n_in; ++i) {
    if (has_bit(op.host, i)) continue;
    const TensorDesc* b = inputs[i].desc();
    if (!b) fail_undefined(op, i);
    if (b->device == cpu) continue;
    if (device.given() && device != b->device) fail_devices(op, inputs);
    device = b->device;
  }
  auto moved = std::make_unique<In[]>(n_in);
  Tensors held;
  held.reserve(n_in);
  for (int i = 0; i < n_in; ++i) {
    const TensorDesc* b = inputs[i].desc();
    moved[i] = inputs[i];
    if (has_bit(op.host, i) || b->device == device) continue;
    if (b->rank != 0) fail_devices(op, inputs);
    held.push_back(scalar_on(*b, device));
    moved[i] = In(held[held.size() - 1]);
  }
  apply(op, attrs, moved.get(), n_in, out, n_out);
}

// Shape, dtype, device, flags, depth and output of a descriptor; its offset, storage and node follow.
constexpr std::size_t kDescHead = sizeof(TensorDesc) - sizeof(std::int64_t) - 2 * sizeof(void*);

/// Makes a descriptor in raw memory: `from` with the given offset, storage and node. Returns the bytes of `storage`.
std::int64_t fill(TensorDesc* to, const TensorDesc& from, Storage* storage, std::int64_t offset, Node* node) {
  std::memcpy(static_cast<void*>(to), static_cast<const void*>(&from), kDescHead);
  to->offset = offset;
  new (&to->storage) Ref<Storage>(storage);
  new (&to->node) Ref<Node>(node);
  return storage ? storage->bytes : 0;
}

/// Returns how many output descriptors a node keeps: of many outputs with one shape and dtype, whose values no adjoint
/// reads, only the first.
inline int saved_output_count(const OpDef& op, TensorDesc* const* out, int n_out) {
  constexpr int kFew = 16;
  if (n_out == 1) return op.saves_out ? 1 : 0;
  if (n_out <= kFew || op.saves_out) return n_out;
  for (int i = 1; i < n_out; ++i)
    if (!out[i]->same_shape(*out[0]) || out[i]->dtype != out[0]->dtype) return n_out;
  return 1;
}

/// n_in and n_out repeat those of the call, because they may be constants here, which unrolls the loops.
inline __attribute__((always_inline)) void record(const OpCall& call, const InputValue* from, int n_in, int n_out,
                                                  Context& c) {
  const OpDef& op = call.op;
  TensorDesc* const* out = call.out;
  const int kept = saved_output_count(op, out, n_out);
  Node* node = Node::make_raw(c, &op, call.attrs, n_in, n_out, kept);
  TensorDesc* in = node->in();
  std::uint64_t seq = c.clock;
  std::int64_t saved = 0;
#pragma GCC unroll 3
  for (int i = 0; i < n_in; ++i) {
    const TensorDesc& b = *from[i].desc;
    Node* maker = b.node.get();
    if (maker && maker->seq > seq) seq = maker->seq;
    // A constant keeps its value for replays; a tracked input only if the adjoint reads it. A saved value takes
    // precedence over the cell.
    bool keeps = has_bit(op.saves_in, i) || (!maker && c.keeps_constants);
    // A loop body captures values from here, and a loop that runs eagerly (Note [Checkpoints]) reads them.
    if (!keeps && c.depth > b.depth) keeps = !(b.flags & kLeaf);
    saved += fill(in + i, b, keeps ? from[i].storage : nullptr, from[i].offset, maker);
    if (!keeps) in[i].version = from[i].version;
  }
  for (int i = 0; i < n_out; ++i) {
    TensorDesc& b = *out[i];
    b.out = i;
    if (i < kept)
      saved += fill(in + n_in + i, b, has_bit(op.saves_out, i) ? b.storage.get() : nullptr, b.offset, nullptr);
  }
  node->seq = c.clock = seq + 1;
  if (saved) {
    node->saved = saved;
    c.saved_bytes.add(saved);
  }
  c.recorded.add(1);
  for (int i = 1; i < n_out; ++i) out[i]->node = Ref<Node>(node);
  out[0]->node = Ref<Node>::adopt(node);
}

/// A function of its own, so that tests/scripts/overhead.sh can count its calls.
__attribute__((noinline)) Tensor make_output(Context& c) { return Access::adopt(TensorImpl::make(c)); }

}  // namespace

Value read_value(const TensorDesc& b) {
  if (!b.storage && (b.flags & kLeaf) && !(b.flags & kSymbolic)) return b.node->cell->load();
  return {b.storage, b.offset};
}

void allocate_output(TensorDesc& out, Device device) {
  out.storage = Storage::allocate(out.checked_bytes("allocate"), device);
  out.offset = 0;
}
void share_input(const OpCall& call, int i) {
  Value v = read_value(*call.in[i].desc);
  call.out[0]->storage = std::move(v.storage);
  call.out[0]->offset = v.offset;
}

Decision decide(const OpDef& op, const Attrs& attrs, const InputSummary& summary, const Context& c) {
  const bool makes = op.traits & (kDraws | kMakesKey), recorded = summary.tracked && c.recording;
  const bool in_scope = c.symbolic && (summary.tracked || (op.traits & (kMakesKey | kDraws | kEffect | kPrints)));
  Decision d;
  d.symbolic = in_scope || (summary.flags & kSymbolic);
  d.records = d.symbolic || recorded || makes;
  d.draw = makes && !d.symbolic && !recorded;
  d.depth = std::max({summary.depth, makes ? c.depth : summary.depth, d.symbolic ? c.branch_depth : summary.depth});
  d.device = summary.device.given() ? summary.device : placed_device(op, attrs);
  return d;
}

namespace {

/// Allocates the outputs and computes them: `run` is the kernel, or calls it. n_out is 0 if the kernel sets their
/// memory.
template <class F>
inline __attribute__((always_inline)) void compute_on(const OpCall& call, int n_out, Context& c, const F& run) {
  try {
    for (int i = 0; i < n_out; ++i)
      if (TensorDesc& b = *call.out[i]; b.known())
        b.storage = Storage::allocate(c, b.checked_bytes(call.op.name), call.device);
    run(call);
  } catch (const MemoryError&) {
    rethrow_for(call.op.name);
  }
}

/// Reads the inputs. Returns false if they are on several devices.
bool collect(const OpDef& op, const In* inputs, int n_in, InputValue* from, VariableReadGuard& guard,
             InputSummary& summary) {
  const AfterUpdates* after = context().pending_updates;
  for (int i = 0; i < n_in; ++i) {
    const TensorDesc* b = inputs[i].desc();
    if (!b) fail_undefined(op, i);
    if (after) b = after->substitute(b);
    if (b->node) {
      summary.tracked = summary.tracked || !(b->flags & kDraw);
      summary.depth = std::max(summary.depth, b->depth);
    }
    summary.flags |= b->flags;
    if (b->flags & kSparse) fail_sparse(op, i, *b);
    if (b->flags & kForeign) fail_foreign(op.name, *b);
    if (!has_bit(op.host, i) && !op.anywhere) {
      if (summary.device.given() && b->device != summary.device) return false;
      summary.device = b->device;
    }
    from[i] = guard.read(*b);
  }
  return true;
}

}  // namespace

Device device_of(const OpDef& op, const Attrs& attrs, const InputView* in, int n_in) {
  for (int i = 0; i < n_in; ++i)
    if (!has_bit(op.host, i) && !op.anywhere) return in[i].desc->device;
  return placed_device(op, attrs);
}

void infer(const OpCall& call) {
  for (int i = 0; i < call.n_out; ++i) call.out[i]->device = call.device;
  if (call.n_out == 1) {
    call.op.rule(call, call.out[0]);
  } else {
    auto specs = std::make_unique<TensorSpec[]>(call.n_out);
    call.op.rule(call, specs.get());
    for (int i = 0; i < call.n_out; ++i) call.out[i]->set(specs[i]);
  }
}

void compute(const OpCall& call, std::int32_t origin) {
  const Kernel kernel = call.device.type() == Device::kCpu ? call.op.cpu : call.op.cuda;
  if (!kernel) fail<NotImplementedError>({call.op.name}, "not available on ", call.device);
  compute_on(call, call.op.traits & kView ? 0 : call.n_out, context(),
             [=](const OpCall& c) { run_kernel(kernel, c, origin); });
}

__attribute__((flatten)) void apply(const OpDef& op, const Attrs& attrs, const In* inputs, int n_in, Tensor* out,
                                    int n_out) {
  check_interrupt();
  Context& c = context();
  InlineArray<InputValue, 6> from(n_in);
  InlineArray<InputView, 6> args(n_in);
  InlineArray<TensorDesc*, 4> outs(n_out);
  InlineArray<Storage*, 6> counted(n_in + 1);
  VariableReadGuard guard(counted.get());
  InputSummary summary;
  const bool same_device = collect(op, inputs, n_in, from.get(), guard, summary);
  guard.count();
  if (!same_device) return apply_on_one_device(op, attrs, inputs, n_in, out, n_out);
  const Decision d = decide(op, attrs, summary, c);
  for (int i = 0; i < n_in; ++i) args[i] = {from[i].desc, from[i].storage ? from[i].data() : nullptr};
  for (int i = 0; i < n_out; ++i) {
    out[i] = make_output(c);
    outs[i] = &Access::desc(out[i]);
  }
  const OpCall call{op, attrs, args.get(), n_in, outs.get(), n_out, d.device};
  infer(call);
  for (int i = 0; i < n_out; ++i) {
    outs[i]->flags = (summary.flags & kPhase) | (d.symbolic ? kSymbolic : 0);
    outs[i]->depth = d.depth;
  }
  const std::int32_t origin = d.symbolic || observed() ? origin_here(c) : 0;
  if (!d.symbolic) {
    for (int i = 0; i < n_in; ++i)
      if (!from[i].storage && !has_bit(op.shape_only, i)) fail_no_value(op, *from[i].desc);
    compute(call, origin);
  }
  if (d.records) {
    record(call, from.get(), n_in, n_out, c);
    if (origin) outs[0]->node->function = origin;
  }
  for (int i = 0; d.draw && i < n_out; ++i) outs[i]->flags |= kDraw;
}

namespace {

// The fast path of apply, without most of its checks: for an op with one output whose inputs are all on the CPU and
// have values, nothing symbolic, no draws, observed by nobody. Returns null if a call is not of that kind. A kernel
// that runs here must not read its variables again (read_value), which would deadlock: ops with kView do that, and take
// the general path.

/// Destroys an op's output if its kernel throws.
struct Unfinished {
  TensorImpl* impl;
  ~Unfinished() {
    if (impl) TensorImpl::destroy(impl);
  }
  TensorImpl* finished() { return std::exchange(impl, nullptr); }
};

template <int kInputs>
TensorImpl* fast_tracked(const OpDef& op, const Attrs& attrs, const In* inputs, Context& c);

/// `kTracked`: some inputs have history, variables among them.
template <int kInputs, bool kTracked>
inline __attribute__((always_inline)) TensorImpl* fast(const OpDef& op, const Attrs& attrs, const In* inputs,
                                                       Context& c) {
  InputValue from[kInputs];
  InputView args[kInputs];
  Storage* counted[kInputs + 1];
  [[maybe_unused]] std::conditional_t<kTracked, VariableReadGuard, Storage**> guard{counted};
  std::uint8_t depth = 0;
  bool small = true;
#pragma GCC unroll 3
  for (int i = 0; i < kInputs; ++i) {
    const TensorDesc* b = inputs[i].desc();
    if constexpr (kTracked) {
      if (!b || (b->flags & ~kLeaf) || b->device != cpu) return nullptr;
      from[i] = guard.read(*b);
      if (!from[i].storage) return nullptr;
      small = small && VariableReadGuard::small(from[i].storage);
      depth = std::max(depth, b->depth);
      args[i] = {b, from[i].data()};
    } else {
      if (b && b->node) return fast_tracked<kInputs>(op, attrs, inputs, c);
      if (!b || b->flags || !b->storage || b->device != cpu) return nullptr;
      args[i] = {b, b->data()};
    }
  }
  if constexpr (kTracked)
    if (!small) guard.count();
  check_interrupt();
  Unfinished out{TensorImpl::make(c)};
  TensorDesc* desc = &out.impl->desc;
  const OpCall call{op, attrs, args, kInputs, &desc, 1, cpu};
  op.rule(call, desc);
  desc->device = cpu;
  compute_on(call, 1, c, op.cpu);
  if (kTracked && c.recording) {
    desc->depth = depth;
    record(call, from, kInputs, 1, c);
  }
  return out.finished();
}

/// Not inlined, so that the untracked path does without its stack frame.
template <int kInputs>
__attribute__((noinline)) TensorImpl* fast_tracked(const OpDef& op, const Attrs& attrs, const In* inputs, Context& c) {
  return c.symbolic ? nullptr : fast<kInputs, true>(op, attrs, inputs, c);
}

}  // namespace

Tensor apply1(const OpDef& op, const Attrs& attrs, std::initializer_list<In> in) {
  Context& c = context();
  TensorImpl* made = nullptr;
  if (!c.pending_updates && !(op.traits & ~(kElementwise | kOverwrites)) && !op.placement && !observed())
    switch (in.size()) {
      case 1: made = fast<1, false>(op, attrs, in.begin(), c); break;
      case 2: made = fast<2, false>(op, attrs, in.begin(), c); break;
      case 3: made = fast<3, false>(op, attrs, in.begin(), c); break;
    }
  Tensor out = Access::adopt(made);
  if (!out.defined()) apply(op, attrs, in.begin(), in.size(), &out, 1);
  return out;
}

Tensors apply_all(const OpDef& op, const Attrs& attrs, const Tensors& in) {
  int n_in = in.size(), n_out = outputs_of(op, attrs);
  if (n_out > kMaxOutputs)
    fail<NotImplementedError>({op.name}, n_out, " results", kExpected, "one op has at most ", kMaxOutputs);
  InlineArray<In, 8> ins(n_in);
  for (int i = 0; i < n_in; ++i) ins[i] = In(in.begin()[i]);
  Tensors out;
  out.reserve(n_out);
  for (int i = 0; i < n_out; ++i) out.push_back(Tensor());
  apply(op, attrs, ins.get(), n_in, out.begin(), n_out);
  return out;
}

void VjpContext::accumulate(int i, const OpDef& op, const Attrs& a, std::initializer_list<In> in) const {
  if (!accumulator_ || !accumulator_->accumulate(node.in()[i], op, a, in.begin(), in.size()))
    din(i) = apply1(op, a, in);
}
Tensor VjpContext::in(int i) const { return Access::wrap(node.in()[i]); }
Tensor VjpContext::out(int i) const {
  TensorDesc b;
  if (node.n_saved_out) b = node.out()[node.n_saved_out == 1 ? 0 : i];
  b.out = i;
  b.node = Ref<Node>(&node);
  return Access::wrap(std::move(b));
}

}  // namespace kassette::ops
