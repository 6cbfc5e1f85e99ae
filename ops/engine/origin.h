// ops/engine/origin.h - where an op comes from: the K function, the line of the user's source, and the op whose adjoint
// it is a part of.
//
// Note [Origins]
// Node::function is a number that stands for the K function that the user called (Note [Error attribution]). A profile
// and detect_nan() also want the line of the call. So an op that is recorded symbolically, or while somebody looks on,
// gets a number from another range: the index of an Origin in a table, which has the function and the address from
// which the user called it. A plan's instruction has the number of its node, so that what a function runs is known by
// the line that recorded it. Equal origins share an entry: the table is as long as the program has calls.
//
// The address is the first one up the stack that is not in this library. Finding it takes 0.1 us a frame, about 0.8 us
// in all, which is most of what a symbolic op costs; it is paid once, as a function or a loop is recorded once and run
// many times. An eager op that nobody observes does not pay it, nor does an op of an adjoint: it has the line of the op
// that it differentiates. Addresses become lines (core/source_lines.h) when they are shown.
#pragma once
#include <cstdint>
#include <mutex>

#include "ops/engine/error_attribution.h"

namespace kassette {
struct Node;
}
namespace kassette::ops {

/// Where an op comes from; null: not known, or none.
struct Origin {
  const char* function = nullptr;    // the K function on whose behalf it was recorded
  const void* caller = nullptr;      // the address from which the user called
  const char* adjoint_of = nullptr;  // the op that it differentiates
};

/// The state of a thread that is observed. The prompt restores it after a longjmp.
struct Observed {
  const Node* adjoint = nullptr;  // the node whose adjoint it runs
  std::int32_t origin = 0;        // of the op or adjoint that it runs; 0: none, or nobody has asked for it yet
  std::int32_t depth = 0;         // how many recorded ops and scopes this is inside of
  std::int32_t locks = 0;         // how many locks of the tables and logs it holds: no jump out of here
};
extern __thread Observed tls_observed __attribute__((tls_model("initial-exec"), visibility("hidden")));

/// Holds a lock of what observers write to, and lets no jump of the prompt's past it.
class ObserverLock {
 public:
  explicit ObserverLock(std::mutex& mutex) : lock_(mutex) {}

 private:
  struct Counted {
    Counted() { ++tls_observed.locks; }
    ~Counted() { --tls_observed.locks; }
  };
  Counted counted_;  // before the lock is taken, and until it is given back
  std::lock_guard<std::mutex> lock_;
};

/// The origin behind a code of either kind.
Origin origin_of(std::int32_t code) noexcept;
/// The code for an op that is called now; that of its function alone if there is no memory for more.
std::int32_t origin_here(const Context& c) noexcept;
/// The code for the ops of a node's adjoint; that of the node if there is no memory for more.
std::int32_t origin_of_adjoint(const Node& node) noexcept;

}  // namespace kassette::ops
