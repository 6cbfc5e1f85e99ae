// ops/elementwise/cast_simd.cpp - casts among floats, bool and integers; compiled once per CPU level.
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/half.h"
#include "ops/elementwise/cast.h"
#include "ops/math/math.h"

namespace kassette::ops {
namespace {

/// convert_one() of core/convert.h without branches, so that the compiler vectorizes the loop.
template <class To, class From>
KASSETTE_FN To converted(From v) {
  if constexpr (std::is_same_v<To, bool>) {
    return v != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr int kGap = std::numeric_limits<To>::digits > std::numeric_limits<From>::digits
                             ? std::numeric_limits<To>::digits - std::numeric_limits<From>::digits
                             : 0;
    constexpr To max = std::numeric_limits<To>::max(), min = std::numeric_limits<To>::min();
    // `high` is the largest To that From represents exactly. Larger values saturate; they are clamped to it before the
    // conversion.
    constexpr From high = static_cast<From>(static_cast<To>(max - ((To(1) << kGap) - 1))), low = static_cast<From>(min);
    const From kept = v == v ? v : From(0), up = kept < low ? low : kept, in = up > high ? high : up;
    const To to = static_cast<To>(in);
    return kGap > 0 && kept > high ? max : to;
  } else {
    return static_cast<To>(v);
  }
}

template <class To, class From>
void loop(const void* from, void* to, std::int64_t n) {
  auto* in = static_cast<const From*>(from);
  auto* out = static_cast<To*>(to);
  for (std::int64_t i = 0; i < n; ++i) out[i] = converted<To>(in[i]);
}

/// round_to_odd() of n numbers, in a form that the compiler vectorises: of the 53 bits of a float64 the last 29 become
/// one, which says whether any of them is set, and the rest is exact in float32. Only numbers below float32's normal
/// ones have fewer bits there: rare, and rounded one by one.
void odd_block(const double* in, float* out, std::int64_t n) {
  constexpr std::uint64_t kCut = (std::uint64_t(1) << 29) - 1, kMagnitude = ~std::uint64_t(0) >> 1,
                          kNormal = std::uint64_t(1023 - 126) << 52;
  std::uint64_t tiny = 0;  // the first bit is set if a number is not 0 and less than 2^-126
  for (std::int64_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<std::uint64_t>(in[i]), magnitude = bits & kMagnitude;
    tiny |= (magnitude - kNormal) & (magnitude + kMagnitude);
    out[i] = static_cast<float>(std::bit_cast<double>((bits & ~kCut) | (((bits & kCut) + kCut) & (kCut + 1))));
  }
  if (tiny >> 63)
    for (std::int64_t i = 0; i < n; ++i) out[i] = round_to_odd(in[i]);
}

template <class From>
void odd_loop(const void* from, void* to, std::int64_t n) {
  constexpr std::int64_t kBlock = 256;
  auto* in = static_cast<const From*>(from);
  auto* out = static_cast<float*>(to);
  if constexpr (sizeof(From) == 8 && std::is_integral_v<From>) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = round_to_odd(in[i]);
  } else {
    for (std::int64_t at = 0; at < n; at += kBlock) {
      const std::int64_t m = n - at < kBlock ? n - at : kBlock;
      if constexpr (std::is_same_v<From, double>) {
        odd_block(in + at, out + at, m);
      } else {
        double wide[kBlock];
        for (std::int64_t i = 0; i < m; ++i) wide[i] = in[at + i];
        odd_block(wide, out + at, m);
      }
    }
  }
}

template <int kBytes>
void copy(const void* from, void* to, std::int64_t n) {
  std::memcpy(to, from, static_cast<std::size_t>(n * kBytes));
}

/// The unsigned type of the same size. Truncation does not depend on the sign, and a bool is a byte that is 0 or 1.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 1, std::uint8_t,
                                std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                                   std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

/// Integers wrap, so pairs of types whose results have the same bytes share one loop.
template <class To, class From>
constexpr CastLoop integer_loop() {
  if constexpr (std::is_same_v<To, From> || (sizeof(To) == sizeof(From) && !std::is_same_v<To, bool>))
    return copy<sizeof(To)>;
  else if constexpr (std::is_same_v<To, bool>) return loop<bool, Bits<From>>;
  else if constexpr (sizeof(To) < sizeof(From) || std::is_same_v<From, bool>) return loop<Bits<To>, Bits<From>>;
  else return loop<Bits<To>, From>;
}

template <class... To>
struct Types {};
#define KASSETTE_TYPE(constant, code, type, name) , type
using Integers = Types<bool KASSETTE_INTEGER_DTYPES(KASSETTE_TYPE)>;
#undef KASSETTE_TYPE

template <class From, class... To>
constexpr FloatCasts make(Types<To...>) {
  using Other = std::conditional_t<std::is_same_v<From, float>, double, float>;
  return {{loop<To, From>...}, {loop<From, To>...}, loop<Other, From>};
}

struct Row {
  CastLoop from[kCastIntegers];
};
template <class To, class... From>
constexpr Row integer_row(Types<From...>) {
  return {{integer_loop<To, From>()...}};
}
/// The loop to float32 that rounds to odd; float32 holds integers of 8 and 16 bits.
template <class From>
constexpr CastLoop integer_to_odd() {
  if constexpr (sizeof(From) < 4) return loop<float, From>;
  else return odd_loop<From>;
}
template <class... To>
constexpr CastTable table(Types<To...> types) {
  CastTable t{make<float>(types), make<double>(types), {}, {integer_to_odd<To>()...}, odd_loop<double>};
  int k = 0;
  for (const Row& row : {integer_row<To>(types)...}) {
    for (int i = 0; i < kCastIntegers; ++i) t.integers[k][i] = row.from[i];
    ++k;
  }
  return t;
}

}  // namespace

constinit const CastTable KASSETTE_LEVEL_NAME(cast_table) = table(Integers{});

}  // namespace kassette::ops
