// devices/cpu/simd_fma.h - a * b + c, rounded once where the level has FMA. Only *_simd.cpp files include it.
#pragma once
#include <cmath>

#include "devices/cpu/xsimd.h"

namespace kassette::devices {
inline namespace KASSETTE_LEVEL {

/// Whether the level rounds a * b + c once.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define KASSETTE_HAS_FMA 1
#endif

/// Intrinsics, since xsimd 8.1 rounds twice at avx2 and avx512.
template <class V>
inline __attribute__((always_inline)) V multiply_add(const V& a, const V& b, const V& c) {
  [[maybe_unused]] constexpr bool single = sizeof(typename V::value_type) == 4;
#if defined(__AVX512F__)
  if constexpr (single) return V(_mm512_fmadd_ps(a, b, c));
  else return V(_mm512_fmadd_pd(a, b, c));
#elif defined(__FMA__)
  if constexpr (single) return V(_mm256_fmadd_ps(a, b, c));
  else return V(_mm256_fmadd_pd(a, b, c));
#else
  return xsimd::fma(a, b, c);
#endif
}

/// a * b - c.
template <class V>
inline __attribute__((always_inline)) V multiply_subtract(const V& a, const V& b, const V& c) {
  [[maybe_unused]] constexpr bool single = sizeof(typename V::value_type) == 4;
#if defined(__AVX512F__)
  if constexpr (single) return V(_mm512_fmsub_ps(a, b, c));
  else return V(_mm512_fmsub_pd(a, b, c));
#elif defined(__FMA__)
  if constexpr (single) return V(_mm256_fmsub_ps(a, b, c));
  else return V(_mm256_fmsub_pd(a, b, c));
#else
  return multiply_add(a, b, -c);
#endif
}

/// multiply_add() of single numbers, with the bits of a lane: so that those of an element do not depend on whether it
/// is in a vector or behind the last one.
template <class T>
inline T multiply_add_one(T a, T b, T c) {
#ifdef KASSETTE_HAS_FMA
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}

}  // namespace KASSETTE_LEVEL
}  // namespace kassette::devices
