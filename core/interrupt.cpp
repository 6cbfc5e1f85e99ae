// core/interrupt.cpp - requests to stop. See Note [Interrupts].
#include "core/check_interrupt.h"

namespace kassette {

constinit std::atomic<bool> interrupt_wanted{false};
constinit __thread InterruptPolicy on_interrupt;
namespace {
constinit std::atomic<pthread_t> meant{0};  // the thread that is to stop; 0: the first that checks
}

Interrupted::~Interrupted() = default;
const char* Interrupted::what() const noexcept { return "interrupted"; }

void request_interrupt(Whose whose) noexcept {
  meant.store(whose == Whose::this_thread ? pthread_self() : 0, std::memory_order_relaxed);
  interrupt_wanted.store(true, std::memory_order_release);
}
bool cancel_interrupt() noexcept { return interrupt_wanted.exchange(false, std::memory_order_relaxed); }

void throw_if_interrupted() {
  const InterruptPolicy& now = on_interrupt;
  if (now.action == InterruptPolicy::ignore) return;
  if (!interrupt_wanted.load(std::memory_order_acquire)) return;  // another thread was first
  const pthread_t only = meant.load(std::memory_order_relaxed);
  if (only && only != (now.caller ? now.caller : pthread_self())) return;
  if (now.action == InterruptPolicy::clear_and_throw && !cancel_interrupt()) return;
  throw Interrupted();
}

}  // namespace kassette
