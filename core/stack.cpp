// core/stack.cpp - how much of the calling thread's stack is left.
#include "core/stack.h"

#include <pthread.h>

#include <algorithm>
#include <cstdint>

#include "core/text.h"

namespace kassette {
namespace {

/// Kept for one level and what it calls: three of the largest frames, or BLAS and an error on its way.
constexpr std::uintptr_t kReserve = 64 << 10;  // bytes

/// The stack of a thread: addresses [low, high). `least`: an address below which a frame is too deep.
struct Stack {
  std::uintptr_t low, high, least;
};
// `high` 0: not looked up yet; 1: unknown.
__thread Stack stack __attribute__((tls_model("initial-exec"))) = {0, 0, 0};

void look_up() {
  stack = {0, 1, 0};
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  void* low;
  std::size_t size, guard;
  if (pthread_attr_getstack(&attributes, &low, &size) == 0 && pthread_attr_getguardsize(&attributes, &guard) == 0) {
    const auto at = reinterpret_cast<std::uintptr_t>(low);
    // Of a stack that is smaller than four times the reserve, a quarter.
    stack = {at, at + size, at + guard + std::min<std::uintptr_t>(kReserve, size / 4)};
  }
  pthread_attr_destroy(&attributes);
}

[[noreturn]] void fail_deep(const char* what) {
  const std::uintptr_t size = (stack.high - stack.low) >> 10;
  fail<RuntimeError>({what}, "is nested too deeply for the stack of this thread, which has ", size, " KiB", kRemedy,
                     "call it in a thread with a larger stack");
}

}  // namespace

void check_stack(const char* what) {
  if (__builtin_expect(!stack.high, 0)) look_up();
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (__builtin_expect(here < stack.least && here >= stack.low, 0)) fail_deep(what);
}

}  // namespace kassette
