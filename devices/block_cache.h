// devices/block_cache.h - the caching allocator of a device: blocks by size class, kept for reuse.
#pragma once
#include <mutex>
#include <vector>

#include <kassette/runtime.h>

namespace kassette {

/// Where blocks come from. `take` answers null where there is no memory.
struct MemorySource {
  void* (*take)(std::int64_t bytes) noexcept;
  void (*give)(void* block, std::int64_t bytes) noexcept;
};

/// Eight size classes per power of two, so at most an eighth is lost. The block freed last is the first to be handed out: it
/// is the one the caches know. What is free and live together stays within an eighth above the peak of what was live;
/// beyond that the class that has not been asked for longest gives its oldest block back.
class BlockCache {
 public:
  BlockCache(Device device, MemorySource source);   // lives for ever: blocks may be freed after main
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  /// Throws MemoryError with what was asked, what is held and the limit.
  void* allocate(std::int64_t bytes);
  /// `bytes` as it was asked for.
  void release(void* block, std::int64_t bytes) noexcept;
  MemoryStats stats();
  void reset_peak();
  void set_limit(std::int64_t bytes);
  void trim();

  /// The size of the block that holds `bytes`.
  static std::int64_t class_bytes(std::int64_t bytes);

 private:
  struct SizeClass {
    std::vector<void*> free;
    std::int64_t bytes = 0;
    std::int64_t last_asked = 0;
  };
  static constexpr int kClasses = 8 * 50;
  static int class_of(std::int64_t bytes);
  void give_back(SizeClass& c, std::size_t i) noexcept;
  bool drop_oldest(const SizeClass* but) noexcept;
  /// Gives blocks back, those of `but` last, until `more` bytes have room.
  void stay_below(std::int64_t more, const SizeClass* but) noexcept;
  void drop_down_to(std::int64_t cached) noexcept;
  static void before_fork();
  static void after_fork();

  const Device device_;
  const MemorySource source_;
  std::mutex mutex_;
  SizeClass classes_[kClasses];
  MemoryStats stats_ = {};
  std::int64_t clock_ = 0;
  BlockCache* next_ = nullptr;
  static BlockCache* all_;
};

}  // namespace kassette
