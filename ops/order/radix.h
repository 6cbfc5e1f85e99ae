// ops/order/radix.h - a stable radix sort of the CPU, of one row at a time, which several threads may share.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "devices/cpu/threads.h"
#include "ops/math/math.h"

namespace kassette::ops {

/// A key and the position of its element.
struct PlacedKey {
  std::uint64_t key, place;
};
template <class Item>
KASSETTE_FN auto key_of(const Item& item) {
  if constexpr (std::is_same_v<Item, PlacedKey>) return item.key;
  else return item;
}

/// Sorts rows of up to n items, keys or keys with positions, by bits [low, high) of the keys. Items of one radix keep
/// their order, so the result does not depend on how a row is divided among threads.
template <class Item>
class RadixSort {
 public:
  explicit RadixSort(std::int64_t n)
      : digit_(n >= kLong ? kLongDigit : kShortDigit), chunks_(std::clamp<std::int64_t>(n / kChunk, 1, num_threads())),
        items_(static_cast<std::size_t>(2 * n)), counts_(static_cast<std::size_t>(chunks_) << digit_),
        from_(items_.data()), to_(from_ + n) {}

  /// Where the items of a row are written.
  Item* items() { return from_; }

  /// Sorts the n items, and returns where they are now.
  Item* sort(std::int64_t n, int low, int high) {
    if (n <= kFew) return insert(n);
    // Passes of about the same number of bits
    const int passes = (high - low + digit_ - 1) / digit_, each = (high - low + passes - 1) / passes;
    for (int at = low; at < high; at += each)
      if (pass(n, at, std::min(each, high - at))) std::swap(from_, to_);
    return from_;
  }

 private:
  static constexpr std::int64_t kFew = 40, kLong = 1 << 15, kChunk = 1 << 16;
  static constexpr int kShortDigit = 8, kLongDigit = 11;

  Item* insert(std::int64_t n) {
    for (std::int64_t i = 1; i < n; ++i) {
      const Item item = from_[i];
      std::int64_t at = i;
      for (; at > 0 && key_of(item) < key_of(from_[at - 1]); --at) from_[at] = from_[at - 1];
      from_[at] = item;
    }
    return from_;
  }

  /// Calls f(chunk, begin, end) for each of the chunks of a row.
  template <class F>
  void each_chunk(std::int64_t n, F f) {
    devices::parallel_for(chunks_, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t c = first; c < last; ++c) f(c, c * n / chunks_, (c + 1) * n / chunks_);
    });
  }

  /// Distributes the items by some bits. Returns false, and moves nothing, if all have the same.
  bool pass(std::int64_t n, int shift, int bits) {
    const std::int64_t buckets = std::int64_t(1) << bits;
    const auto mask = static_cast<std::uint64_t>(buckets - 1);
    const Item* from = from_;
    Item* to = to_;
    each_chunk(n, [&](std::int64_t c, std::int64_t begin, std::int64_t end) {
      std::int64_t* count = counts_.data() + c * buckets;
      std::fill_n(count, buckets, 0);
      for (std::int64_t i = begin; i < end; ++i) ++count[std::uint64_t(key_of(from[i])) >> shift & mask];
    });
    std::int64_t start = 0;
    for (std::int64_t b = 0; b < buckets; ++b) {
      const std::int64_t before = start;
      for (std::int64_t c = 0; c < chunks_; ++c) start += std::exchange(counts_[c * buckets + b], start);
      if (start - before == n) return false;
    }
    each_chunk(n, [&](std::int64_t c, std::int64_t begin, std::int64_t end) {
      std::int64_t* next = counts_.data() + c * buckets;
      for (std::int64_t i = begin; i < end; ++i) to[next[std::uint64_t(key_of(from[i])) >> shift & mask]++] = from[i];
    });
    return true;
  }

  const int digit_;
  const std::int64_t chunks_;
  std::vector<Item> items_;
  std::vector<std::int64_t> counts_;
  Item *from_, *to_;
};

}  // namespace kassette::ops
