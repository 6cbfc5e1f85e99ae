// core/half.h - float16 and bfloat16 to and from other numbers, by bits: rounds to nearest even, keeps NaN and
// infinities.
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

// Note [Rounding once]
// A float64 or an integer that is rounded to float32 and then to a half type may end a step away from the nearest one:
// float32 turns 65519.999 into 65520, which lies half way to the next float16, infinity. So the first step rounds to
// odd: of the two neighbours in float32 it takes the one whose last bit is 1, unless the number is exact. That bit says
// that something was cut off, and the second step, to at least two bits fewer, rounds as from the number itself (S.
// Boldo and G. Melquiond, Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd,
// 2008).

/// v as float32, rounded to odd. Without branches, so that loops are vectorised.
[[gnu::always_inline]] constexpr float round_to_odd(double v) {
  const float f = static_cast<float>(v);
  const double back = f;
  const bool beyond = v < 0 ? back < v : back > v;
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(f) - beyond) | static_cast<std::uint32_t>(back != v));
}
template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
[[gnu::always_inline]] constexpr float round_to_odd(T v) {
  if constexpr (sizeof(T) <= 2) {
    return static_cast<float>(v);
  } else if constexpr (sizeof(T) <= 4) {
    return round_to_odd(static_cast<double>(v));
  } else {
    // From 2^52 on, the last 16 bits become one, as in rounding to odd; the rest is exact in float64.
    const bool large = v >= T(1) << 52 || (std::is_signed_v<T> && v <= -(T(1) << 52));
    const T cut = (v & ~T(0xffff)) | static_cast<T>((v & 0xffff) != 0) << 16;
    return round_to_odd(static_cast<double>(large ? cut : v));
  }
}
inline Half to_half(double v) { return to_half(round_to_odd(v)); }
inline BFloat16 to_bfloat16(double v) { return to_bfloat16(round_to_odd(v)); }
template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
Half to_half(T v) {
  return to_half(round_to_odd(v));
}
template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
BFloat16 to_bfloat16(T v) {
  return to_bfloat16(round_to_odd(v));
}

}  // namespace kassette
