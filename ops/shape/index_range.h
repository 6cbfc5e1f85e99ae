// ops/shape/index_range.h - whether many indices are in range, before anything is read or written at them.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "devices/cpu/threads.h"

namespace kassette::ops {

/// Whether all of n integers are in [low, high). Without a branch for each, so that compilers make vectors of it.
template <class I>
bool all_in_range(const I* x, std::int64_t n, std::int64_t low, std::int64_t high) {
  using Unsigned = std::make_unsigned_t<I>;
  constexpr std::int64_t kGrain = 1 << 15;  // indices that are worth a thread: Note [Worth a thread]
  // As I: what it cannot hold is in no index.
  const I first = static_cast<I>(std::max<std::int64_t>(low, std::numeric_limits<I>::min())),
          last = static_cast<I>(std::min<std::int64_t>(high - 1, std::numeric_limits<I>::max()));
  if (high <= low) return n == 0;
  const Unsigned span = static_cast<Unsigned>(last) - static_cast<Unsigned>(first);
  std::atomic<bool> good{true};
  devices::parallel_for(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
    bool outside = false;
    for (std::int64_t i = begin; i < end; ++i)
      outside |= static_cast<Unsigned>(static_cast<Unsigned>(x[i]) - static_cast<Unsigned>(first)) > span;
    if (outside) good.store(false, std::memory_order_relaxed);
  });
  return good.load(std::memory_order_relaxed);
}

}  // namespace kassette::ops
