// ops/random/between.h - the arithmetic of uniform samples in [low, high) with tensors as bounds. Compiled by g++ and
// nvcc.
#pragma once
#include <kassette/dtype.h>

#include "ops/math/math.h"

namespace kassette::ops {

/// Constants of a float dtype: machine epsilon (of_one) and the smallest positive normal number (least).
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

// C is the type of the computation: double for double, else float. Callers round the results of position() and below()
// to T before they pass them to within().

/// Maps u in [0, 1) to [low, high]: rounding may give `high` itself.
template <class C>
KASSETTE_FN C position(C u, C low, C high) {
  return low + (high - low) * u;
}
/// A number one or two steps of T below `high`.
template <class T, class C>
KASSETTE_FN C below(C high) {
  const C step = (high < C(0) ? -high : high) * Spacing<T>::of_one;
  return high - (step > Spacing<T>::least ? step : C(Spacing<T>::least));
}
/// Returns y, or if rounding took y up to `high`, the number `last` below it (but not less than `low`). If low >= high
/// the interval is empty and y is returned unchanged.
template <class C>
KASSETTE_FN C within(C y, C last, C low, C high) {
  const C inside = last >= low ? last : low;
  return (((y >= high) & (low < high)) ? inside : y) + C(0);  // no -0
}

}  // namespace kassette::ops
