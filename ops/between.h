// ops/between.h - samples of [low, high) where the bounds are tensors: the arithmetic. Read by g++ and nvcc.
#pragma once
#include <kassette/dtype.h>

#include "ops/math.h"

namespace kassette {

/// Of a float dtype: from 1 to the next number above, and the smallest normal number.
template <class T>
struct Spacing;
template <>
struct Spacing<double> {
  static constexpr double of_one = 0x1p-52, least = 0x1p-1022;
};
template <>
struct Spacing<float> {
  static constexpr float of_one = 0x1p-23f, least = 0x1p-126f;
};
template <>
struct Spacing<Half> {
  static constexpr float of_one = 0x1p-10f, least = 0x1p-14f;
};
template <>
struct Spacing<BFloat16> {
  static constexpr float of_one = 0x1p-7f, least = 0x1p-126f;
};

// C computes: double for double, else float. `position` and `below` are rounded to T before `within` sees them.

/// Where u of [0, 1) lies between the bounds.
template <class C>
KASSETTE_FN C position(C u, C low, C high) {
  return low + (high - low) * u;
}
/// A number below `high`, one or two steps.
template <class T, class C>
KASSETTE_FN C below(C high) {
  const C step = (high < C(0) ? -high : high) * Spacing<T>::of_one;
  return high - (step > Spacing<T>::least ? step : C(Spacing<T>::least));
}
/// y, or the last number below `high` where rounding took y there. Bounds that meet or cross have nothing between them: y stays.
template <class C>
KASSETTE_FN C within(C y, C last, C low, C high) {
  const C inside = last >= low ? last : low;
  return (((y >= high) & (low < high)) ? inside : y) + C(0);  // no -0
}

}  // namespace kassette
