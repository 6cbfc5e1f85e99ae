// devices/cpu/level.h - the CPU level (vector instruction set) in use, and tables of kernels for each level.
#pragma once
#include <atomic>

namespace kassette::devices {

/// An instruction set that the kernels are compiled for; `generic` is what the compiler makes of them where none is
/// known.
enum class Level : int { generic, neon64, sse2, avx2, avx512 };

/// The levels of this machine, the lowest first.
#if defined(__x86_64__)
inline constexpr Level kLevels[] = {Level::sse2, Level::avx2, Level::avx512};
#elif defined(__aarch64__)
inline constexpr Level kLevels[] = {Level::neon64};
#else
inline constexpr Level kLevels[] = {Level::generic};
#endif

/// Picks the level: that of KASSETTE_SIMD, else the best that CPU and operating system support. Called at first use.
Level choose_cpu_level();
extern std::atomic<int> cpu_level_in_use;  // -1: not yet chosen
inline Level cpu_level() {
  int level = cpu_level_in_use.load(std::memory_order_relaxed);
  return __builtin_expect(level >= 0, 1) ? static_cast<Level>(level) : choose_cpu_level();
}
/// The best level that CPU and operating system support.
Level best_cpu_level();
const char* level_name(Level level);
/// For tests: switches to another level. Returns false if the CPU does not support it.
bool set_cpu_level(Level level);

/// KASSETTE_LEVEL_TABLES declares the kernel tables of a family; KASSETTE_PICK is the one for the level in use. Each
/// *_simd.cpp is compiled once per level, and defines `const Table name_<level>`.
#if defined(__x86_64__)
#define KASSETTE_LEVEL_TABLES(Table, name) extern const Table name##_sse2, name##_avx2, name##_avx512;
#define KASSETTE_PICK(name) \
  (::kassette::devices::cpu_level() == ::kassette::devices::Level::avx512 ? name##_avx512 \
   : ::kassette::devices::cpu_level() == ::kassette::devices::Level::avx2 ? name##_avx2 \
                                                                          : name##_sse2)
#elif defined(__aarch64__)
#define KASSETTE_LEVEL_TABLES(Table, name) extern const Table name##_neon64;
#define KASSETTE_PICK(name) name##_neon64
#else
#define KASSETTE_LEVEL_TABLES(Table, name) extern const Table name##_generic;
#define KASSETTE_PICK(name) name##_generic
#endif
// Inside a *_simd.cpp: KASSETTE_LEVEL_NAME(name) is name_<level of this object>.
#define KASSETTE_JOIN2(a, b) a##_##b
#define KASSETTE_JOIN(a, b) KASSETTE_JOIN2(a, b)
#define KASSETTE_LEVEL_NAME(name) KASSETTE_JOIN(name, KASSETTE_LEVEL)

}  // namespace kassette::devices
