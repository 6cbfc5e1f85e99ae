// core/context.cpp - the contexts of threads, and the pool of small blocks.
#include "core/context.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>

#include <kassette/runtime.h>

namespace kassette {

__thread Context* tls_context __attribute__((tls_model("initial-exec"), visibility("hidden"))) = nullptr;

namespace {

constexpr std::size_t kHugePage = 2u << 20;
constexpr std::size_t kFirstChunk = 256 * 1024;

// A free block holds the next one; the first of a batch also holds the next batch.
struct FreeBlock {
  FreeBlock* next;
  FreeBlock* next_batch;
};

struct Shared {
  std::mutex mutex;
  FreeBlock* batches[kPoolLists] = {};
  Context* contexts = nullptr;
  Totals retired = {};
  std::size_t chunk = kFirstChunk;
  std::atomic<std::int64_t> reserved{0};
  pthread_key_t key = 0;
  bool has_key = false;
};

// Zero-initialised bytes and pthread_once instead of a global with a constructor: loading the library runs no code, and
// the pool outlives every static object that frees tensors.
alignas(Shared) unsigned char shared_bytes[sizeof(Shared)];
pthread_once_t shared_once = PTHREAD_ONCE_INIT;
Shared& shared() { return *reinterpret_cast<Shared*>(shared_bytes); }

void retire(void* p) {
  auto* c = static_cast<Context*>(p);
  if (c->backward_scratch) c->delete_backward_scratch(std::exchange(c->backward_scratch, nullptr));
  Shared& s = shared();
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    for (int i = 0; i < kPoolLists; ++i)
      for (void* list : {c->lists[i].head, c->lists[i].spare})
        if (list) {
          auto* batch = static_cast<FreeBlock*>(list);
          batch->next_batch = s.batches[i];
          __atomic_store_n(&s.batches[i], batch, __ATOMIC_RELAXED);  // pool_refill reads it without the lock
        }
    s.retired.live_nodes += c->live_nodes.get();
    s.retired.saved_bytes += c->saved_bytes.get();
    s.retired.live_tensors += c->live_tensors.get();
    s.retired.live_bytes += c->live_bytes.get();
    s.retired.recorded += c->recorded.get();
    if (c->previous) c->previous->next = c->next;
    else s.contexts = c->next;
    if (c->next) c->next->previous = c->previous;
  }
  if (tls_context == c) tls_context = nullptr;
  std::free(c);
}

// A child of fork has one thread; a lock that another thread held would never be released.
void before_fork() { shared().mutex.lock(); }
void after_fork() { shared().mutex.unlock(); }

void make_shared_state() {
  new (shared_bytes) Shared;
  shared().has_key = pthread_key_create(&shared().key, retire) == 0;
  pthread_atfork(before_fork, after_fork, after_fork);
}

std::size_t size_of_list(int list) { return list < 64 ? (list + 1) * 16u : 1024u + (list - 63) * 256u; }

void* carve(Context& c, int list) {
  std::size_t size = size_of_list(list);
  if (list >= 64) {
    auto at = reinterpret_cast<std::uintptr_t>(c.bump);
    c.bump += (64 - at % 64) % 64;
  }
  if (!c.bump || c.bump + size > c.bump_end) {
    Shared& s = shared();
    std::size_t bytes;
    {
      std::lock_guard<std::mutex> lock(s.mutex);
      bytes = s.chunk;
      s.chunk = std::min<std::size_t>(s.chunk * 2, 32u << 20);
    }
    // Huge pages are aligned to their size: the edges of an unaligned chunk would be faulted in by pages of 4 KiB.
    std::size_t align = bytes >= kHugePage ? kHugePage : 0;
    auto map = [&] {
      void* at = mmap(nullptr, bytes + align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      return at == MAP_FAILED ? nullptr : at;
    };
    void* p = map();
    if (!p) {  // memory that is short: what is cached is given back, and a small chunk is enough
      empty_cache(cpu);
      bytes = kFirstChunk;
      align = 0;
      p = map();
    }
    if (!p) throw std::bad_alloc();
    if (align) {
      auto at = reinterpret_cast<std::uintptr_t>(p);
      p = reinterpret_cast<void*>((at + align - 1) / align * align);
      madvise(p, bytes, MADV_HUGEPAGE);
    }
    s.reserved.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
    c.bump = static_cast<char*>(p);  // the rest of the old chunk, less than a block, is lost
    c.bump_end = c.bump + bytes;
  }
  void* block = c.bump;
  c.bump += size;
  return block;
}

}  // namespace

Context& make_context() {
  pthread_once(&shared_once, make_shared_state);
  void* p = std::malloc(sizeof(Context));
  if (!p) throw std::bad_alloc();
  auto* c = new (p) Context;
  Shared& s = shared();
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    c->next = s.contexts;
    if (c->next) c->next->previous = c;
    s.contexts = c;
  }
  if (s.has_key) pthread_setspecific(s.key, c);
  tls_context = c;
  return *c;
}

