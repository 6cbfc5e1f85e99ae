// tests/emulated_cuda/draws.h - the random numbers that decide orders of execution.
#pragma once
#include <cstdint>

/// EMULATED_CUDA_SEED, by default 1; with 0 nothing is random.
std::uint64_t emulated_seed();

struct EmulatedDraws {
  std::uint64_t state;
  /// A random number below n; 0 if the seed is 0.
  unsigned below(unsigned n) {
    if (!emulated_seed()) return 0;
    state += 0x9e3779b97f4a7c15u;
    std::uint64_t z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9u;
    return static_cast<unsigned>((z ^ z >> 29) >> 33) % n;
  }
};
