// ops/apply.cpp - running one op.
#include "core/check_interrupt.h"
#include "core/engine_access.h"
#include "core/sparse.h"
#include "core/text.h"
#include "ops/named.h"
#include "ops/op.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace kassette {
namespace {

/// n objects on the stack up to N, else on the heap.
template <class T, int N>
class Few {
 public:
  explicit Few(int n) : data_(n <= N ? fixed_ : new T[static_cast<std::size_t>(n)]) {}
  ~Few() {
    if (data_ != fixed_) delete[] data_;
  }
  Few(const Few&) = delete;
  Few& operator=(const Few&) = delete;
  T& operator[](int i) { return data_[i]; }
  T* get() { return data_; }

 private:
  T fixed_[N];
  T* data_;
};

/// Storage read from variables: held until the op is recorded.
struct Loaded {
  static constexpr int kFew = 4;
  Storage* few[kFew];
  int n = 0;
  std::unique_ptr<Loaded> more;
  Loaded() {}
  ~Loaded() {
    for (int i = 0; i < n; ++i) Ref<Storage>::drop(few[i]);
  }
  Storage* hold(Ref<Storage> s) {
    if (n == kFew) {
      if (!more) more = std::make_unique<Loaded>();
      return more->hold(std::move(s));
    }
    return few[n++] = s.release();
  }
};

struct Seen {
  std::uint8_t flags = 0, level = 0;
  bool tracked = false, draw = false;
  Device device;
};

[[noreturn]] __attribute__((noinline, cold)) void fail_undefined(const OpDef& op, int i) {
  fail<ValueError>(op.name, ": argument ", i + 1, " is an empty Tensor (an uninitialised variable?)");
}
[[noreturn]] __attribute__((noinline, cold)) void fail_device(const OpDef& op, Device a, Device b) {
  fail<DeviceError>(op.name, ": one operand is on ", a, ", another on ", b, "; move one with .to(\"", a, "\")");
}
[[noreturn]] __attribute__((noinline, cold)) void fail_no_value(const OpDef& op, const Body& b) {
  if (b.flags & kLeaf)
    fail<RuntimeError>(op.name, ": the variable ", static_cast<const Spec&>(b),
                       " has no value yet; give it one with K::set_value");
  fail<RuntimeError>(op.name, ": the value of an operand ", static_cast<const Spec&>(b), " was not kept");
}

[[noreturn]] __attribute__((noinline, cold)) void fail_foreign(const OpDef& op, const In* inputs, int n_in) {
  for (int i = 0; i < n_in; ++i)
    if (inputs[i].body()->flags & kForeign) kassette::fail_foreign(op.name, *inputs[i].body());
  __builtin_unreachable();
}

/// The same call with the rank-0 operands of the CPU moved to where the others are: numbers, learning rates. Other operands have to
/// be there already.
__attribute__((noinline, cold)) void apply_on_one_device(const OpDef& op, const Attrs& attrs, const In* inputs, int n_in, Tensor* out,
                                                         int n_out) {
  Device device;
  const Body* first = nullptr;
  for (int i = 0; i < n_in; ++i) {
    if (has_bit(op.host, i)) continue;
    const Body* b = inputs[i].body();
    if (!b) fail_undefined(op, i);
    if (!first) first = b;
    if (b->device == cpu) continue;
    if (device.given() && device != b->device) fail_device(op, device, b->device);
    device = b->device;
  }
  auto moved = std::make_unique<In[]>(static_cast<std::size_t>(n_in));
  Tensors held;
  held.reserve(n_in);
  for (int i = 0; i < n_in; ++i) {
    const Body* b = inputs[i].body();
    moved[i] = inputs[i];
    if (has_bit(op.host, i) || b->device == device) continue;
    if (b->rank != 0) fail_device(op, first->device, first->device == cpu ? device : b->device);
    held.push_back(scalar_on(*b, device));
    moved[i] = In(held[held.size() - 1]);
  }
  apply(op, attrs, moved.get(), n_in, out, n_out);
}

struct Source {
  const Body* body;
  Storage* storage;
  std::int64_t offset;
  std::int64_t version;   // of a variable
};

// Shape, dtype, device, flags, level and output of a body; its offset, storage and node follow.
constexpr std::size_t kBodyHead = sizeof(Body) - sizeof(std::int64_t) - 2 * sizeof(void*);

/// Makes a body in raw memory: all of `from` but its storage and node.
std::int64_t fill(Body* to, const Body& from, Storage* storage, std::int64_t offset, Node* node) {
  std::memcpy(static_cast<void*>(to), static_cast<const void*>(&from), kBodyHead);
  to->offset = offset;
  new (&to->storage) Ref<Storage>(storage);
  new (&to->node) Ref<Node>(node);
  return storage ? storage->bytes : 0;
}

/// How many output bodies a node keeps. Thousands of parts of one shape, of which no value is read, are described by the first.
inline int kept_of(const OpDef& op, Body* const* out, int n_out) {
  constexpr int kFew = 16;
  if (n_out == 1) return op.saves_out ? 1 : 0;
  if (n_out <= kFew || op.saves_out) return n_out;
  for (int i = 1; i < n_out; ++i)
    if (!out[i]->same_shape(*out[0]) || out[i]->dtype != out[0]->dtype) return n_out;
  return 1;
}

inline __attribute__((always_inline)) void record(const OpDef& op, const Attrs& attrs, const Source* from, int n_in, Body* const* out, int n_out, Context& c) {
  int kept = kept_of(op, out, n_out);
  Node* node = Node::make_raw(c, &op, attrs, static_cast<std::uint32_t>(n_in), static_cast<std::uint16_t>(n_out),
                              static_cast<std::uint16_t>(kept));
  Body* in = node->in();
  std::uint64_t seq = c.clock;
  std::int64_t saved = 0;
#pragma GCC unroll 3
  for (int i = 0; i < n_in; ++i) {
    const Body& b = *from[i].body;
    Node* maker = b.node.get();
    if (maker && maker->seq > seq) seq = maker->seq;
    // A constant keeps its value for replays; a tracked input only if the adjoint reads it. What was saved wins over the cell.
    bool keeps = has_bit(op.saves_in, i) || (!maker && c.replays);
    // What a body captures comes from here, and a loop that runs at once (Note [Checkpoints]) reads it.
    if (!keeps && c.depth > b.level) keeps = !(b.flags & kLeaf);
    saved += fill(in + i, b, keeps ? from[i].storage : nullptr, keeps ? from[i].offset : from[i].version, maker);
  }
  for (int i = 0; i < n_out; ++i) {
    Body& b = *out[i];
    b.out = static_cast<std::uint16_t>(i);
    if (i < kept) saved += fill(in + n_in + i, b, has_bit(op.saves_out, i) ? b.storage.get() : nullptr, b.offset, nullptr);
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

Value read_value(const Body& b) {
  if (!b.storage && (b.flags & kLeaf) && !(b.flags & kSymbolic)) return b.node->cell->load();
  return {b.storage, b.offset};
}

void allocate_output(Body& out, Device device) {
  out.storage = Storage::allocate(out.checked_bytes("allocate"), device);
  out.offset = 0;
}

void apply(const OpDef& op, const Attrs& attrs, const In* inputs, int n_in, Tensor* out, int n_out) {
  check_interrupt();
  Context& c = context();
  Few<Array, 6> args(n_in);
  Few<Source, 6> from(n_in);
  Loaded loaded;
  Seen seen;
  for (int i = 0; i < n_in; ++i) {
    const Body* b = inputs[i].body();
    if (!b) fail_undefined(op, i);
    if (c.after) b = c.after->substitute(b);
    Storage* s = b->storage.get();
    std::int64_t offset = b->offset, version = 0;
    if (b->node) {
      if (!s && (b->flags & (kLeaf | kSymbolic)) == kLeaf) {
        Value v = b->node->cell->load();
        offset = v.offset;
        version = v.version;
        s = v.storage ? loaded.hold(std::move(v.storage)) : nullptr;
      }
      if (b->flags & kDraw) seen.draw = true;
      else seen.tracked = true;
      if (b->level > seen.level) seen.level = b->level;
    }
    seen.flags |= b->flags;
    if (is_sparse(*b)) fail_sparse(op.name, *b);
    if (!has_bit(op.host, i) && b->device != seen.device) {
      if (seen.device.given()) return apply_on_one_device(op, attrs, inputs, n_in, out, n_out);
      seen.device = b->device;
    }
    from[i] = {b, s, offset, version};
    args[i] = {b, s ? static_cast<std::byte*>(s->data) + offset : nullptr};
  }
  if (seen.flags & kForeign) fail_foreign(op, inputs, n_in);
  if (!seen.device.given()) seen.device = op.traits & kPlaced ? placed_device(attrs) : cpu;
  bool symbolic = seen.flags & kSymbolic;
  if (c.symbolic && (seen.tracked || (op.traits & (kSource | kDraws | kEffect | kPrints)))) symbolic = true;
  if (op.traits & (kDraws | kSource) && c.depth > seen.level) seen.level = c.depth;
  if (symbolic && c.floor > seen.level) seen.level = c.floor;

  Body* bodies[4];
  std::unique_ptr<Body*[]> many;
  Body** outs = bodies;
  if (n_out > 4) outs = (many = std::make_unique<Body*[]>(static_cast<std::size_t>(n_out))).get();
  for (int i = 0; i < n_out; ++i) {
    out[i] = make_output(c);
    outs[i] = &Access::body(out[i]);
  }
  Call call{op, attrs, args.get(), n_in, outs, n_out, seen.device};
  if (n_out == 1) {
    op.rule(call, outs[0]);
  } else {
    auto specs = std::make_unique<Spec[]>(static_cast<std::size_t>(n_out));
    op.rule(call, specs.get());
    for (int i = 0; i < n_out; ++i) outs[i]->set(specs[i]);
  }
  for (int i = 0; i < n_out; ++i) {
    Body& b = *outs[i];
    b.device = seen.device;
    b.flags = static_cast<std::uint8_t>((seen.flags & kPhase) | (symbolic ? kSymbolic : 0));
    b.level = seen.level;
  }
  if (!symbolic) {
    for (int i = 0; i < n_in; ++i)
      if (!args[i].data && !has_bit(op.shape_only, i) && (!from[i].storage)) fail_no_value(op, *from[i].body);
    Kernel kernel = seen.device.type() == Device::kCpu ? op.cpu : op.cuda;
    if (!kernel) fail<NotImplementedError>(op.name, ": not available on ", seen.device);
    try {
      if (!(op.traits & kView))
        for (int i = 0; i < n_out; ++i)
          if (outs[i]->known()) outs[i]->storage = Storage::allocate(outs[i]->checked_bytes(op.name), seen.device);
      kernel(call);
    } catch (const MemoryError&) {
      rethrow_for(op.name);
    }
  }
  bool draws = op.traits & (kDraws | kSource);
  if (symbolic || (seen.tracked && c.recording) || draws) record(op, attrs, from.get(), n_in, outs, n_out, c);
  if (draws && !symbolic && !(seen.tracked && c.recording))
    for (int i = 0; i < n_out; ++i) outs[i]->flags |= kDraw;
}

namespace {

constexpr int kPlainInputs = 3;

/// What a throw in the midst of an op frees.
struct Unfinished {
  TensorImpl* impl;
  ~Unfinished() {
    if (impl) TensorImpl::destroy(impl);
  }
  TensorImpl* finished() { return std::exchange(impl, nullptr); }
};

/// One output of a concrete call on the CPU: rule, storage, kernel.
inline __attribute__((always_inline)) TensorImpl* run_plain(const OpDef& op, const Attrs& attrs, const Array* args, int n_in, Context& c) {
  check_interrupt();
  Unfinished made{TensorImpl::make(c)};
  Body* body = &made.impl->body;
  Call call{op, attrs, args, n_in, &body, 1, cpu};
  op.rule(call, body);
  body->device = cpu;
  try {
    if (body->known()) body->storage = Storage::allocate(c, body->checked_bytes(op.name), cpu);
    op.cpu(call);
  } catch (const MemoryError&) {
    rethrow_for(op.name);
  }
  return made.finished();
}

// A kernel that runs here must not read its variables again (read_value): the lock would wait for itself. Only rows with
// kView do that, and those take the long way.

/// The values of variables while an op reads them. A small value of a single variable is read under its lock: a count up and
/// down would be two more atomic operations, a fifth of a small op. Anything else is counted.
class Held {
 public:
  Held() = default;
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    if (locked_) locked_->unlock();
    for (int i = 0; i < n_counted_; ++i) Ref<Storage>::drop(counted_[i]);
  }
  /// Gives the lock back for a count.
  void count() {
    if (!locked_) return;
    Ref<Storage> value = locked_->value.storage;
    std::exchange(locked_, nullptr)->unlock();
    hold(std::move(value));
  }
  static bool small(const Storage* s) { return s->bytes <= kSmall; }
  /// Null where the variable has no value.
  Storage* read(const Cell& cell, std::int64_t& offset, std::int64_t& version) {
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

 private:
  static constexpr std::int64_t kSmall = 1024;   // bytes: a lock is held for tens of nanoseconds
  __attribute__((noinline)) Storage* read_counted(const Cell& cell, std::int64_t& offset, std::int64_t& version) {
    if (locked_ == &cell) {
      offset = cell.value.offset;
      version = cell.value.version;
      return cell.value.storage.get();
    }
    count();   // a second variable: never wait for a lock with another in hand
    Value v = cell.load();
    offset = v.offset;
    version = v.version;
    return hold(std::move(v.storage));
  }
  Storage* hold(Ref<Storage> s) { return counted_[n_counted_++] = s.release(); }

  const Cell* locked_ = nullptr;
  bool any_ = false;
  int n_counted_ = 0;
  Storage* counted_[kPlainInputs + 1];
};

/// The same where some inputs have history, variables among them; nothing symbolic, no draws. Null where that is not so.
template <int kInputs>
__attribute__((noinline)) TensorImpl* apply_tracked(const OpDef& op, const Attrs& attrs, const In* inputs, Context& c) {
  if (c.symbolic) return nullptr;
  Array args[kInputs];
  Source from[kInputs];
  Held held;
  bool small = true;
  std::uint8_t level = 0;
#pragma GCC unroll 3
  for (int i = 0; i < kInputs; ++i) {
    const Body* b = inputs[i].body();
    if (!b || (b->flags & ~kLeaf) || b->device != cpu) return nullptr;
    Storage* s = b->storage.get();
    std::int64_t offset = b->offset, version = 0;
    if (!s) {
      if (!(b->flags & kLeaf)) return nullptr;
      s = held.read(*b->node->cell, offset, version);
      if (!s) return nullptr;
    }
    small = small && Held::small(s);
    if (b->level > level) level = b->level;
    from[i] = {b, s, offset, version};
    args[i] = {b, static_cast<std::byte*>(s->data) + offset};
  }
  if (!small) held.count();
  Unfinished out{run_plain(op, attrs, args, kInputs, c)};
  if (c.recording) {
    Body* body = &out.impl->body;
    body->level = level;
    record(op, attrs, from, kInputs, &body, 1, c);
  }
  return out.finished();
}

/// The common case without the questions: concrete tensors with a value, all on the CPU, one output. Null where that is
/// not so.
template <int kInputs>
TensorImpl* apply_plain(const OpDef& op, const Attrs& attrs, const In* inputs, Context& c) {
  Array args[kInputs];
#pragma GCC unroll 3
  for (int i = 0; i < kInputs; ++i) {
    const Body* b = inputs[i].body();
    if (b && b->node) return apply_tracked<kInputs>(op, attrs, inputs, c);
    if (!b || b->flags || !b->storage || b->device != cpu) return nullptr;
    args[i] = {b, b->data()};
  }
  return run_plain(op, attrs, args, kInputs, c);
}

TensorImpl* apply_plain(const OpDef& op, const Attrs& attrs, std::initializer_list<In> in, Context& c) {
  if (c.after || (op.traits & ~kElementwise)) return nullptr;
  switch (in.size()) {
    case 1: return apply_plain<1>(op, attrs, in.begin(), c);
    case 2: return apply_plain<2>(op, attrs, in.begin(), c);
    case kPlainInputs: return apply_plain<kPlainInputs>(op, attrs, in.begin(), c);
    default: return nullptr;
  }
}

}  // namespace

Tensor apply1(const OpDef& op, const Attrs& attrs, std::initializer_list<In> in) {
  Context& c = context();
  Tensor out = Access::adopt(apply_plain(op, attrs, in, c));
  if (!out.defined()) apply(op, attrs, in.begin(), static_cast<int>(in.size()), &out, 1);
  return out;
}

Tensors apply_all(const OpDef& op, const Attrs& attrs, const Tensors& in) {
  int n_in = static_cast<int>(in.size()), n_out = outputs_of(op, attrs);
  if (n_out > kMaxOutputs) fail<NotImplementedError>(op.name, ": ", n_out, " results; one op has at most ", kMaxOutputs);
  Few<In, 8> ins(n_in);
  for (int i = 0; i < n_in; ++i) ins[i] = In(in.begin()[i]);
  Tensors out;
  out.reserve(n_out);
  for (int i = 0; i < n_out; ++i) out.push_back(Tensor());
  apply(op, attrs, ins.get(), n_in, out.begin(), n_out);
  return out;
}

void Rewind::give(int i, const OpDef& op, const Attrs& a, std::initializer_list<In> in) const {
  if (!accumulator_ || !op.accumulate || !accumulator_->accumulate(node.in()[i], op, a, in.begin(), static_cast<int>(in.size()))) din(i) = apply1(op, a, in);
}
Tensor Rewind::in(int i) const { return Access::wrap(node.in()[i]); }
Tensor Rewind::out(int i) const {
  Body b;
  if (node.n_kept) b = node.out()[node.n_kept == 1 ? 0 : i];
  b.out = static_cast<std::uint16_t>(i);
  b.node = Ref<Node>(&node);
  return Access::wrap(std::move(b));
}

}  // namespace kassette
