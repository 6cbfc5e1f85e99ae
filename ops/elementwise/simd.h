// ops/elementwise/simd.h - xsimd batches as the values of elementwise ops. Only *_simd.cpp files include it; they are
// compiled once per CPU level.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "devices/cpu/simd_vector.h"
#include "devices/cpu/xsimd.h"
#include "ops/elementwise/elementwise.h"
#include "ops/math/math.h"
#include "ops/elementwise/unary_function.h"

namespace kassette::ops {
// xsimd's namespace is renamed per level, so that overloads on its batches are distinct symbols.
namespace m {
template <class T, class A>
KASSETTE_FN xsimd::batch<T, A> select(const xsimd::batch_bool<T, A>& c, const xsimd::batch<T, A>& a,
                                      const xsimd::batch<T, A>& b) {
  return xsimd::select(c, a, b);
}
template <class T, class A>
KASSETTE_FN xsimd::batch_bool<T, A> is_nan(const xsimd::batch<T, A>& x) {
  return xsimd::isnan(x);  // in xsimd 8.1, x != x is false for NaN
}
#define KASSETTE_BATCH_FN(name, function) \
  template <class T, class A> \
  KASSETTE_FN xsimd::batch<T, A> name(const xsimd::batch<T, A>& x) { \
    return xsimd::function(x); \
  }
KASSETTE_BATCH_FN(abs, abs)
#if defined(__aarch64__)  // Note [Division on ARM64]; and xsimd 8.1 rounds without the instruction
KASSETTE_FN xsimd::batch<float> sqrt(const xsimd::batch<float>& x) { return vsqrtq_f32(x); }
KASSETTE_FN xsimd::batch<double> sqrt(const xsimd::batch<double>& x) { return vsqrtq_f64(x); }
KASSETTE_FN xsimd::batch<float> round_even(const xsimd::batch<float>& x) { return vrndnq_f32(x); }
KASSETTE_FN xsimd::batch<double> round_even(const xsimd::batch<double>& x) { return vrndnq_f64(x); }
#else
KASSETTE_BATCH_FN(sqrt, sqrt)
KASSETTE_BATCH_FN(round_even, nearbyint)
#endif
#undef KASSETTE_BATCH_FN
}  // namespace m
}  // namespace kassette::ops

#include "ops/math/simd_math.h"  // after the functions above, which it uses
#include "ops/math/simd_power.h"
#include "ops/math/simd_elementary.h"

namespace kassette::ops {
inline namespace KASSETTE_LEVEL {  // the linker must not use an inline function of one level for another

using devices::each_vector;
using devices::Part;
using devices::Vec;

/// Bytes per thread from which outputs are written past the caches, which could not hold them. A plain store reads the
/// cache line first, which makes an addition of 10^7 floats take 1.4 times as long.
constexpr std::int64_t kStreamed = 4 << 20;

/// Stores value(i) to o[i..] vector by vector, and tail(i, n) to the last n elements. The tail must run the same vector
/// code, so that the bits of a result do not depend on its position.
template <class T, class Value, class Tail>
KASSETTE_FN void fill(T* o, std::int64_t n, Value value, Tail tail) {
  using X = Vec<T>;
  std::int64_t i = 0;
  if (n * static_cast<std::int64_t>(sizeof(T)) >= kStreamed &&
      reinterpret_cast<std::uintptr_t>(o) % sizeof(typename X::V) == 0) {
    for (; i + X::kWidth <= n; i += X::kWidth) X::stream(o + i, value(i));
#if defined(__SSE2__)
    _mm_sfence();
#endif
  } else {
    for (; i + X::kWidth <= n; i += X::kWidth) X::store(o + i, value(i));
  }
  if (i < n) X::store_part(o + i, tail(i, n - i), n - i);
}

/// The loop of a unary op over n elements.
template <class Op, class T>
void unary_loop(const void* const* in, void* out, std::int64_t n, const Attrs& attrs) {
  using X = Vec<T>;
  const UnaryFunction<Op> f(attrs);
  auto* a = static_cast<const T*>(in[0]);
  fill(
      static_cast<T*>(out), n, [&](std::int64_t i) __attribute__((always_inline)) { return f(X::load(a + i)); },
      [&](std::int64_t i, std::int64_t k) __attribute__((always_inline)) { return f(X::load_part(a + i, k)); });
}

/// The loop of a binary op. Bit 0 of kMask: the first operand is a single element; bit 1: the second is.
template <class Op, class T, int kMask>
void binary_loop(const void* const* in, void* out, std::int64_t n, const Attrs&) {
  using X = Vec<T>;
  using V = typename X::V;
  auto* a = static_cast<const T*>(in[0]);
  auto* b = static_cast<const T*>(in[1]);
  const V one_a(kMask & 1 ? *a : T(1)), one_b(kMask & 2 ? *b : T(1));
  fill(
      static_cast<T*>(out), n,
      [&](std::int64_t i) __attribute__((always_inline)) {
        return Op::value(kMask & 1 ? one_a : X::load(a + i), kMask & 2 ? one_b : X::load(b + i));
      },
      [&](std::int64_t i, std::int64_t k) __attribute__((always_inline)) {
        return Op::value(kMask & 1 ? one_a : X::load_part(a + i, k), kMask & 2 ? one_b : X::load_part(b + i, k));
      });
}

}  // namespace KASSETTE_LEVEL
}  // namespace kassette::ops
