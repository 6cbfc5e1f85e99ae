// devices/block_cache.h - the caching allocator of a device: blocks by size class, kept for reuse.
#pragma once
#include <mutex>
#include <vector>

#include <kassette/runtime.h>

namespace kassette {

/// Where blocks come from. `take` answers null where there is no memory; `of` is for both.
struct MemorySource {
  void* (*take)(void* of, std::int64_t bytes) noexcept;
  void (*give)(void* of, void* block, std::int64_t bytes) noexcept;
  void* of = nullptr;
};

/// What is kept of the blocks that were freed.
enum class Keeps : std::uint8_t {
  /// What is free and live together stays within an eighth above the peak of what was live; beyond that the class that has not been
  /// asked for longest gives its oldest block back.
  near_peak,
  /// Everything, until the source has no more or the limit is reached: giving memory back would wait for the device.
  everything
};

/// Eight size classes per power of two, so at most an eighth is lost. The block freed last is the first to be handed out: it
/// is the one the caches know. Blocks of a stream below 0 are never given back to the source: Note [Graphs] in devices/cuda/graph.cpp.
class BlockCache {
 public:
  BlockCache(Device device, MemorySource source,
             Keeps keeps = Keeps::near_peak);  // lives for ever: blocks may be freed after main
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  /// Throws MemoryError with what was asked, what is held and the limit. A block is handed out again in the stream that it was freed in:
  /// what uses it next is enqueued behind what used it before.
  void* allocate(std::int64_t bytes, int stream = 0);
  /// `bytes` as it was asked for.
  void release(void* block, std::int64_t bytes, int stream = 0) noexcept;
  /// The same without giving blocks back: of `stream`, else of the other one, else new; null where there is none.
  void* try_allocate(std::int64_t bytes, int stream, int other);
  /// What was freed in the order of one stream is free in that of the other.
  void hand_over(int from, int to) noexcept;
  MemoryStats stats();
  void reset_peak();
  void set_limit(std::int64_t bytes);
  void trim();
  /// Whether blocks are kept at all.
  bool keeps() const { return caching_; }

  /// The size of the block that holds `bytes`.
  static std::int64_t class_bytes(std::int64_t bytes);

 private:
  struct Free {
    void* block;
    int stream;
  };
  struct SizeClass {
    std::vector<Free> free;
    std::int64_t bytes = 0;
    std::int64_t last_asked = 0;
  };
  static constexpr int kClasses = 8 * 50;
  static int class_of(std::int64_t bytes);
  void give_back(SizeClass& c, std::size_t i) noexcept;
  void* take_free(SizeClass& c, std::size_t i) noexcept;
  /// Null where the class has none of that stream.
  void* find_free(SizeClass& c, int stream) noexcept;
  void* handed_out(void* block, std::int64_t whole) noexcept;
  /// Null where the limit or the source says no.
  void* take_new(SizeClass& c);
  bool drop_oldest(const SizeClass* but) noexcept;
  /// Gives blocks back, those of `but` last, until `more` bytes have room.
  void stay_below(std::int64_t more, const SizeClass* but) noexcept;
  void drop_down_to(std::int64_t cached) noexcept;
  static void before_fork();
  static void after_fork();
  static bool keeps_blocks(Device device);

  const Device device_;
  const MemorySource source_;
  const Keeps keeps_;
  std::mutex mutex_;
  SizeClass classes_[kClasses];
  MemoryStats stats_ = {};
  std::int64_t clock_ = 0;
  BlockCache* next_ = nullptr;
  const bool caching_ = keeps_blocks(device_);
  static BlockCache* all_;
};

}  // namespace kassette
