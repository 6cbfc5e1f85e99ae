// core/half.h - float16 and bfloat16 to and from float32, by bits: rounds to nearest even, keeps NaN and infinities.
#pragma once
#include <bit>
#include <cstdint>
#include <type_traits>

#include <kassette/dtype.h>

namespace kassette {

/// True for float16 and bfloat16, which are stored in 16 bits and computed in float32.
constexpr bool is_half(DType dtype) { return dtype == float16 || dtype == bfloat16; }
template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

inline float to_float(Half h) {
  std::uint32_t bits = h.bits;
  // Shift exponent and mantissa into place and rebase by a multiplication: exact, and subnormals come out normal.
  std::uint32_t magnitude = (bits & 0x7fffu) << 13;
  float scaled = std::bit_cast<float>(magnitude) * std::bit_cast<float>(0x77800000u);  // 2^112
  std::uint32_t out = (bits & 0x7c00u) == 0x7c00u ? (magnitude | 0x7f800000u) : std::bit_cast<std::uint32_t>(scaled);
  return std::bit_cast<float>(out | (bits & 0x8000u) << 16);
}
inline Half to_half(float f) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  std::uint32_t sign = bits >> 16 & 0x8000u, a = bits & 0x7fffffffu, out;
  if (a > 0x7f800000u) out = 0x7e00u;        // NaN
  else if (a >= 0x477ff000u) out = 0x7c00u;  // rounds to infinity
  else if (a >= 0x38800000u) out = (a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13;
  else out = std::bit_cast<std::uint32_t>(std::bit_cast<float>(a) + 0.5f) - 0x3f000000u;  // subnormal: the adder rounds
  return Half{static_cast<std::uint16_t>(sign | out)};
}
inline float to_float(BFloat16 b) { return std::bit_cast<float>(static_cast<std::uint32_t>(b.bits) << 16); }
inline BFloat16 to_bfloat16(float f) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return BFloat16{static_cast<std::uint16_t>(bits >> 16 | 0x40u)};
  return BFloat16{static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

}  // namespace kassette
