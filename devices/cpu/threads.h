// devices/cpu/threads.h - the one thread pool.
#pragma once
#include <cstdint>
#include <type_traits>
#include <utility>

#include <kassette/runtime.h>

namespace kassette::devices {

// Note [Worth a thread]
// A grain is the amount of work that is worth another thread. Handing work over costs about 1.5 us if another CPU is
// idle (Zen 5, two cores: two threads break even with one at 3 us of work), and more if that CPU sleeps or is shared.
// So grains are chosen such that the least work that is divided, two grains, takes one thread about 6 us. For matrix
// products the time is that of the fastest CPUs. Grains only decide which thread computes a part, never the bits of the
// result. benchmarks/threads.py compares two threads with one on growing sizes.

/// Divides every grain; 1 unless a test wants small ranges to be shared out like large ones.
inline constinit std::int64_t grain_divisor = 1;
/// Whether a range of n holds two grains, the least work that is divided.
inline bool worth_sharing(std::int64_t n, std::int64_t grain) { return n >= 2 * grain / grain_divisor; }

/// A borrowed callable that is called on parts of a range.
struct RangeFn {
  void* object;
  void (*call)(void* object, std::int64_t begin, std::int64_t end);
};
/// The end of its range from which a thread takes parts. An op that goes over its data twice takes the first pass from
/// the back: the second then begins with what the thread has touched last and still has in its own caches.
enum class From : std::uint8_t { front, back };
/// Calls f on disjoint parts that cover [0, n), on several threads if that is worth it. Part borders are multiples of
/// the grain, or of 64 if the grain is 1024 or more. Each thread has a contiguous range. Returns when all parts are
/// done, and rethrows an exception of a part. Nested calls run on the calling thread.
void parallel_parts(std::int64_t n, std::int64_t grain, RangeFn f, From from = From::front);

/// Whether other threads are working for this one. Safe in signal handlers.
bool sharing_work() noexcept;

template <class F>
inline void parallel_for(std::int64_t n, std::int64_t grain, F&& f, From from = From::front) {
  if (!worth_sharing(n, grain)) {
    if (n > 0) f(std::int64_t(0), n);
    return;
  }
  using G = std::remove_reference_t<F>;
  parallel_parts(n, grain,
                 RangeFn{const_cast<void*>(static_cast<const void*>(&f)),
                         [](void* o, std::int64_t b, std::int64_t e) { (*static_cast<G*>(o))(b, e); }},
                 from);
}

}  // namespace kassette::devices
