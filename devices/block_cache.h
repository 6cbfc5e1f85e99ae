// devices/block_cache.h - the caching allocator of a device: blocks by size class, kept for reuse.
#pragma once
#include <mutex>
#include <vector>

#include <kassette/runtime.h>

namespace kassette::devices {

/// Where a cache gets its blocks from: `allocate` returns null if there is no memory, `free` returns a block. Both are
/// passed `context`.
struct MemorySource {
  void* (*allocate)(void* context, std::int64_t bytes) noexcept;
  void (*free)(void* context, void* block, std::int64_t bytes) noexcept;
  void* context = nullptr;
};

/// How many freed blocks a cache keeps.
enum class CachePolicy : std::uint8_t {
  /// Free and live blocks together stay within 9/8 of the peak of the live ones (and at least 64 MiB); beyond that the
  /// oldest block of the least recently used size class is returned to the source.
  near_peak,
  /// All of them, until the source runs out or the limit is reached: returning memory to CUDA would wait for the
  /// device.
  keep_all
};

/// The caching allocator of a device. Size classes are 512 bytes apart up to 4 KiB; above, there are eight per power of
/// two, so that rounding up wastes at most an eighth. The block freed last is reused first: it is the one still in the
/// CPU's caches. Streams have numbers; blocks cached for a negative one, which captured work may still
/// use, are never returned to the source: Note [Graphs] in devices/cuda/graph.cpp.
class BlockCache {
 public:
  /// Must live for ever: blocks may be freed after main.
  BlockCache(Device device, MemorySource source, CachePolicy policy = CachePolicy::near_peak);
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  /// Throws MemoryError, which says how much was asked for, how much is in use, and the limit. A block is reused only
  /// in the stream in which it was freed, so that its next use is enqueued after the last one.
  void* allocate(std::int64_t bytes, int stream = 0);
  /// `bytes`: as passed to allocate().
  void release(void* block, std::int64_t bytes, int stream = 0) noexcept;
  /// Allocates without returning blocks to the source: a free block of `stream`, else of `other`, else a new one.
  /// Returns null if there is none.
  void* try_allocate(std::int64_t bytes, int stream, int other);
  /// Moves the free blocks of stream `from` to stream `to`.
  void hand_over(int from, int to) noexcept;
  MemoryStats stats();
  void reset_peak();
  void set_limit(std::int64_t bytes);
  void trim();
  /// False if blocks are not cached at all: see caching_enabled().
  bool enabled() const { return caching_; }

  /// `bytes` rounded up to the size of its class.
  static std::int64_t class_bytes(std::int64_t bytes);

 private:
  /// A free block, and the stream in which it was freed.
  struct Free {
    void* block;
    int stream;
  };
  /// The free blocks of `bytes` each. last_used: the clock at the last allocation of that size.
  struct SizeClass {
    std::vector<Free> free;
    std::int64_t bytes = 0;
    std::int64_t last_used = 0;
  };
  static constexpr int kClasses = 8 * 50;
  static int class_of(std::int64_t bytes);
  void return_to_source(SizeClass& c, std::size_t i) noexcept;
  void* pop_free(SizeClass& c, std::size_t i) noexcept;
  /// Returns null if the class has no free block of that stream.
  void* find_free(SizeClass& c, int stream) noexcept;
  void* count_allocation(void* block, std::int64_t whole) noexcept;
  /// A new block from the source; null if the limit or the source does not allow it.
  void* allocate_new(SizeClass& c);
  bool evict_lru(const SizeClass* except) noexcept;
  /// Returns blocks to the source, those of class `except` last, until there is room for `bytes` more
  /// (CachePolicy::near_peak).
  void make_room_for(std::int64_t bytes, const SizeClass* except) noexcept;
  void shrink_to(std::int64_t cached) noexcept;
  static void before_fork();
  static void after_fork();
  static bool caching_enabled(Device device);

  const Device device_;
  const MemorySource source_;
  const CachePolicy policy_;
  std::mutex mutex_;
  SizeClass classes_[kClasses];
  MemoryStats stats_ = {};
  std::int64_t clock_ = 0;
  BlockCache* next_ = nullptr;
  const bool caching_ = caching_enabled(device_);
  static BlockCache* all_;
};

}  // namespace kassette::devices
