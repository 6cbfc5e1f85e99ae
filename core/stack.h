// core/stack.h - how much of the calling thread's stack is left.
#pragma once

namespace kassette {

// Note [Small stacks]
// A user's thread may have a stack of 256 KiB, or less. No frame of the library is above 16 KiB (cmake/kassette.cmake),
// and what is as long as the user's data is on the heap. What remains are calls inside each other: loops and branches
// in the bodies of others, functions in functions, gradients of gradients. Each of these begins with check_stack().

/// Throws RuntimeError in the name of `what` unless this thread's stack has room for another level and the deepest
/// kernel. On a stack that is not the thread's own, such as a coroutine's, it does nothing.
void check_stack(const char* what);

}  // namespace kassette
