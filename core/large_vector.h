// core/large_vector.h - vectors that may have millions of elements: their memory comes from the CPU's block cache, in
// huge pages: with malloc they would be mapped and unmapped each time.
#pragma once
#include <cstddef>
#include <new>
#include <vector>

#include "core/storage.h"

namespace kassette {

inline constexpr std::size_t kLargeVectorBytes = 1 << 20;  // bytes

inline void* list_memory(std::size_t bytes) {
  return bytes < kLargeVectorBytes ? ::operator new(bytes) : device_api(cpu).allocate(static_cast<std::int64_t>(bytes));
}
inline void free_list_memory(void* block, std::size_t bytes) noexcept {
  if (bytes < kLargeVectorBytes) ::operator delete(block);
  else device_api(cpu).release(block, static_cast<std::int64_t>(bytes));
}

/// The allocator of LargeVector.
template <class T>
struct LargeVectorAllocator {
  using value_type = T;
  LargeVectorAllocator() = default;
  template <class U>
  LargeVectorAllocator(const LargeVectorAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(list_memory(n * sizeof(T))); }
  void deallocate(T* block, std::size_t n) noexcept { free_list_memory(block, n * sizeof(T)); }
  friend bool operator==(const LargeVectorAllocator&, const LargeVectorAllocator&) { return true; }
  friend bool operator!=(const LargeVectorAllocator&, const LargeVectorAllocator&) { return false; }
};

template <class T>
using LargeVector = std::vector<T, LargeVectorAllocator<T>>;

}  // namespace kassette
