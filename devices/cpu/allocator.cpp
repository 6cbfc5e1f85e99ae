// devices/cpu/allocator.cpp - the source of large blocks of CPU memory.
#include "devices/cpu/allocator.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>

namespace kassette::devices {
namespace {

constexpr std::size_t kHuge = std::size_t(2) << 20;
// Mapped blocks start at one of 16 offsets from a huge page: if all operands of an op began at the same address modulo
// 4 KiB, they would compete for the same cache sets, and loads would wait for unrelated stores (4K aliasing).
// Two blocks that are allocated one after the other get offsets 5 * 256 bytes apart. Ops on several such blocks go
// through them in pieces of up to 512 bytes, which would overlap modulo 4 KiB if the offsets were 256 apart (an Adam
// step then takes 1.06 times as long).
constexpr std::size_t kColours = 16, kColour = 256, kApart = 5;

std::size_t mapped_bytes(std::int64_t bytes) {
  return (static_cast<std::size_t>(bytes) + kColours * kColour + 4095) / 4096 * 4096;
}

void* allocate_block(void*, std::int64_t bytes) noexcept {
  if (static_cast<std::size_t>(bytes) < kHuge)
    return std::aligned_alloc(64, static_cast<std::size_t>((bytes + 63) / 64 * 64));
  std::size_t size = mapped_bytes(bytes);
  void* p = mmap(nullptr, size + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  auto at = reinterpret_cast<std::uintptr_t>(p);
  std::uintptr_t base = (at + kHuge - 1) / kHuge * kHuge;
  if (base > at) munmap(p, base - at);
  std::size_t behind = at + kHuge - base;
  if (behind) munmap(reinterpret_cast<void*>(base + size), behind);
  madvise(reinterpret_cast<void*>(base), size, MADV_HUGEPAGE);
  static std::atomic<unsigned> taken{0};
  return reinterpret_cast<void*>(base + taken.fetch_add(kApart, std::memory_order_relaxed) % kColours * kColour);
}

void free_block(void*, void* block, std::int64_t bytes) noexcept {
  if (static_cast<std::size_t>(bytes) < kHuge) {
    std::free(block);
    return;
  }
  munmap(reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(block) / kHuge * kHuge), mapped_bytes(bytes));
}

}  // namespace

const MemorySource cpu_memory{allocate_block, free_block};

}  // namespace kassette::devices
