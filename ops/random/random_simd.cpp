// ops/random/random_simd.cpp - filling arrays with random numbers; compiled once per CPU level. All levels give the
// same bits.
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#else
#include <cmath>
#endif

#include "ops/random/draws.h"
#include "ops/random/random.h"

namespace kassette::ops {
namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif

template <class T, int bytes = kBytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(bytes)));
};
using U32 = VectorOf<std::uint32_t>::type;
using I32 = VectorOf<std::int32_t>::type;
using F32 = VectorOf<float>::type;
using U64 = VectorOf<std::uint64_t>::type;
using F64 = VectorOf<double>::type;
using HalfU32 = VectorOf<std::uint32_t, kBytes / 2>::type;

#define KASSETTE_INLINE inline __attribute__((always_inline))

template <class To, class From>
KASSETTE_INLINE To bits(From v) {
  static_assert(sizeof(To) == sizeof(From));
  To r;
  std::memcpy(&r, &v, sizeof r);
  return r;
}
template <class V, class T>
KASSETTE_INLINE V load(const T* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

/// The 64-bit products of the even 32-bit lanes.
KASSETTE_INLINE U64 multiply_even(U64 a, U64 b) {
#if defined(__AVX512F__)
  return bits<U64>(_mm512_mul_epu32(bits<__m512i>(a), bits<__m512i>(b)));
#elif defined(__AVX2__)
  return bits<U64>(_mm256_mul_epu32(bits<__m256i>(a), bits<__m256i>(b)));
#elif defined(__x86_64__)
  return bits<U64>(_mm_mul_epu32(bits<__m128i>(a), bits<__m128i>(b)));
#elif defined(__aarch64__)
  return bits<U64>(vmull_u32(vmovn_u64(bits<uint64x2_t>(a)), vmovn_u64(bits<uint64x2_t>(b))));
#else
  return (a & 0xffffffffu) * (b & 0xffffffffu);
#endif
}
/// The even 32-bit lanes of a and the odd ones of b.
KASSETTE_INLINE U32 interleave(U64 a, U64 b) {
#if defined(__AVX512F__)
  return bits<U32>(_mm512_mask_mov_epi32(bits<__m512i>(a), 0xAAAA, bits<__m512i>(b)));
#elif defined(__AVX2__)
  return bits<U32>(_mm256_blend_epi32(bits<__m256i>(a), bits<__m256i>(b), 0xAA));
#else
  return bits<U32>((a & 0xffffffffu) | (b & 0xffffffff00000000u));
#endif
}
KASSETTE_INLINE F32 square_root(F32 x) {
#if defined(__AVX512F__)
  return bits<F32>(_mm512_sqrt_ps(bits<__m512>(x)));
#elif defined(__AVX2__)
  return bits<F32>(_mm256_sqrt_ps(bits<__m256>(x)));
#elif defined(__x86_64__)
  return bits<F32>(_mm_sqrt_ps(bits<__m128>(x)));
#elif defined(__aarch64__)
  return bits<F32>(vsqrtq_f32(bits<float32x4_t>(x)));
#else
  for (int i = 0; i < kBytes / 4; ++i) x[i] = std::sqrt(x[i]);
  return x;
#endif
}
KASSETTE_INLINE F64 square_root(F64 x) {
#if defined(__AVX512F__)
  return bits<F64>(_mm512_sqrt_pd(bits<__m512d>(x)));
#elif defined(__AVX2__)
  return bits<F64>(_mm256_sqrt_pd(bits<__m256d>(x)));
#elif defined(__x86_64__)
  return bits<F64>(_mm_sqrt_pd(bits<__m128d>(x)));
#elif defined(__aarch64__)
  return bits<F64>(vsqrtq_f64(bits<float64x2_t>(x)));
#else
  for (int i = 0; i < kBytes / 8; ++i) x[i] = std::sqrt(x[i]);
  return x;
#endif
}

struct Lanes32 {
  using F = F32;
  using U = U32;
  using I = I32;
  static constexpr int kBits = 32;
  KASSETTE_INLINE static F real(I v) { return __builtin_convertvector(v, F); }
  KASSETTE_INLINE static F root(F x) { return square_root(x); }
};
struct Lanes64 {
  using F = F64;
  using U = U64;
  static constexpr int kBits = 64;
  KASSETTE_INLINE static F root(F x) { return square_root(x); }
};
using Single = draws::Singles<Lanes32>;
using Double = draws::Doubles<Lanes64>;

// --- words -----------------------------------------------------------------------------------------------------------

/// Philox blocks, one per lane: w[i] is word i of each block.
struct Words {
  U32 w[4];
};

KASSETTE_INLINE void multiply(U32 a, std::uint32_t m, U32& low, U32& high) {
  U64 factor = U64{} + m, even = multiply_even(bits<U64>(a), factor), odd = multiply_even(bits<U64>(a) >> 32, factor);
  low = interleave(even, odd << 32);
  high = interleave(even >> 32, odd);
}

/// Blocks first, first + 1, ... of a draw, one per lane. `first` is a multiple of the number of lanes, so that adding
/// the lane does not carry.
KASSETTE_INLINE Words blocks(const RandomKey& key, std::uint64_t first) {
  U32 lane;
  for (int i = 0; i < kBytes / 4; ++i) lane[i] = static_cast<std::uint32_t>(i);
  Words c{{lane + static_cast<std::uint32_t>(first), U32{} + static_cast<std::uint32_t>(first >> 32),
           U32{} + static_cast<std::uint32_t>(key.draw), U32{} + static_cast<std::uint32_t>(key.draw >> 32)}};
  std::uint32_t k0 = static_cast<std::uint32_t>(key.seed), k1 = static_cast<std::uint32_t>(key.seed >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < kPhiloxRounds; ++round) {
    U32 low0, high0, low1, high1;
    multiply(c.w[0], kPhiloxM0, low0, high0);
    multiply(c.w[2], kPhiloxM1, low1, high1);
    c = {{high1 ^ c.w[1] ^ k0, low1, high0 ^ c.w[3] ^ k1, low0}};
    k0 += kPhiloxW0;
    k1 += kPhiloxW1;
  }
  return c;
}

constexpr int kLanes = kBytes / 4;

/// Calls group(words, offset of the group in the output, first lane, to) for all groups of [first, first + n). It
/// writes its part of the group's elements to the group's address `to`. The last group is written to a buffer if it is
/// not complete.
template <class T, int group_size, class F>
KASSETTE_INLINE void for_groups(const RandomKey& key, std::int64_t first, std::int64_t n, T* out, F group) {
  alignas(64) T last[group_size];
  for (std::int64_t at = 0; at < n; at += group_size) {
    bool whole = n - at >= group_size;
    T* to = whole ? out + at : last;
    std::uint64_t block = static_cast<std::uint64_t>((first + at) / group_size) * kGroupBlocks;
    for (int lane = 0; lane < kGroupBlocks; lane += kLanes)
      group(blocks(key, block + static_cast<unsigned>(lane)), at, lane, to);
    if (!whole) std::memcpy(out + at, last, static_cast<std::size_t>(n - at) * sizeof(T));
  }
}

/// Writes one element per word: value(word).
template <class V, class T, class F>
KASSETTE_INLINE void each_word(const RandomKey& key, std::int64_t first, std::int64_t n, T* out, F value) {
  for_groups<T, 64>(
      key, first, n, out, [&](const Words& c, std::int64_t, int lane, T* to) __attribute__((always_inline)) {
        for (int k = 0; k < 4; ++k) {
          V v = value(c.w[k]);
          std::memcpy(to + 16 * k + lane, &v, sizeof v);
        }
      });
}
/// Writes two doubles per block, from its two pairs of words: value(first pair, second pair, x, y), for half of the
/// lanes at a time.
template <class F>
KASSETTE_INLINE void each_block64(const RandomKey& key, std::int64_t first, std::int64_t n, double* out, F value) {
  for_groups<double, 32>(
      key, first, n, out, [&](const Words& c, std::int64_t, int lane, double* to) __attribute__((always_inline)) {
        std::uint32_t w[4][kLanes];
        std::memcpy(w, c.w, sizeof w);
        for (int half = 0; half < kLanes; half += kLanes / 2) {
          U64 wide[4];
          for (int k = 0; k < 4; ++k) wide[k] = __builtin_convertvector(load<HalfU32>(w[k] + half), U64);
          F64 x, y;
          value(wide[0] << 32 | wide[1], wide[2] << 32 | wide[3], x, y);
          std::memcpy(to + lane + half, &x, sizeof x);
          std::memcpy(to + 16 + lane + half, &y, sizeof y);
        }
      });
}

/// min(v * scale + shift, top).
template <class V, class T>
struct Formed {
  T scale, shift, top;
  explicit Formed(const RandomForm& f)
      : scale(static_cast<T>(f.scale)), shift(static_cast<T>(f.shift)), top(static_cast<T>(f.top)) {}
  KASSETTE_INLINE V operator()(V v) const {
    v = v * scale + shift;
    return v > top ? top - V{} : v;  // keeps NaN
  }
};

// --- loops -----------------------------------------------------------------------------------------------------------

void words(const RandomKey& key, std::int64_t first, std::int64_t n, const RandomForm&, void* out) {
  each_word<U32>(
      key, first, n, static_cast<std::uint32_t*>(out), [](U32 w) __attribute__((always_inline)) { return w; });
}
void uniform_f32(const RandomKey& key, std::int64_t first, std::int64_t n, const RandomForm& form, void* out) {
  const Formed<F32, float> formed(form);
  each_word<F32>(
      key, first, n,
      static_cast<float*>(out), [&](U32 w) __attribute__((always_inline)) { return formed(Single::uniform(w)); });
}
void uniform_f64(const RandomKey& key, std::int64_t first, std::int64_t n, const RandomForm& form, void* out) {
  const Formed<F64, double> formed(form);
  each_block64(
      key, first, n, static_cast<double*>(out), [&](U64 a, U64 b, F64 & x, F64 & y) __attribute__((always_inline)) {
        x = formed(Double::uniform(a));
        y = formed(Double::uniform(b));
      });
}
void normal_f32(const RandomKey& key, std::int64_t first, std::int64_t n, const RandomForm& form, void* out) {
  const Formed<F32, float> formed(form);
  for_groups<float, 64>(
      key, first, n,
      static_cast<float*>(out), [&](const Words& c, std::int64_t, int lane, float* to) __attribute__((always_inline)) {
        for (int k = 0; k < 4; k += 2) {
          F32 x, y;
          Single::normals(c.w[k], c.w[k + 1], x, y);
          x = formed(x);
          y = formed(y);
          std::memcpy(to + 16 * k + lane, &x, sizeof x);
          std::memcpy(to + 16 * (k + 1) + lane, &y, sizeof y);
        }
      });
}
void normal_f64(const RandomKey& key, std::int64_t first, std::int64_t n, const RandomForm& form, void* out) {
  const Formed<F64, double> formed(form);
  each_block64(
      key, first, n, static_cast<double*>(out), [&](U64 a, U64 b, F64 & x, F64 & y) __attribute__((always_inline)) {
        Double::normals(a, b, x, y);
        x = formed(x);
        y = formed(y);
      });
}
void truncated_f32(const RandomKey& key, std::int64_t first, std::int64_t n, const RandomForm& form, void* out) {
  const Formed<F32, float> formed(form);
  each_word<F32>(
      key, first, n,
      static_cast<float*>(out), [&](U32 w) __attribute__((always_inline)) { return formed(Single::truncated(w)); });
}
void truncated_f64(const RandomKey& key, std::int64_t first, std::int64_t n, const RandomForm& form, void* out) {
  const Formed<F64, double> formed(form);
  each_block64(
      key, first, n, static_cast<double*>(out), [&](U64 a, U64 b, F64 & x, F64 & y) __attribute__((always_inline)) {
        x = formed(Double::truncated(a));
        y = formed(Double::truncated(b));
      });
}

/// Compares random words with the bound of a form: the lanes of words below it are all ones, others 0.
struct KeepMask {
  std::uint32_t last;
  std::uint32_t any;
  explicit KeepMask(const RandomForm& form)
      : last(static_cast<std::uint32_t>(form.below - 1)), any(form.below ? ~0u : 0u) {}
  KASSETTE_INLINE U32 operator()(U32 w) const { return bits<U32>(w <= last) & any; }
};
void bernoulli_f32(const RandomKey& key, std::int64_t first, std::int64_t n, const RandomForm& form, void* out) {
  const KeepMask keep(form);
  const U32 one = bits<U32>(F32{} + 1.0f);
  each_word<U32>(
      key, first, n,
      static_cast<std::uint32_t*>(out), [&](U32 w) __attribute__((always_inline)) { return keep(w) & one; });
}
void dropout_f32(const RandomKey& key, std::int64_t first, std::int64_t n, const RandomForm& form, const float* x,
                 float* out) {
  const KeepMask keep(form);
  const float scale = static_cast<float>(form.scale);
  alignas(64) float last[64] = {};
  for_groups<float, 64>(
      key, first, n, out, [&](const Words& c, std::int64_t at, int lane, float* to) __attribute__((always_inline)) {
        const float* from = x + at;
        if (n - at < 64) {
          std::memcpy(last, from, static_cast<std::size_t>(n - at) * sizeof(float));
          from = last;
        }
        for (int k = 0; k < 4; ++k) {
          U32 v = bits<U32>(load<F32>(from + 16 * k + lane) * scale) & keep(c.w[k]);
          std::memcpy(to + 16 * k + lane, &v, sizeof v);
        }
      });
}

}  // namespace

constinit const RandomLoops KASSETTE_LEVEL_NAME(random_loops) = {
    words, uniform_f32, uniform_f64, normal_f32, normal_f64, truncated_f32, truncated_f64, bernoulli_f32, dropout_f32};

}  // namespace kassette::ops