Totals totals() {
  context();
  Shared& s = shared();
  std::lock_guard<std::mutex> lock(s.mutex);
  Totals t = s.retired;
  for (Context* c = s.contexts; c; c = c->next) {
    t.live_nodes += c->live_nodes.get();
    t.saved_bytes += c->saved_bytes.get();
    t.live_tensors += c->live_tensors.get();
    t.live_bytes += c->live_bytes.get();
    t.recorded += c->recorded.get();
  }
  return t;
}

std::int64_t pool_reserved() {
  context();
  return shared().reserved.load(std::memory_order_relaxed);
}

void* pool_refill(Context& c, int list) {
  PoolList& l = c.lists[list];
  FreeBlock* batch = static_cast<FreeBlock*>(l.spare);
  if (batch) {
    l.spare = nullptr;
    l.count = kPoolBatch;
  } else {
    Shared& s = shared();
    std::unique_lock<std::mutex> lock(s.mutex, std::defer_lock);
    if (__atomic_load_n(&s.batches[list], __ATOMIC_RELAXED)) lock.lock();
    batch = lock.owns_lock() ? s.batches[list] : nullptr;
    if (!batch) {
      if (lock.owns_lock()) lock.unlock();
      return carve(c, list);
    }
    __atomic_store_n(&s.batches[list], batch->next_batch, __ATOMIC_RELAXED);
    l.count = 0;
    for (FreeBlock* b = batch; b; b = b->next) ++l.count;
  }
  l.head = batch->next;
  --l.count;
  return batch;
}

void pool_unload(Context& c, int list) noexcept {
  PoolList& l = c.lists[list];
  if (l.spare) {
    Shared& s = shared();
    auto* batch = static_cast<FreeBlock*>(l.spare);
    std::lock_guard<std::mutex> lock(s.mutex);
    batch->next_batch = s.batches[list];
    __atomic_store_n(&s.batches[list], batch, __ATOMIC_RELAXED);
  }
  l.spare = l.head;
  l.head = nullptr;
  l.count = 0;
}

void* plain_allocate(std::size_t bytes) {
  void* p = std::aligned_alloc(bytes > 1024 ? 64 : 16, (bytes + 63) / 64 * 64);
  if (!p) throw std::bad_alloc();
  return p;
}
void plain_free(void* block) noexcept { std::free(block); }

void DestroyedInTurn::destroy(DestroyedInTurn* p) noexcept {
  Context& c = context();
  p->next_dying_ = std::exchange(c.dying_in_turn, p);
  if (std::exchange(c.destroying_in_turn, true)) return;
  while (DestroyedInTurn* next = c.dying_in_turn) {
    c.dying_in_turn = next->next_dying_;
    delete next;
  }
  c.destroying_in_turn = false;
}

}  // namespace kassette
