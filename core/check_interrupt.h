// core/check_interrupt.h - where long work asks whether it is to stop.
//
// Note [Interrupts]
// A request is one flag of the process, and a check of it one load: every op makes one as it begins, and so does each part of what takes
// long. The thread that throws takes the request. A part of a parallel loop answers for the thread that called the loop, and throws
// without taking it: its exception travels to that thread, which takes the request when the others are out. What changes memory that
// somebody else sees, as an update that adds in place, is not to be stopped half-way: it holds an Uninterrupted, for itself and
// its parts.
#pragma once
#include <pthread.h>

#include <atomic>
#include <cstdint>

#include <kassette/interrupt.h>

namespace kassette {

/// What a thread does about requests.
struct OnInterrupt {
  enum Way : std::uint8_t { take, leave, ignore };
  Way way = take;
  pthread_t caller = 0;  // in a part of a parallel loop: whose it is
};

extern std::atomic<bool> interrupt_wanted __attribute__((visibility("hidden")));
extern __thread OnInterrupt on_interrupt __attribute__((tls_model("initial-exec"), visibility("hidden")));
/// Throws Interrupted, unless this thread ignores it or another is meant.
__attribute__((cold, noinline)) void answer_interrupt();

inline void check_interrupt() {
  if (__builtin_expect(interrupt_wanted.load(std::memory_order_relaxed), false)) answer_interrupt();
}

/// For parts of what this thread does now, on other threads.
inline OnInterrupt for_parts() {
  if (on_interrupt.way == OnInterrupt::take) return {OnInterrupt::leave, pthread_self()};
  return on_interrupt;
}

/// What this thread does about requests, for a scope.
class AnsweringInterrupts {
 public:
  explicit AnsweringInterrupts(const OnInterrupt& now) : before_(on_interrupt) { on_interrupt = now; }
  ~AnsweringInterrupts() { on_interrupt = before_; }
  AnsweringInterrupts(const AnsweringInterrupts&) = delete;
  AnsweringInterrupts& operator=(const AnsweringInterrupts&) = delete;

 private:
  OnInterrupt before_;
};
class Uninterrupted : public AnsweringInterrupts {
 public:
  Uninterrupted() : AnsweringInterrupts({OnInterrupt::ignore, 0}) {}
};

}  // namespace kassette
