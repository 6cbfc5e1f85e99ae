// tests/seed.h - the seed of a test case, from its name and KASSETTE_TEST_SEED: what a test draws depends neither on
// the filter nor on the tests before it.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <string>

namespace kassette::test {

/// The number in KASSETTE_TEST_SEED, or 0.
inline std::uint64_t seed_of_environment() {
  const char* given = std::getenv("KASSETTE_TEST_SEED");
  return given ? std::strtoull(given, nullptr, 10) : 0;
}
/// The seed for a test case.
inline std::uint64_t seed_of(const std::string& test_name) {
  std::uint64_t seed = 0xcbf29ce484222325u ^ seed_of_environment();  // FNV-1a
  for (unsigned char c : test_name) seed = (seed ^ c) * 0x100000001b3u;
  return seed;
}
/// What repeats a test: "KASSETTE_TEST_SEED=0".
inline std::string seed_in_use() { return "KASSETTE_TEST_SEED=" + std::to_string(seed_of_environment()); }

}  // namespace kassette::test
