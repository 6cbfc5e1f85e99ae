// ops/shape/repeat.cpp - broadcasting as a copy.
#include "ops/shape/repeat.h"

#include <algorithm>

#include "devices/cpu/threads.h"

namespace kassette::ops {
namespace {

constexpr std::int64_t kGrain = 3 << 15;

template <class T>
void repeat(const T* from, T* to, const CoalescedAxes& runs) {
  std::int64_t inner = runs.size[runs.n - 1], rows = runs.product(0, runs.n - 1);
  bool fill = runs.marked[runs.n - 1];
  if (rows == 1 && fill) {
    devices::parallel_for(inner, kGrain,
                          [&](std::int64_t begin, std::int64_t end) { std::fill(to + begin, to + end, *from); });
    return;
  }
  std::int64_t stride[kMaxRank], step = fill ? 1 : inner;
  for (int i = runs.n - 2; i >= 0; --i) {
    stride[i] = runs.marked[i] ? 0 : step;
    if (!runs.marked[i]) step *= runs.size[i];
  }
  devices::parallel_for(rows, std::max<std::int64_t>(1, kGrain / inner), [&](std::int64_t begin, std::int64_t end) {
    std::int64_t index[kMaxRank] = {}, rest = begin, at = 0;
    for (int i = runs.n - 2; i >= 0; --i) {
      index[i] = rest % runs.size[i];
      rest /= runs.size[i];
      at += index[i] * stride[i];
    }
    for (std::int64_t row = begin; row < end; ++row) {
      if (fill) std::fill_n(to + row * inner, inner, from[at]);
      else std::copy_n(from + at, inner, to + row * inner);
      for (int i = runs.n - 2; i >= 0; --i) {
        at += stride[i];
        if (++index[i] < runs.size[i]) break;
        at -= stride[i] * runs.size[i];
        index[i] = 0;
      }
    }
  });
}

}  // namespace

void repeat_runs(const std::byte* from, std::byte* to, int element_size, const CoalescedAxes& runs) {
  auto run = [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    auto* f = reinterpret_cast<const T*>(from);
    auto* t = reinterpret_cast<T*>(to);
    if (runs.n == 0) *t = *f;
    else repeat(f, t, runs);
  };
  switch (element_size) {
    case 1: return run(static_cast<std::uint8_t*>(nullptr));
    case 2: return run(static_cast<std::uint16_t*>(nullptr));
    case 4: return run(static_cast<std::uint32_t*>(nullptr));
    default: return run(static_cast<std::uint64_t*>(nullptr));
  }
}

}  // namespace kassette::ops
