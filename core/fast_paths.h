// core/fast_paths.h - the engine's fast paths as tests see them: how often each was taken, the sizes from which it
// pays, and switches to turn each off.
#pragma once
#include <atomic>
#include <cstdint>

namespace kassette {

/// The optimizations that give the same bits as the general path, but for with_bias on a GPU: cuBLASLt may pick another
/// kernel than cuBLAS.
#define KASSETTE_FAST_PATHS(X) \
  X(chain)              /* consecutive elementwise instructions of a function run as one pass over memory */ \
  X(chain_of_update)    /* a chain among the instructions that compute updates */ \
  X(chain_summed)       /* a chain fused with the sum or mean of its result */ \
  X(streamed)           /* a chain's result stored past the caches */ \
  X(repeated)           /* a result kept as a splat */ \
  X(with_bias)          /* a convolution or a matrix product with its bias */ \
  X(with_bias_relu)     /* with_bias, followed by a fused relu */ \
  X(updated_in_place)   /* an instruction writes into the memory of the variable that it updates */ \
  X(accumulated)        /* an op of an adjoint that adds to a cotangent directly */ \
  X(added_in_place)     /* a cotangent added into the memory of the sum */ \
  X(rematerialized)     /* a backward pass that releases saved values and rematerializes them if needed */ \
  X(specialised)        /* a call of a function runs a program made for its shapes */ \
  X(function_as_node)   /* a call of a large function recorded as one node of the tape */ \
  X(residuals_reused)   /* an adjoint in a plan that reuses the residuals of the forward run */ \
  X(loop)               /* a loop that runs compiled */ \
  X(loop_backward)      /* the backward pass of a loop, compiled */ \
  X(recomputed_steps)   /* steps recomputed from a checkpoint */ \
  X(loop_chain)         /* elementwise instructions of a loop body run as one pass */ \
  X(loop_chain_of_rows) /* a loop_chain over rows, with slices among its operands */ \
  X(loop_accumulated)   /* a product that adds to the cotangent of a captured tensor */ \
  X(loop_program)       /* the adjoint of a loop found in the cache for these shapes */ \
  X(schedule_reused)    /* the schedule of a loop found in the cache */ \
  X(device_graph)       /* the work that a function enqueues on a device launched as one graph */

#define KASSETTE_FAST_PATH(name) name,
enum class FastPath : std::uint8_t { KASSETTE_FAST_PATHS(KASSETTE_FAST_PATH) count };
#undef KASSETTE_FAST_PATH
inline constexpr int kFastPaths = static_cast<int>(FastPath::count);

/// How often each path was taken. Off unless a test turns it on: threads would contend for these cache lines.
struct FastPathCounts {
  bool on = false;
  std::atomic<std::int64_t> of[kFastPaths] = {};
};
inline constinit FastPathCounts fast_path_counts;

inline void count_taken(FastPath path) {
  if (__builtin_expect(fast_path_counts.on, 0))
    fast_path_counts.of[static_cast<int>(path)].fetch_add(1, std::memory_order_relaxed);
}
inline std::int64_t times_taken(FastPath path) {
  return fast_path_counts.of[static_cast<int>(path)].load(std::memory_order_relaxed);
}
/// The names that messages use.
#define KASSETTE_FAST_PATH(name) #name,
inline constexpr const char* kFastPathNames[kFastPaths] = {KASSETTE_FAST_PATHS(KASSETTE_FAST_PATH)};
#undef KASSETTE_FAST_PATH

/// A bit for each fast path. They may change while other threads look.
class FastPathSet {
 public:
  constexpr FastPathSet(std::uint64_t bits = 0) : bits_(bits) {}
  FastPathSet(const FastPathSet& o) : bits_(o.get()) {}
  FastPathSet& operator=(const FastPathSet& o) {
    bits_.store(o.get(), std::memory_order_relaxed);
    return *this;
  }
  operator std::uint64_t() const { return get(); }
  FastPathSet& operator|=(std::uint64_t bits) {
    bits_.fetch_or(bits, std::memory_order_relaxed);
    return *this;
  }
  FastPathSet& operator&=(std::uint64_t bits) {
    bits_.fetch_and(bits, std::memory_order_relaxed);
    return *this;
  }

 private:
  std::uint64_t get() const { return bits_.load(std::memory_order_relaxed); }
  std::atomic<std::uint64_t> bits_;
};

/// Fast paths are taken from these sizes on, except for those that are switched off. Tests set the sizes to 0, so that
/// small shapes take the fast paths too.
struct FastPathThresholds {
  std::int64_t chain_part = 3 << 16;  // elements times instructions of a chain: the work that is worth a thread
  // elements of a chain from which it runs in chunks of eight vectors: little is left over
  std::int64_t long_chunks = 1 << 14;
  std::int64_t streamed = 16 << 20;   // bytes of a chain's result from which it is stored past the caches
  std::int64_t prefetched = 1 << 20;  // bytes of an operand of a chain from which it is prefetched
  std::int64_t loop_chain_row = 256, loop_chain = 1024;  // bytes below which a chain in a loop costs more than it saves
  std::int64_t loop_chain_part = 1 << 16;                // as chain_part, for a chain in a loop
  std::int64_t function_node = 64;  // instructions of a function beyond which a call of it is recorded as one node
  std::int64_t released = 1 << 20;  // saved bytes of a thread from which they are released: Note [Rematerialization]
  FastPathSet off;                  // those that are switched off
};
inline constinit FastPathThresholds fast_path_thresholds;

constexpr std::uint64_t fast_path_bit(FastPath path) { return std::uint64_t(1) << static_cast<int>(path); }
/// False if a test has switched the fast path off, or if it would hide the ops that somebody observes
/// (ops/engine/observe.h).
inline bool may_take(FastPath path) { return !(fast_path_thresholds.off & fast_path_bit(path)); }

}  // namespace kassette
