// ops/random/philox.h - Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), and the
// order of its words in a draw. Compiled by g++ and nvcc.
#pragma once
#include <cstdint>

#include "ops/math/math.h"

namespace kassette::ops {

inline constexpr std::uint32_t kPhiloxM0 = 0xD2511F53u, kPhiloxM1 = 0xCD9E8D57u;  // multipliers
inline constexpr std::uint32_t kPhiloxW0 = 0x9E3779B9u, kPhiloxW1 = 0xBB67AE85u;  // added to the key in each round
inline constexpr int kPhiloxRounds = 10;

/// The counter, and the output, of Philox.
struct PhiloxWords {
  std::uint32_t w[4];
};

/// The output of Philox for the counter c and the key (k0, k1).
KASSETTE_FN PhiloxWords philox(PhiloxWords c, std::uint32_t k0, std::uint32_t k1) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    std::uint64_t a = std::uint64_t(kPhiloxM0) * c.w[0], b = std::uint64_t(kPhiloxM1) * c.w[2];
    c = {{static_cast<std::uint32_t>(b >> 32) ^ c.w[1] ^ k0, static_cast<std::uint32_t>(b),
          static_cast<std::uint32_t>(a >> 32) ^ c.w[3] ^ k1, static_cast<std::uint32_t>(a)}};
    k0 += kPhiloxW0;
    k1 += kPhiloxW1;
  }
  return c;
}

/// The key of a draw. The seed of its source is the key of Philox, and the number of the draw is the upper half of the
/// counter.
struct RandomKey {
  std::uint64_t seed, draw;
};

/// Block number `block`, of four words, of a draw. A draw has fewer than 2^62 blocks.
KASSETTE_FN PhiloxWords random_block(const RandomKey& key, std::uint64_t block) {
  return philox({{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                  static_cast<std::uint32_t>(key.draw), static_cast<std::uint32_t>(key.draw >> 32)}},
                static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32));
}

// Note [Order of random words]
// 16 blocks make a group of 64 words, which are numbered by their place in the block first: word k of block j has
// number 16 k + j. So a vector that holds word k of 4, 8 or 16 blocks is stored without shuffling, neighbouring threads
// of a GPU write neighbouring words, and the order does not depend on either. 64-bit numbers are made of words 2 k and
// 2 k + 1 of a block; a group has 32 of them.
inline constexpr int kGroupBlocks = 16;
inline constexpr int kGroupWords = 64;

}  // namespace kassette::ops
