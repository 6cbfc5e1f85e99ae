// devices/cpu/numbered_threads.h - parallel_for for work that needs memory for each thread: its parts learn which of
// the threads runs them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

#include "devices/cpu/threads.h"

namespace kassette::devices {

/// As RangeFn. `thread` numbers the threads that share the range, from 0.
struct NumberedRangeFn {
  void* object;
  void (*call)(void* object, std::int64_t begin, std::int64_t end, int thread);
};
/// As parallel_parts(), on at most `most` threads.
void numbered_parts(std::int64_t n, std::int64_t grain, NumberedRangeFn f, From from, int most);

/// The most threads that share a range.
inline int threads_for(std::int64_t n, std::int64_t grain) {
  if (!worth_sharing(n, grain)) return 1;
  return static_cast<int>(
      std::clamp<std::int64_t>(n / std::max<std::int64_t>(1, grain / grain_divisor), 1, num_threads()));
}

/// parallel_for() with f(begin, end, thread), on at most `most` threads.
template <class F>
inline void numbered_for(std::int64_t n, std::int64_t grain, int most, F&& f) {
  if (!worth_sharing(n, grain)) {
    if (n > 0) f(std::int64_t(0), n, 0);
    return;
  }
  using G = std::remove_reference_t<F>;
  auto call = [](void* o, std::int64_t begin, std::int64_t end, int thread) {
    (*static_cast<G*>(o))(begin, end, thread);
  };
  numbered_parts(n, grain, {const_cast<void*>(static_cast<const void*>(&f)), call}, From::front, most);
}

/// Memory for each of the threads that share a range, aligned to cache lines. It grows and is reused.
class ThreadScratch {
 public:
  /// Makes room for `threads` times `each` bytes.
  void reserve(std::int64_t each, std::int64_t threads) {
    if (bytes_ >= each * threads) return;
    memory_.reset();
    bytes_ = 0;
    memory_.reset(static_cast<std::byte*>(::operator new(each* threads, std::align_val_t(64))));
    bytes_ = each * threads;
  }
  /// The number of threads that there is room for.
  int threads(std::int64_t each) const { return static_cast<int>(bytes_ / each); }
  std::byte* of(int thread, std::int64_t each) const { return memory_.get() + thread * each; }

 private:
  struct Release {
    void operator()(std::byte* p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  std::unique_ptr<std::byte, Release> memory_;
  std::int64_t bytes_ = 0;
};

}  // namespace kassette::devices
