// core/check_interrupt.h - how long-running work polls for a request to stop.
//
// Note [Interrupts]
// A request is one flag of the process, and checking it is one load: every op checks as it begins, and so does each
// part of a long operation. The thread that throws clears the request. A part of a parallel loop acts for the thread
// that called the loop, and throws without clearing it: the exception is rethrown in the calling thread, which clears
// the request once the other parts have ended. Code that changes memory others can see, such as an in-place update,
// must not be stopped half-way: it holds an IgnoreInterruptsScope, which covers its parts on other threads as well.
#pragma once
#include <pthread.h>

#include <atomic>
#include <cstdint>

#include <kassette/interrupt.h>

namespace kassette {

/// How a thread reacts to a request: it clears it and throws; throws but leaves it set (a part of a parallel loop); or
/// ignores it.
struct InterruptPolicy {
  enum Action : std::uint8_t { clear_and_throw, only_throw, ignore };
  Action action = clear_and_throw;
  pthread_t caller = 0;  // in a part of a parallel loop: the thread that called the loop
};

extern std::atomic<bool> interrupt_wanted __attribute__((visibility("hidden")));
extern __thread InterruptPolicy on_interrupt __attribute__((tls_model("initial-exec"), visibility("hidden")));
/// Throws Interrupted, unless this thread ignores requests or the request is meant for another thread.
__attribute__((cold, noinline)) void throw_if_interrupted();

inline void check_interrupt() {
  if (__builtin_expect(interrupt_wanted.load(std::memory_order_relaxed), false)) throw_if_interrupted();
}

/// The policy for threads that run parts of this thread's work.
inline InterruptPolicy policy_for_parts() {
  if (on_interrupt.action == InterruptPolicy::clear_and_throw) return {InterruptPolicy::only_throw, pthread_self()};
  return on_interrupt;
}

/// Sets how this thread responds to requests, for a scope.
class InterruptPolicyScope {
 public:
  explicit InterruptPolicyScope(const InterruptPolicy& now) : before_(on_interrupt) { on_interrupt = now; }
  ~InterruptPolicyScope() { on_interrupt = before_; }
  InterruptPolicyScope(const InterruptPolicyScope&) = delete;
  InterruptPolicyScope& operator=(const InterruptPolicyScope&) = delete;

 private:
  InterruptPolicy before_;
};
/// Makes this thread ignore requests, for a scope.
class IgnoreInterruptsScope : public InterruptPolicyScope {
 public:
  IgnoreInterruptsScope() : InterruptPolicyScope({InterruptPolicy::ignore, 0}) {}
};

}  // namespace kassette
