// devices/cpu/simd_vector.h - whole vectors and their first lanes. Only *_simd.cpp files include it.
#pragma once
#include <cstdint>
#include <type_traits>

#include "devices/cpu/xsimd.h"

namespace kassette::devices {
inline namespace KASSETTE_LEVEL {  // the linker must not use an inline function of one level for another

/// Loads and stores of a vector or its first n lanes. load_part() sets the other lanes to 1: no op traps or is slow
/// there.
template <class T>
struct Vec {
  using V = xsimd::batch<T>;
  static constexpr std::int64_t kWidth = static_cast<std::int64_t>(V::size);
#if defined(__AVX512F__)
  using Lanes = std::conditional_t<sizeof(T) == 4, __mmask16, __mmask8>;
  static Lanes first(std::int64_t n) { return static_cast<Lanes>((1u << n) - 1); }
#endif
  static V load(const T* p) { return V::load_unaligned(p); }
  static V load_part(const T* p, std::int64_t n) {
#if defined(__AVX512F__)
    if constexpr (std::is_same_v<T, float>) return _mm512_mask_loadu_ps(_mm512_set1_ps(1), first(n), p);
    if constexpr (std::is_same_v<T, double>) return _mm512_mask_loadu_pd(_mm512_set1_pd(1), first(n), p);
#endif
    alignas(64) T buffer[kWidth];
    for (std::int64_t i = 0; i < kWidth; ++i) buffer[i] = i < n ? p[i] : T(1);
    return V::load_aligned(buffer);
  }
  static void store(T* p, const V& v) { v.store_unaligned(p); }
  /// Stores past the caches; p is aligned to the vector.
  static void stream(T* p, const V& v) {
    [[maybe_unused]] constexpr bool single = sizeof(T) == 4;
#if defined(__AVX512F__)
    if constexpr (single) _mm512_stream_ps(p, v);
    else _mm512_stream_pd(p, v);
#elif defined(__AVX__)
    if constexpr (single) _mm256_stream_ps(p, v);
    else _mm256_stream_pd(p, v);
#elif defined(__SSE2__)
    if constexpr (single) _mm_stream_ps(p, v);
    else _mm_stream_pd(p, v);
#else
    v.store_aligned(p);
#endif
  }
  static void store_part(T* p, const V& v, std::int64_t n) {
#if defined(__AVX512F__)
    if constexpr (std::is_same_v<T, float>) return _mm512_mask_storeu_ps(p, first(n), v);
    if constexpr (std::is_same_v<T, double>) return _mm512_mask_storeu_pd(p, first(n), v);
#endif
    alignas(64) T buffer[kWidth];
    v.store_aligned(buffer);
    for (std::int64_t i = 0; i < n; ++i) p[i] = buffer[i];
  }
};

/// Up to a whole vector, so that one loop body serves full vectors and the tail.
template <class T>
struct Part {
  using X = Vec<T>;
  using V = typename X::V;
  std::int64_t n;
  inline __attribute__((always_inline)) V load(const T* p) const {
    return n >= X::kWidth ? X::load(p) : X::load_part(p, n);
  }
  inline __attribute__((always_inline)) void store(T* p, const V& v) const {
    if (n >= X::kWidth) X::store(p, v);
    else X::store_part(p, v, n);
  }
  inline __attribute__((always_inline)) void store(T* p, const V& v, bool stream) const {
    if (stream && n >= X::kWidth) X::stream(p, v);
    else store(p, v);
  }
};

/// Calls f(i, part) for each vector of n elements; `part` covers the elements from i on.
template <class T, class F>
inline __attribute__((always_inline)) void each_vector(std::int64_t n, F f) {
  constexpr std::int64_t w = Vec<T>::kWidth;
  std::int64_t i = 0;
  for (; i + w <= n; i += w) f(i, Part<T>{w});
  if (i < n) f(i, Part<T>{n - i});
}

}  // namespace KASSETTE_LEVEL
}  // namespace kassette::devices
