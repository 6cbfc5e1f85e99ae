// devices/cpu/threads.h - the one thread pool.
#pragma once
#include <cstdint>
#include <type_traits>
#include <utility>

#include <kassette/runtime.h>

namespace kassette {

/// A part of a range, borrowed callable.
struct RangeFn {
  void* object;
  void (*call)(void* object, std::int64_t begin, std::int64_t end);
};
/// Calls f on parts of [0, n) that cover it without overlap, on several threads when n is at least 2 * grain; part borders
/// are multiples of grain. Returns when all are done. An exception thrown by a part is rethrown here. Calls from inside a
/// part run on the calling thread.
void parallel_parts(std::int64_t n, std::int64_t grain, RangeFn f);

template <class F>
inline void parallel_for(std::int64_t n, std::int64_t grain, F&& f) {
  if (n < 2 * grain) {
    if (n > 0) f(std::int64_t(0), n);
    return;
  }
  using G = std::remove_reference_t<F>;
  parallel_parts(n, grain, RangeFn{const_cast<void*>(static_cast<const void*>(&f)), [](void* o, std::int64_t b, std::int64_t e) {
                                     (*static_cast<G*>(o))(b, e);
                                   }});
}

}  // namespace kassette
