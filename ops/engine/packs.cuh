// ops/engine/packs.cuh - packs, the elements that a thread reads at once, and sizes of launches that depend on the
// shape alone.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/ceil_div.h"

namespace kassette::cuda {

/// The number of contiguous elements that a thread reads at once: 16 bytes, but at most 8 elements, since each takes a
/// register.
template <class T>
inline constexpr int kPack = sizeof(T) >= 16  ? 1
                             : sizeof(T) == 1 ? 8
                                              : 16 / static_cast<int>(sizeof(T));
/// A pack, aligned such that it is one load; or the results of a pack of another type.
template <class T, int n = kPack<T>>
struct alignas(n == 1 ? alignof(T) : sizeof(T) * n) Packed {
  T v[n];
};
/// True if a pack at any multiple of its size from x is aligned.
template <class T>
bool packs_at(const T* x) {
  return reinterpret_cast<std::uintptr_t>(x) % alignof(Packed<T>) == 0;
}

template <class T, class... More>
bool packs_at(const T* x, const More*... more) {
  return packs_at(x) && packs_at(more...);
}

/// The smallest 2^k that is at least n, but at most `most`, itself a power of two.
inline int power_of_two(std::int64_t n, int most) {
  int k = 1;
  while (k < n && k < most) k *= 2;
  return k;
}
/// The number of blocks to launch for the work of `blocks` blocks: at most 2^20, whose kernels loop over the rest.
inline unsigned grid_of(std::int64_t blocks) {
  return static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, 1 << 20));
}

}  // namespace kassette::cuda
