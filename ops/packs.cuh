// ops/packs.cuh - elements that a thread reads at once, and how work is divided by its size alone.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/ceil_div.h"

namespace kassette::cuda {

/// How many neighbours a thread reads at once: 16 bytes, at most 8 elements, since each has its own register.
template <class T>
inline constexpr int kPack = sizeof(T) >= 16  ? 1
                             : sizeof(T) == 1 ? 8
                                              : 16 / static_cast<int>(sizeof(T));
template <class T>
struct alignas(kPack<T> == 1 ? alignof(T) : sizeof(T) * kPack<T>) Packed {
  T v[kPack<T>];
};
/// Whether a pack at a multiple of its size from here is aligned.
template <class T>
bool packs_at(const T* x) {
  return reinterpret_cast<std::uintptr_t>(x) % alignof(Packed<T>) == 0;
}

template <class T, class... More>
bool packs_at(const T* x, const More*... more) {
  return packs_at(x) && packs_at(more...);
}

/// The smallest 2^k that is at least n, up to `most`.
inline int power_of_two(std::int64_t n, int most) {
  int k = 1;
  while (k < n && k < most) k *= 2;
  return k;
}
inline unsigned grid_of(std::int64_t blocks) {
  return static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, 1 << 20));
}

}  // namespace kassette::cuda
