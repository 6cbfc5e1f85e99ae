// devices/cpu/threads.h - the one thread pool.
#pragma once
#include <cstdint>
#include <type_traits>
#include <utility>

#include <kassette/runtime.h>

namespace kassette {

// Note [Worth a thread]
// A grain is what is worth another thread. To hand work over costs some 1.5 us where another CPU is idle (Zen 5, two cores: one and two
// threads break even where all of it takes 3 us with one), and more where that CPU sleeps or is shared. So grains are such that
// the least work that is shared, two of them, takes one thread some 6 us. Products are counted as the fastest CPUs do them. Who computes a part is
// all that grains decide, never what is in it. benchmarks/threads.py holds two threads to one on growing sizes.

/// A part of a range, borrowed callable.
struct RangeFn {
  void* object;
  void (*call)(void* object, std::int64_t begin, std::int64_t end);
};
/// Calls f on parts of [0, n) that cover it without overlap, on several threads when n is at least 2 * grain; part borders
/// are multiples of the grain, or of 64 where a grain is 1024 or more. Returns when all are done. An exception thrown by a part is rethrown here. Calls from inside a
/// part run on the calling thread.
/// Each thread has a range of neighbours, and takes its parts from the front or from the back of that. An op that goes over a
/// range twice goes over it from the back the first time: what a thread then meets first is what it met last, in its own caches
/// (two threads need not share any).
enum class From : std::uint8_t { front, back };
void parallel_parts(std::int64_t n, std::int64_t grain, RangeFn f, From from = From::front);

/// Whether other threads are at work for this one. Safe in signal handlers.
bool sharing_work() noexcept;

template <class F>
inline void parallel_for(std::int64_t n, std::int64_t grain, F&& f, From from = From::front) {
  if (n < 2 * grain) {
    if (n > 0) f(std::int64_t(0), n);
    return;
  }
  using G = std::remove_reference_t<F>;
  parallel_parts(n, grain,
                 RangeFn{const_cast<void*>(static_cast<const void*>(&f)),
                         [](void* o, std::int64_t b, std::int64_t e) { (*static_cast<G*>(o))(b, e); }},
                 from);
}

}  // namespace kassette
