// tests/io/crc_test.cpp - our checksum against zlib's.
#include "core/io/crc.h"

#include <zlib.h>

#include <random>
#include <vector>

#include "tests/catch.h"

using namespace kassette;

TEST_CASE("the checksum is zlib's for every length and beginning", "[io][crc]") {
  std::mt19937 draw(1);
  std::vector<std::byte> bytes(5000);
  for (std::byte& b : bytes) b = static_cast<std::byte>(draw());
  int wrong = 0;
  for (std::size_t n = 1; n < 3000; n = n < 700 ? n + 1 : n + 97)
    for (std::size_t at : {0, 1, 7, 16, 1001}) {
      std::uint32_t before = n % 3 ? static_cast<std::uint32_t>(draw()) : 0;
      auto theirs = ::crc32(before, reinterpret_cast<const Bytef*>(bytes.data() + at), static_cast<uInt>(n));
      wrong += io::crc32(before, bytes.data() + at, static_cast<std::int64_t>(n)) != theirs;
    }
  CHECK(wrong == 0);
  CHECK(io::crc32(123, nullptr, 0) == 123);
}
