// devices/block_cache.cpp - the caching allocator of a device.
#include "devices/block_cache.h"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/sanitizers.h"
#include "devices/bytes_text.h"

namespace kassette::devices {
namespace {

constexpr int kLogSmallest = 12;  // up to 4 KiB in steps of 512 bytes
constexpr std::int64_t kAlwaysKept = std::int64_t(64) << 20;
constexpr bool kCaching = !kAddressSanitizer;  // the sanitizer sees every block

std::mutex all_mutex;

/// Without caching, blocks of a CUDA device are exactly as long as requested, so that compute-sanitizer finds accesses
/// beyond their ends.
bool is_exact(Device device, bool caching) { return !caching && device.type() == Device::kCuda; }

/// The k for which 2^(k-1) < bytes <= 2^k, but at least 12. Size classes in that range are 2^(k-4) bytes apart; those
/// up to 4 KiB are 512 bytes apart.
int log_of(std::int64_t bytes) {
  return std::max(kLogSmallest, 64 - __builtin_clzll(static_cast<unsigned long long>(bytes - 1) | 1));
}

}  // namespace

BlockCache* BlockCache::all_ = nullptr;

/// Not under the address sanitizer; nor on a CUDA device with KASSETTE_CUDA_CACHE=0, for CUDA's compute-sanitizer.
bool BlockCache::caching_enabled(Device device) {
  const char* wanted = device.type() == Device::kCuda ? std::getenv("KASSETTE_CUDA_CACHE") : nullptr;
  return kCaching && !(wanted && std::strcmp(wanted, "0") == 0);
}

void BlockCache::before_fork() {
  all_mutex.lock();
  for (BlockCache* c = all_; c; c = c->next_) c->mutex_.lock();
}
void BlockCache::after_fork() {
  for (BlockCache* c = all_; c; c = c->next_) c->mutex_.unlock();
  all_mutex.unlock();
}

BlockCache::BlockCache(Device device, MemorySource source, CachePolicy policy)
    : device_(device), source_(source), policy_(policy) {
  std::lock_guard<std::mutex> lock(all_mutex);
  // The child of a fork has one thread; a lock that another thread held would never be released.
  if (!all_) pthread_atfork(before_fork, after_fork, after_fork);
  next_ = all_;
  all_ = this;
}

std::int64_t BlockCache::class_bytes(std::int64_t bytes) {
  int k = log_of(bytes);
  std::int64_t step = std::int64_t(1) << (k == kLogSmallest ? k - 3 : k - 4);
  return (bytes + step - 1) / step * step;
}
int BlockCache::class_of(std::int64_t bytes) {
  int k = log_of(bytes);
  if (k == kLogSmallest) return static_cast<int>((bytes - 1) >> (k - 3));
  return 8 * (k - kLogSmallest) + static_cast<int>(((bytes - 1) >> (k - 4)) - 8);
}

void BlockCache::return_to_source(SizeClass& c, std::size_t i) noexcept {
  source_.free(source_.context, c.free[i].block, c.bytes);
  c.free.erase(c.free.begin() + static_cast<std::ptrdiff_t>(i));
  stats_.cached -= c.bytes;
}

bool BlockCache::evict_lru(const SizeClass* except) noexcept {
  SizeClass* oldest = nullptr;
  std::size_t place = 0;
  for (SizeClass& c : classes_) {
    if (c.free.empty() || &c == except || (oldest && c.last_used >= oldest->last_used)) continue;
    const auto may_go = std::find_if(c.free.begin(), c.free.end(), [](const Free& f) { return f.stream >= 0; });
    if (may_go == c.free.end()) continue;
    oldest = &c;
    place = may_go - c.free.begin();
  }
  if (oldest) return_to_source(*oldest, place);
  return oldest;
}

void BlockCache::shrink_to(std::int64_t cached) noexcept {
  while (stats_.cached > cached && evict_lru(nullptr)) {
  }
}

void BlockCache::make_room_for(std::int64_t bytes, const SizeClass* except) noexcept {
  if (policy_ == CachePolicy::keep_all) return;
  std::int64_t peak = std::max(stats_.peak, stats_.live + bytes), most = std::max(kAlwaysKept, peak + peak / 8);
  while (stats_.live + stats_.cached + bytes > most && (evict_lru(except) || evict_lru(nullptr))) {
  }
}

void* BlockCache::pop_free(SizeClass& c, std::size_t i) noexcept {
  void* block = c.free[i].block;
  c.free.erase(c.free.begin() + static_cast<std::ptrdiff_t>(i));
  stats_.cached -= c.bytes;
  return block;
}
void* BlockCache::find_free(SizeClass& c, int stream) noexcept {
  for (std::size_t i = c.free.size(); i-- > 0;)
    if (c.free[i].stream == stream) return pop_free(c, i);
  return nullptr;
}
void* BlockCache::allocate_new(SizeClass& c) {
  make_room_for(c.bytes, &c);
  if (stats_.limit && stats_.live + stats_.cached + c.bytes > stats_.limit)
    shrink_to(std::max<std::int64_t>(0, stats_.limit - stats_.live - c.bytes));
  if (stats_.limit && stats_.live + stats_.cached + c.bytes > stats_.limit) return nullptr;
  void* block = source_.allocate(source_.context, c.bytes);
  if (!block && stats_.cached) {
    shrink_to(0);
    block = source_.allocate(source_.context, c.bytes);
  }
  if (block) ++stats_.allocations;
  return block;
}

void* BlockCache::count_allocation(void* block, std::int64_t whole) noexcept {
  stats_.live += whole;
  stats_.peak = std::max(stats_.peak, stats_.live);
  return block;
}
void* BlockCache::try_allocate(std::int64_t bytes, int stream, int other) {
  std::lock_guard<std::mutex> lock(mutex_);
  SizeClass& c = classes_[class_of(bytes)];
  c.bytes = class_bytes(bytes);
  c.last_used = ++clock_;
  void* block = find_free(c, stream);
  if (!block) block = find_free(c, other);
  if (!block && (stats_.limit == 0 || stats_.live + stats_.cached + c.bytes <= stats_.limit)) {
    block = source_.allocate(source_.context, c.bytes);
    if (block) ++stats_.allocations;
  }
  return block ? count_allocation(block, c.bytes) : nullptr;
}
void* BlockCache::allocate(std::int64_t bytes, int stream) {
  MemoryStats held;
  const std::int64_t whole = is_exact(device_, caching_) ? bytes : class_bytes(bytes);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    SizeClass& c = classes_[class_of(bytes)];
    c.bytes = whole;
    c.last_used = ++clock_;
    void* block = find_free(c, stream);
    if (!block) block = allocate_new(c);
    if (block) return count_allocation(block, whole);
    held = stats_;
  }
  fail_memory(device_, bytes, held);
}

