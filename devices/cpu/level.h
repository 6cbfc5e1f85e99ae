// devices/cpu/level.h - which of the compiled CPU levels this machine runs.
#pragma once
#include <atomic>

namespace kassette {

enum class Level : int { sse2, avx2, avx512 };  // on other machines `sse2` stands for the one generic level

/// The level in use: the best that CPU and system support, or what KASSETTE_SIMD says. Asked once.
Level choose_cpu_level();
extern std::atomic<int> cpu_level_in_use;  // -1: not yet chosen
inline Level cpu_level() {
  int level = cpu_level_in_use.load(std::memory_order_relaxed);
  return __builtin_expect(level >= 0, 1) ? static_cast<Level>(level) : choose_cpu_level();
}
const char* level_name(Level level);
/// For tests: uses another level from now on; returns false where the CPU does not have it.
bool set_cpu_level(Level level);

/// The table of one family for the level in use. Each *_simd.cpp defines `const Table table_<level>`.
#if defined(__x86_64__)
#define KASSETTE_LEVEL_TABLES(Table, name) extern const Table name##_sse2, name##_avx2, name##_avx512;
#define KASSETTE_PICK(name) \
  (::kassette::cpu_level() == ::kassette::Level::avx512 ? name##_avx512 \
   : ::kassette::cpu_level() == ::kassette::Level::avx2 ? name##_avx2 \
                                                        : name##_sse2)
#else
#define KASSETTE_LEVEL_TABLES(Table, name) extern const Table name##_generic;
#define KASSETTE_PICK(name) name##_generic
#endif
// Inside a *_simd.cpp: KASSETTE_LEVEL_NAME(name) is name_<level of this object>.
#define KASSETTE_JOIN2(a, b) a##_##b
#define KASSETTE_JOIN(a, b) KASSETTE_JOIN2(a, b)
#define KASSETTE_LEVEL_NAME(name) KASSETTE_JOIN(name, KASSETTE_LEVEL)

}  // namespace kassette
