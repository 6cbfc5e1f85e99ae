// tests/emulated_cuda/cub/device/device_radix_sort.cuh - the one sort of CUB that kernels use: stable, by some bits of
// the keys.
#pragma once
#include <numeric>
#include <vector>

#include "cuda_runtime.h"

namespace cub {

struct DeviceRadixSort {
  /// If `memory` is null, only sets `bytes` to the size of the scratch memory that a call needs.
  template <class K, class V>
  static cudaError_t SortPairs(void* memory, std::size_t& bytes, const K* keys, K* sorted_keys, const V* values,
                               V* sorted_values, std::int64_t n, int first_bit, int end_bit, cudaStream_t stream) {
    if (!memory) return bytes = static_cast<std::size_t>(n) * (sizeof(K) + sizeof(V)), cudaSuccess;
    const auto count = static_cast<std::size_t>(n);
    EmulatedBlocks blocks;
    blocks.add(memory, bytes, stream, "a sort");
    blocks.add(keys, count * sizeof(K), stream, "a sort");
    blocks.add(sorted_keys, count * sizeof(K), stream, "a sort");
    blocks.add(values, count * sizeof(V), stream, "a sort");
    blocks.add(sorted_values, count * sizeof(V), stream, "a sort");
    return emulated_enqueue(stream, std::move(blocks), [=] {
      std::memset(memory, 0x5a, bytes);  // scratch memory: undefined afterwards
      auto key = [=](std::int64_t i) {
        return (end_bit < 64 ? keys[i] & ((K(1) << end_bit) - 1) : keys[i]) >> first_bit;
      };
      std::vector<std::int64_t> order(static_cast<std::size_t>(n));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return key(a) < key(b); });
      for (std::int64_t k = 0; k < n; ++k) {
        sorted_keys[k] = keys[order[static_cast<std::size_t>(k)]];
        sorted_values[k] = values[order[static_cast<std::size_t>(k)]];
      }
    });
  }
};

}  // namespace cub
