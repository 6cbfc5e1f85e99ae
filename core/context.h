// core/context.h - the thread-local state: scopes, a cache of small blocks, this thread's share of the counters.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <kassette/device.h>

#include "core/sanitizers.h"

namespace kassette {

struct Node;
struct TensorDesc;
class Tensors;

/// What ops inside K::control_dependencies read in place of a variable that is updated there: its new value.
class AfterUpdates {
 public:
  virtual const TensorDesc* substitute(const TensorDesc* b) const = 0;

 protected:
  ~AfterUpdates() = default;
};

/// An object with a count of references that may own others like it, in chains of any length: the last reference
/// destroys them one after the other, as Node::destroy does with nodes, since recursion could overflow the stack.
class DestroyedInTurn {
 public:
  std::atomic<std::int32_t> count{1};
  static void destroy(DestroyedInTurn* p) noexcept;

 protected:
  virtual ~DestroyedInTurn() = default;

 private:
  DestroyedInTurn* next_dying_ = nullptr;
};

/// A thread's free blocks of one size. Two lists of up to kPoolBatch blocks each, so that a thread that frees what
/// another allocates exchanges whole batches with the shared pool.
struct PoolList {
  void* head = nullptr;
  void* spare = nullptr;  // a full batch, or null
  std::uint32_t count = 0;
};

inline constexpr std::size_t kMaxPooled = 4352;                    // bytes
inline constexpr int kPoolLists = 64 + (kMaxPooled - 1024) / 256;  // see pool_list()

/// A counter that only its own thread writes and any thread may read: relaxed loads and stores, no atomic add.
class Counter {
 public:
  void add(std::int64_t n) { value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  std::int64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

/// The part of the context that scopes set and restore (see Scoped).
struct ScopeState {
  bool recording = true;          // ops on tensors with history make nodes
  bool symbolic = false;          // inside K::symbolic or a body of control flow
  bool in_external_call = false;  // inside a call of an external backend: K functions run in the built-in backend
  /// Nodes keep their constants, so that a function can replay them; false: kept for the backward pass alone.
  bool keeps_constants = true;
  std::uint8_t depth = 0;         // number of enclosing bodies of control flow
  std::uint8_t branch_depth = 0;  // depth of the innermost branch: the least depth of symbolic results recorded in it
  /// The K function that errors of recorded ops are attributed to: Note [Error attribution],
  /// ops/engine/error_attribution.h.
  std::int32_t function = 0;
  Device default_device = cpu;                    // where new tensors are made (DeviceScope)
  const AfterUpdates* pending_updates = nullptr;  // inside control_dependencies
  int scoped_phase = -1;                          // the learning phase set by a scope, 0 or 1; -1: no such scope
  void* external_call = nullptr;                  // the innermost call into an external backend
  Tensors* updates = nullptr;                     // update ops of the callable that K::function is tracing
  const char* name_scope = nullptr;               // "outer/inner/": the prefix of names
  void* random_scopes = nullptr;                  // list of the live objects of testing.h's Random, innermost first
  /// Steps between the checkpoints of a loop: Note [Checkpoints], autograd/loops/checkpoint.h.
  std::int64_t checkpoint_steps = -1;
  std::uint64_t loop_steps = 1;  // product of the lengths of the enclosing eager loops
  std::uint64_t loop_step = 0;   // index of the current step among these: Note [Series of draws], ops/random/random.h
};

/// All state of one thread. Freed when the thread ends.
struct Context : ScopeState {
  std::uint64_t clock = 0;  // the largest sequence number that this thread has assigned to a node
  bool destroying = false;  // Node::destroy is on the stack: further dead nodes are queued in `dying`
  Node* dying = nullptr;
  bool destroying_in_turn = false;  // likewise for DestroyedInTurn::destroy
  DestroyedInTurn* dying_in_turn = nullptr;

  Counter live_nodes, saved_bytes, live_tensors, live_bytes, recorded;
  int growing = 0;  // number of consecutive calls of gradients whose segment was larger than that of the call before
  std::int64_t last_segment = 0;  // nodes of the last call

  void* backward_scratch = nullptr;  // lists of the last backward pass (autograd), which the next one reuses
  void (*delete_backward_scratch)(void*) = nullptr;

  PoolList lists[kPoolLists];
  char* bump = nullptr;
  char* bump_end = nullptr;
  Context* next = nullptr;  // list of all contexts, for totals()
  Context* previous = nullptr;
};

// Initial-exec: one load, no call of __tls_get_addr. The library's thread-locals take a few hundred bytes of static
// TLS.
extern __thread Context* tls_context __attribute__((tls_model("initial-exec"), visibility("hidden")));
Context& make_context();
inline Context& context() {
  Context* c = tls_context;
  return __builtin_expect(c != nullptr, 1) ? *c : make_context();
}

/// Sets a member of the context for a scope.
template <class T>
class Scoped {
 public:
  Scoped(T& target, T value) : target_(target), old_(target) { target_ = value; }
  ~Scoped() { target_ = old_; }
  Scoped(const Scoped&) = delete;
  Scoped& operator=(const Scoped&) = delete;

 private:
  T& target_;
  T old_;
};

/// Sums over all threads, including those that have ended.
struct Totals {
  std::int64_t live_nodes, saved_bytes, live_tensors, live_bytes, recorded;
};
Totals totals();

// ---- small blocks ---------------------------------------------------------------------------------------------------
inline constexpr std::uint32_t kPoolBatch = 64;  // blocks that move between a thread and the shared pool at once
inline int pool_list(std::size_t bytes) {
  return bytes <= 1024 ? static_cast<int>((bytes + 15) / 16) - 1 : 64 + static_cast<int>((bytes - 1025) / 256);
}
/// Returns a block when the thread's list has run empty.
void* pool_refill(Context& c, int list);
/// Makes room in a full list; the spare batch, if any, goes to the shared pool.
void pool_unload(Context& c, int list) noexcept;
void* plain_allocate(std::size_t bytes);
void plain_free(void* block) noexcept;

/// A block of at least `bytes` (at most kMaxPooled), 16-aligned; 64-aligned above 1 KiB.
inline void* pool_allocate(Context& c, std::size_t bytes) {
  if constexpr (kAddressSanitizer) return plain_allocate(bytes);  // the sanitizer has to see every block
  int list = pool_list(bytes);
  PoolList& l = c.lists[list];
  void* block = l.head;
  if (__builtin_expect(!block, 0)) return pool_refill(c, list);
  l.head = *static_cast<void**>(block);
  --l.count;
  return block;
}
/// Frees a block that was allocated with the same `bytes`, by this or another thread.
inline void pool_free(Context& c, void* block, std::size_t bytes) noexcept {
  if constexpr (kAddressSanitizer) return plain_free(block);
  int list = pool_list(bytes);
  PoolList& l = c.lists[list];
  if (__builtin_expect(l.count == kPoolBatch, 0)) pool_unload(c, list);
  *static_cast<void**>(block) = l.head;
  l.head = block;
  ++l.count;
}
/// Bytes that the pools have mapped from the system.
std::int64_t pool_reserved();

}  // namespace kassette
