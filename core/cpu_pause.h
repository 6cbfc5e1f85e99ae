// core/cpu_pause.h - what a loop that waits for another thread does between two looks.
#pragma once

namespace kassette {

/// Tells the CPU core that this thread is spinning.
inline void cpu_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // `yield` does nothing on most cores
#endif
}

}  // namespace kassette
