// include/kassette/interrupt.h - interrupting work that takes too long: Ctrl-C, a button, another thread.
#ifndef KASSETTE_INTERRUPT_H
#define KASSETTE_INTERRUPT_H
#include <exception>

#include <kassette/export.h>

namespace kassette {

/// Thrown by an op that was interrupted. Not an Error, so that code which catches Errors and continues is interrupted
/// as well.
class KASSETTE_API Interrupted : public std::exception {
 public:
  ~Interrupted() override;
  const char* what() const noexcept override;
};

/// Which thread reacts to a request: the first that checks for it, or only the thread that made it.
enum class Whose : unsigned char { any_thread, this_thread };
/// Asks the library to stop. The op that begins next, or the running one at its next part (a tile of a product, a step
/// of a loop, of a function or of a backward pass), throws Interrupted on the thread that called it, and the request is
/// cleared. As after any exception, no variable has changed. If several threads are working, the first to check throws;
/// with this_thread only the calling thread does, which suits a Ctrl-C handler that runs on the working thread. Safe on
/// any thread and in signal handlers.
KASSETTE_API void request_interrupt(Whose whose = Whose::any_thread) noexcept;
/// Withdraws a pending request; returns whether there was one.
KASSETTE_API bool cancel_interrupt() noexcept;

}  // namespace kassette

#endif  // KASSETTE_INTERRUPT_H
