// ops/order/keys.h - unsigned integers in the order in which elements are sorted.
#pragma once
#include <cstring>

#include "core/convert.h"
#include "ops/math/math.h"

namespace kassette::ops {

/// Keys of the elements of a dtype, whose bits are a U: the smaller key comes first. NaN comes last in both directions,
/// and all NaNs are equal, as -0.0 and 0.0 are.
template <class U>
struct SortKeys {
  U sign = 0;      // the bit of the sign; 0 if the dtype has none
  U infinity = 0;  // its bits; 0 if the dtype has none
  U flip = 0;      // all ones for a descending order

  static constexpr U kNaN = static_cast<U>(~U(0));

  KASSETTE_FN U operator()(U bits) const {
    if (infinity == 0) return static_cast<U>(bits ^ sign ^ flip);
    const U magnitude = static_cast<U>(bits & static_cast<U>(~sign));
    const U mask = bits & sign ? kNaN : sign;
    // Adding 0 to -0.0 would do, if halves had an addition.
    const U key = magnitude == 0 ? sign : static_cast<U>(bits ^ mask);
    return magnitude > infinity ? kNaN : static_cast<U>(key ^ flip);
  }
  /// The element of a key; 0.0 for zeros.
  KASSETTE_FN U bits(U key) const {
    if (infinity == 0) return static_cast<U>(key ^ sign ^ flip);
    if (key == kNaN) return kNaN;
    key = static_cast<U>(key ^ flip);
    return static_cast<U>(key & sign ? key ^ sign : key ^ kNaN);
  }
  /// Whether bits(key) may be another element than that of which it is the key.
  KASSETTE_FN bool loses(U bits) const {
    return infinity != 0 && (bits == sign || static_cast<U>(bits & static_cast<U>(~sign)) > infinity);
  }
};

template <class U>
SortKeys<U> sort_keys(DType dtype, bool descending) {
  SortKeys<U> keys;
  if (!dtype.is_bool() && !dtype.is_unsigned()) keys.sign = static_cast<U>(U(1) << (8 * sizeof(U) - 1));
  if (descending) keys.flip = SortKeys<U>::kNaN;
  if (dtype.is_float())
    dispatch(dtype, [&](auto* p) {
      using T = std::remove_pointer_t<decltype(p)>;
      if constexpr (sizeof(T) == sizeof(U)) {
        const T infinity = convert_one<T>(static_cast<double>(INFINITY));
        std::memcpy(&keys.infinity, &infinity, sizeof(U));
      }
    });
  return keys;
}

}  // namespace kassette::ops
