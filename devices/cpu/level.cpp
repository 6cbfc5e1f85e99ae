// devices/cpu/level.cpp - choosing the CPU level.
#include "devices/cpu/level.h"

#include <atomic>

namespace kassette {
namespace {

std::atomic<int> chosen{-1};

bool has(Level level) {
#if defined(__x86_64__)
  if (level == Level::avx512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
  if (level == Level::avx2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
  return level == Level::sse2;
}

}  // namespace

Level cpu_level() {
  int l = chosen.load(std::memory_order_relaxed);
  if (l < 0) {
    l = static_cast<int>(has(Level::avx512) ? Level::avx512 : has(Level::avx2) ? Level::avx2 : Level::sse2);
    chosen.store(l, std::memory_order_relaxed);
  }
  return static_cast<Level>(l);
}
const char* level_name(Level level) {
  return level == Level::avx512 ? "avx512" : level == Level::avx2 ? "avx2" : "sse2";
}
bool set_cpu_level(Level level) {
  if (!has(level)) return false;
  chosen.store(static_cast<int>(level), std::memory_order_relaxed);
  return true;
}

}  // namespace kassette
