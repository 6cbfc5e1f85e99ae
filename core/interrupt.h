// core/interrupt.h - ending what takes too long: Ctrl-C, a button, another thread.
#ifndef KASSETTE_INTERRUPT_H
#define KASSETTE_INTERRUPT_H
#include <exception>

#include <kassette/export.h>

namespace kassette {

/// What an op ends with when it was asked to. No Error: code that catches Errors and goes on is to end as well.
class KASSETTE_API Interrupted : public std::exception {
 public:
  ~Interrupted() override;
  const char* what() const noexcept override;
};

enum class Whose : unsigned char { any_thread, this_thread };
/// Asks the library to stop. The op that begins next, or the one that is under way at its next part (a tile of a product, a step of a
/// loop, of a function, of the way back), throws Interrupted on the thread that called it, and the request is over with that. As
/// after any throw no variable has changed. With several threads at work it is the first that comes; or this thread alone, as a
/// handler of Ctrl-C wants it that runs where the work is. Safe on any thread and in signal handlers.
KASSETTE_API void request_interrupt(Whose whose = Whose::any_thread) noexcept;
/// Takes a request back that nobody has met; whether there was one.
KASSETTE_API bool cancel_interrupt() noexcept;

}  // namespace kassette

#endif  // KASSETTE_INTERRUPT_H
