// devices/cpu/simd_transpose.h - transposition of as many vectors as they have lanes. Only *_simd.cpp files include it.
#pragma once
#include <cstddef>
#include <utility>

#include "devices/cpu/xsimd.h"

namespace kassette::devices {
inline namespace KASSETTE_LEVEL {

/// Exchanges the blocks of `step` lanes that are off the diagonal, of two vectors.
template <int step, class R, std::size_t... k>
inline __attribute__((always_inline)) void exchange(R& a, R& b, std::index_sequence<k...>) {
  constexpr int n = sizeof...(k);
  const R low = __builtin_shufflevector(
      a, b, (static_cast<int>(k) & step ? n + static_cast<int>(k) - step : static_cast<int>(k))...);
  b = __builtin_shufflevector(a, b,
                              (static_cast<int>(k) & step ? n + static_cast<int>(k) : static_cast<int>(k) + step)...);
  a = low;
}
template <int step, class R, int n>
inline __attribute__((always_inline)) void exchange_all(R (&v)[n]) {
  if constexpr (step < n) {
    for (int i = 0; i < n; ++i)
      if (!(i & step)) exchange<step>(v[i], v[i + step], std::make_index_sequence<n>());
    exchange_all<2 * step>(v);
  }
}
/// Lane i of vector k becomes lane k of vector i.
template <class V, int n>
inline __attribute__((always_inline)) void transpose(V (&v)[n]) {
  using R = typename V::register_type;
  static_assert(n == static_cast<int>(V::size));
  R r[n];
  for (int i = 0; i < n; ++i) r[i] = v[i];
  exchange_all<1>(r);
  for (int i = 0; i < n; ++i) v[i] = V(r[i]);
}

}  // namespace KASSETTE_LEVEL
}  // namespace kassette::devices
