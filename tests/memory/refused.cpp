// tests/memory/refused.cpp - makes allocations of this program fail, which wraps malloc and similar functions.
#include "tests/memory/refused.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <new>

namespace kassette::test::allocations {

std::atomic<std::int64_t> left{0};
std::atomic<bool> failed{false};
bool all_after = false;

}  // namespace kassette::test::allocations

using namespace kassette::test::allocations;

namespace {

bool refused() {
  if (left.load(std::memory_order_relaxed) <= 0) return false;
  if (left.fetch_sub(1, std::memory_order_relaxed) != 1) return false;
  failed = true;
  if (all_after) left = 1;
  return true;
}

void* plain(std::size_t bytes, std::size_t align) {
  return align > 16 ? std::aligned_alloc(align, (bytes + align - 1) / align * align) : std::malloc(bytes ? bytes : 1);
}
void* made(std::size_t bytes, std::size_t align = 16) {
  void* p = plain(bytes, align);
  if (!p) throw std::bad_alloc();
  return p;
}

}  // namespace

// The library's own calls, by the linker's --wrap; operator new goes through malloc, and so through these.
extern "C" {
void* __real_malloc(std::size_t);
void* __real_calloc(std::size_t, std::size_t);
void* __real_realloc(void*, std::size_t);
void* __real_aligned_alloc(std::size_t, std::size_t);
void* __real_mmap(void*, std::size_t, int, int, int, off_t);
void* __wrap_malloc(std::size_t n) { return refused() ? nullptr : __real_malloc(n); }
void* __wrap_calloc(std::size_t n, std::size_t m) { return refused() ? nullptr : __real_calloc(n, m); }
void* __wrap_realloc(void* p, std::size_t n) { return refused() ? nullptr : __real_realloc(p, n); }
void* __wrap_aligned_alloc(std::size_t a, std::size_t n) { return refused() ? nullptr : __real_aligned_alloc(a, n); }
void* __wrap_mmap(void* at, std::size_t n, int protection, int flags, int fd, off_t offset) {
  if (!refused()) return __real_mmap(at, n, protection, flags, fd, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}
}
void* operator new(std::size_t n) { return made(n); }
void* operator new[](std::size_t n) { return made(n); }
void* operator new(std::size_t n, std::align_val_t a) { return made(n, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t n, std::align_val_t a) { return made(n, static_cast<std::size_t>(a)); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return plain(n, 16); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return plain(n, 16); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
