// core/large_blocks.h - vectors that may have millions of elements: their memory comes from the CPU's block cache, in
// huge pages: with malloc they would be mapped and unmapped each time.
#pragma once
#include <cstddef>
#include <new>
#include <vector>

#include "core/storage.h"

namespace kassette {

inline constexpr std::size_t kLargeList = 1 << 20;  // bytes

inline void* list_memory(std::size_t bytes) {
  return bytes < kLargeList ? ::operator new(bytes) : device_api(cpu).allocate(static_cast<std::int64_t>(bytes));
}
inline void free_list_memory(void* block, std::size_t bytes) noexcept {
  if (bytes < kLargeList) ::operator delete(block);
  else device_api(cpu).release(block, static_cast<std::int64_t>(bytes));
}

/// The allocator of LargeList.
template <class T>
struct LargeBlocks {
  using value_type = T;
  LargeBlocks() = default;
  template <class U>
  LargeBlocks(const LargeBlocks<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(list_memory(n * sizeof(T))); }
  void deallocate(T* block, std::size_t n) noexcept { free_list_memory(block, n * sizeof(T)); }
  friend bool operator==(const LargeBlocks&, const LargeBlocks&) { return true; }
  friend bool operator!=(const LargeBlocks&, const LargeBlocks&) { return false; }
};

template <class T>
using LargeList = std::vector<T, LargeBlocks<T>>;

}  // namespace kassette
