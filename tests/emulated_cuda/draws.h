// tests/emulated_cuda/draws.h - what orders are drawn from.
#pragma once
#include <cstdint>

/// EMULATED_CUDA_SEED, else 1; 0: nothing is drawn.
std::uint64_t emulated_seed();

struct EmulatedDraws {
  std::uint64_t state;
  /// Below n; 0 where nothing is drawn.
  unsigned below(unsigned n) {
    if (!emulated_seed()) return 0;
    state += 0x9e3779b97f4a7c15u;
    std::uint64_t z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9u;
    return static_cast<unsigned>((z ^ z >> 29) >> 33) % n;
  }
};