void BlockCache::release(void* block, std::int64_t bytes, int stream) noexcept {
  std::lock_guard<std::mutex> lock(mutex_);
  SizeClass& c = classes_[class_of(bytes)];
  const std::int64_t whole = is_exact(device_, caching_) ? bytes : c.bytes;
  stats_.live -= whole;
  bool kept = caching_;
  try {
    if (kept) c.free.push_back({block, stream});
  } catch (...) {
    kept = false;
  }
  if (!kept) {
    source_.free(source_.context, block, whole);
    return;
  }
  stats_.cached += whole;
  make_room_for(0, &c);
}

void BlockCache::hand_over(int from, int to) noexcept {
  std::lock_guard<std::mutex> lock(mutex_);
  for (SizeClass& c : classes_)
    for (Free& f : c.free)
      if (f.stream == from) f.stream = to;
}

MemoryStats BlockCache::stats() {
  std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}
void BlockCache::reset_peak() {
  std::lock_guard<std::mutex> lock(mutex_);
  stats_.peak = stats_.live;
}
void BlockCache::set_limit(std::int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  stats_.limit = bytes;
  if (bytes) shrink_to(std::max<std::int64_t>(0, bytes - stats_.live));
}
void BlockCache::trim() {
  std::lock_guard<std::mutex> lock(mutex_);
  shrink_to(0);
}

}  // namespace kassette::devices
