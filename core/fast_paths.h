// core/fast_paths.h - the engine's fast paths as tests see them: how often each was taken, from where on it is worth its while, and
// whether it is taken at all.
#pragma once
#include <atomic>
#include <cstdint>

namespace kassette {

/// A way to do a thing faster, with the same bits.
enum class FastPath : std::uint8_t {
  chain,               // elementwise steps of a function in one pass
  chain_of_update,     // the same, among the updates at the end of its call
  chain_summed,        // a chain and the sum of what it makes
  repeated,            // a result that stays one number
  with_bias,           // a product that is made onto its bias
  onto_row_relu,       // and goes through a relu
  updated_in_place,    // a variable that a step writes into
  accumulated,         // an adjoint's op that adds to the sum of a cotangent
  added_in_place,      // a cotangent added to the sum in its memory
  loss_given_up,       // a backward pass that gives saved values back
  specialised,         // a function that runs a plan for the shapes of its call
  function_as_node,    // a call of a large function that is one node of the tape
  tape_taken,          // an adjoint in a plan that takes the tape of its run
  loop,                // a loop that runs compiled
  loop_rewound,        // the same, back
  loop_segment,        // steps played anew from a checkpoint
  loop_chain,          // elementwise steps of a loop in one pass
  loop_chain_of_rows,  // one over rows, with slices
  loop_accumulated,    // a product that adds to the sum of a capture's cotangent
  loop_program,        // the adjoint of a loop, made before for these shapes
  arrangement,         // the steps of a loop as they were arranged before
  device_graph,        // what a function enqueues on a device, as one graph
  count
};
inline constexpr int kFastPaths = static_cast<int>(FastPath::count);

/// Nothing is counted unless a test says so: threads would take turns to write these.
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
/// For messages.
inline constexpr const char* kFastPathNames[kFastPaths] = {"chain",
                                                           "chain_of_update",
                                                           "chain_summed",
                                                           "repeated",
                                                           "onto_row",
                                                           "onto_row_relu",
                                                           "updated_in_place",
                                                           "accumulated",
                                                           "added_in_place",
                                                           "loss_given_up",
                                                           "specialised",
                                                           "function_as_node",
                                                           "tape_taken",
                                                           "loop",
                                                           "loop_rewound",
                                                           "loop_segment",
                                                           "loop_chain",
                                                           "loop_chain_of_rows",
                                                           "loop_accumulated",
                                                           "loop_program",
                                                           "arrangement",
                                                           "device_graph"};

/// From where on a fast path is taken; tests set them to 0, so that small shapes take it. None of them decides bits.
struct FastPathThresholds {
  std::int64_t chain_part = 3 << 16;   // instructions on an element of a chain that are worth a thread
  std::int64_t long_chunks = 1 << 14;  // elements of a chain: chunks are of eight vectors, since few are left over
  std::int64_t fetched = 1 << 20;      // operands of a chain of so many bytes are asked for ahead
  std::int64_t loop_chain_row = 256, loop_chain = 1024;  // bytes: below, a chain of a loop costs more than it saves
  std::int64_t loop_chain_part = 1 << 16;  // instructions on an element of a loop's chain that are worth a thread
  std::int64_t function_node = 64;         // steps of a function whose calls are nodes
  std::int64_t given_up = 1 << 20;         // bytes saved by a thread: Note [Rematerialization]
  std::uint64_t off = 0;                   // a bit for each fast path that is not taken at all
};
inline constinit FastPathThresholds fast_path_thresholds;

/// False where a test has switched the fast path off: the plain way gives the same bits.
inline bool may_take(FastPath path) { return !(fast_path_thresholds.off >> static_cast<int>(path) & 1); }

}  // namespace kassette
