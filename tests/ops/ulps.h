// tests/ops/ulps.h - the error of a float in units in the last place.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

namespace kassette {
namespace test {

/// A wider type to compute references in.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;
template <class T>
double ulps(T got, Wide<T> exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : 1e9;
  if (std::isnan(got)) return 1e9;
  if (static_cast<Wide<T>>(got) == exact) return 0;
  Wide<T> largest = std::numeric_limits<T>::max();
  int e;
  std::frexp(exact, &e);
  e = std::max(e, std::numeric_limits<T>::min_exponent);
  Wide<T> unit = std::ldexp(Wide<T>(1), e - std::numeric_limits<T>::digits);
  if (std::isinf(got)) return std::abs(exact) > largest + unit / 2 - unit / 1000 && (got > 0) == (exact > 0) ? 0 : 1e9;
  if (std::isinf(exact)) return 1e9;
  return static_cast<double>(std::abs(got - exact) / unit);
}

}  // namespace test
}  // namespace kassette
