// devices/cpu/level.cpp - choosing the CPU level.
#include "devices/cpu/level.h"

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "core/log.h"

namespace kassette::devices {
namespace {

#if defined(__x86_64__)
/// Half precision conversions; clang 14 has no name for them in __builtin_cpu_supports.
bool has_f16c() {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

bool has(Level level) {
#if defined(__x86_64__)
  if (level == Level::avx512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd") && has(Level::avx2);
  if (level == Level::avx2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
#endif
  return level == kLevels[0];
}

/// "sse2, avx2 or avx512".
std::string names() {
  std::string text;
  const std::size_t count = std::size(kLevels);
  for (std::size_t i = 0; i < count; ++i)
    text += std::string(i == 0 ? "" : i + 1 == count ? " or " : ", ") + level_name(kLevels[i]);
  return text;
}

/// The level that KASSETTE_SIMD names if this CPU supports it, else the best one.
Level choose() {
  const char* name = std::getenv("KASSETTE_SIMD");
  if (!name || !*name) return best_cpu_level();
  for (Level level : kLevels) {
    if (std::strcmp(name, level_name(level)) != 0) continue;
    if (has(level)) return level;
    log_warning(std::string("KASSETTE_SIMD is ") + name + ", which this CPU does not have; using " +
                level_name(best_cpu_level()));
    return best_cpu_level();
  }
  log_warning(std::string("KASSETTE_SIMD is \"") + name + "\"; it must be " + names() + "; using " +
              level_name(best_cpu_level()));
  return best_cpu_level();
}

}  // namespace

Level best_cpu_level() {
  Level best = kLevels[0];
  for (Level level : kLevels)
    if (has(level)) best = level;
  return best;
}

std::atomic<int> cpu_level_in_use{-1};

Level choose_cpu_level() {
  Level level = choose();
  cpu_level_in_use.store(static_cast<int>(level), std::memory_order_relaxed);
  return level;
}
const char* level_name(Level level) {
  constexpr const char* kNames[] = {"generic", "neon64", "sse2", "avx2", "avx512"};
  return kNames[static_cast<int>(level)];
}
bool set_cpu_level(Level level) {
  if (!has(level)) return false;
  cpu_level_in_use.store(static_cast<int>(level), std::memory_order_relaxed);
  return true;
}

}  // namespace kassette::devices
