// ops/random_simd.cpp - filling arrays with random numbers; compiled once per CPU level. All levels give the same bits: the
// arithmetic is additions, multiplications, divisions and square roots in a fixed order, never fused.
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <cmath>
#endif

#include "ops/random.h"

namespace kassette {
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
#else
  return (a & 0xffffffffu) * (b & 0xffffffffu);
#endif
}
/// Even 32-bit lanes of a, odd ones of b.
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
#else
  for (int i = 0; i < kBytes / 8; ++i) x[i] = std::sqrt(x[i]);
  return x;
#endif
}

template <class V, class T, int n>
KASSETTE_INLINE V polynomial(V x, const T (&c)[n]) {
  V r = c[n - 1] - V{};
  for (int i = n - 2; i >= 0; --i) r = r * x + c[i];
  return r;
}

// Coefficients: Chebyshev fits in 40 digits to the functions named, over the ranges that occur.

/// log(x) of 2^-33 <= x <= 1: x = 2^e (1 + f) with 1 + f between the roots of 1/2 and 2.
KASSETTE_INLINE F32 log_below_one(F32 x) {
  constexpr std::int32_t kRootHalf = 0x3f3504f3;
  I32 i = bits<I32>(x) - kRootHalf;
  F32 e = __builtin_convertvector(i >> 23, F32);
  F32 f = bits<F32>((i & 0x7fffff) + kRootHalf) - 1.0f;
  constexpr float c[] = {0.333333313f, -0.24999997f, 0.200007156f, -0.166678026f, 0.142490581f,
                         -0.124256872f, 0.116854198f, -0.114797339f, 0.0697161183f};   // (log(1+f) - f + f^2/2) / f^3
  F32 f2 = f * f;
  F32 rest = f2 * f * polynomial(f, c) - 0.5f * f2;
  constexpr float kLow = -0x1.bd0106p-13f, kHigh = 0x1.63p-1f;   // log(2) in two parts: e * kHigh is exact
  return (e * kLow + rest + f) + e * kHigh;
}
KASSETTE_INLINE F64 log_below_one(F64 x) {
  constexpr std::uint64_t kRootHalf = 0x3fe6a09e667f3bcdu, kOne = 0x3ff0000000000000u;
  U64 i = bits<U64>(x) + (kOne - kRootHalf);
  F64 e = bits<F64>((i >> 52) | 0x4330000000000000u) - (4503599627370496.0 + 1023);
  F64 f = bits<F64>((i & 0xfffffffffffffu) + kRootHalf) - 1.0;
  constexpr double c[] = {0.66666666666666696, 0.39999999999898889, 0.28571428626253836, 0.22222211089379496,
                          0.18182892432536871, 0.15331611722055008, 0.14617807153417325};   // of s^2: log((1+s)/(1-s))
  F64 s = f / (f + 2.0), z = s * s;
  F64 rest = s * (z * polynomial(z, c));
  constexpr double kLow = 0x1.a39ef35793c76p-33, kHigh = 0x1.62e42feep-1;
  return (e * kLow + rest + 2.0 * s) + e * kHigh;
}

/// Sine and cosine of t right angles, |t| <= 1/2.
KASSETTE_INLINE void sine_cosine(F32 t, F32& s, F32& c) {
  constexpr float a[] = {1.57079637f, -0.64596349f, 0.0796802193f, -0.00460214913f};
  constexpr float b[] = {1.0f, -1.23370051f, 0.253669202f, -0.0208600704f, 0.000903628068f};
  F32 z = t * t;
  s = t * polynomial(z, a);
  c = polynomial(z, b);
}
KASSETTE_INLINE void sine_cosine(F64 t, F64& s, F64& c) {
  constexpr double a[] = {1.5707963267948966, -0.64596409750624428, 0.079692626246043008, -0.0046817541323409756,
                          0.00016044115074219091, -3.5986433529823099e-06, 5.6339337815378543e-08};
  constexpr double b[] = {1.0, -1.2337005501361697, 0.2536695079010467, -0.02086348076331121, 0.00091926027418315576,
                          -2.520203677046026e-05, 4.7106097267578228e-07, -6.3212568696285881e-09};
  F64 z = t * t;
  s = t * polynomial(z, a);
  c = polynomial(z, b);
}

/// A pair of normals (Box and Muller, 1958): radius sqrt(-2 log u) with u in (0, 1], and an angle in the quadrant around 0,
/// mirrored at the diagonal where `swap` has its top bit and at the origin by the sign bit of `sign`.
template <class V, class U>
KASSETTE_INLINE void normal_pair(V u, V t, U swap, U sign, V& x, V& y) {
  V log_u = log_below_one(u), r = square_root(-log_u - log_u), s, c;
  sine_cosine(t, s, c);
  constexpr int kTop = sizeof(u[0]) * 8 - 1;
  U top = (U{} + 1) << kTop, swapped = U{} - (swap >> kTop), flip = sign & top;
  U a = bits<U>(r * c), b = bits<U>(r * s), mixed = (a ^ b) & swapped;
  x = bits<V>(a ^ mixed ^ flip);
  y = bits<V>(b ^ mixed ^ flip);
}

/// The standard normal's quantile at (1 + v) / 2 of what lies within (-2, 2), for v in (-1, 1): x = v erf(sqrt 2) has
/// sqrt(2) erfinv(x) = x q(-log(1 - x^2)).
KASSETTE_INLINE F32 truncated_quantile(F32 v) {
  constexpr float q[] = {1.25331414f, 0.328117192f, 0.0163305625f, -0.00329360249f,
                         -0.00019492727f, 7.75767548e-05f, -2.26947964e-06f, -4.9904213e-07f};
  F32 x = v * 0.954499736f;
  F32 z = x * polynomial(-log_below_one(1.0f - x * x), q);
  constexpr float kEnd = 0x1.fffffep0f;
  z = z < kEnd ? z : kEnd - F32{};
  return z > -kEnd ? z : -kEnd - F32{};
}
KASSETTE_INLINE F64 truncated_quantile(F64 v) {
  constexpr double q[] = {1.2533141373155003, 0.32811687386921945, 0.016333236146925039, -0.0033023324099102987,
                          -0.00018108057207079288, 6.5918570918687314e-05, 2.8565763997447685e-06, -1.4317191056762975e-06,
                          -5.3117903819845517e-08, 3.2648738934715541e-08, 7.2744395800583906e-10, -5.3471990887127856e-10,
                          -1.1525573609117679e-10, 4.6612282063526243e-11, -5.5909240907970596e-12, 2.4970373885300149e-13};
  F64 x = v * 0.95449973610364158;
  F64 z = x * polynomial(-log_below_one(1.0 - x * x), q);
  constexpr double kEnd = 0x1.fffffffffffffp0;
  z = z < kEnd ? z : kEnd - F64{};
  return z > -kEnd ? z : -kEnd - F64{};
}

// ---- words -----------------------------------------------------------------------------------------------------------

/// The words of some lanes of a group, by their place in the block.
struct Words {
  U32 w[4];
};

KASSETTE_INLINE void multiply(U32 a, std::uint32_t m, U32& low, U32& high) {
  U64 factor = U64{} + m, even = multiply_even(bits<U64>(a), factor), odd = multiply_even(bits<U64>(a) >> 32, factor);
  low = interleave(even, odd << 32);
  high = interleave(even >> 32, odd);
}

/// Blocks `first`, first + 1, ... of a draw, one to a lane. `first` is a multiple of the lanes: no lane carries over.
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

/// Runs group(first element, lane, words) for all groups that cover [first, first + n); `group` writes its part of 64
/// elements to the address it is given. The last group may be cut.
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

/// One value of T per word: value(word).
template <class V, class T, class F>
KASSETTE_INLINE void each_word(const RandomKey& key, std::int64_t first, std::int64_t n, T* out, F value) {
  for_groups<T, 64>(key, first, n, out, [&](const Words& c, std::int64_t, int lane, T* to) __attribute__((always_inline)) {
    for (int k = 0; k < 4; ++k) {
      V v = value(c.w[k]);
      std::memcpy(to + 16 * k + lane, &v, sizeof v);
    }
  });
}
/// Two values of double per block from its two pairs of words: value(high bits, low bits, x, y) for half the lanes.
template <class F>
KASSETTE_INLINE void each_block64(const RandomKey& key, std::int64_t first, std::int64_t n, double* out, F value) {
  for_groups<double, 32>(key, first, n, out, [&](const Words& c, std::int64_t, int lane, double* to) __attribute__((always_inline)) {
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

/// v * scale + shift, at most top.
template <class V, class T>
struct Formed {
  T scale, shift, top;
  explicit Formed(const Form& f) : scale(static_cast<T>(f.scale)), shift(static_cast<T>(f.shift)), top(static_cast<T>(f.top)) {}
  KASSETTE_INLINE V operator()(V v) const {
    v = v * scale + shift;
    return v > top ? top - V{} : v;   // NaN stays
  }
};

/// 24 bits as a float in [0, 1).
KASSETTE_INLINE F32 unit(U32 w) { return __builtin_convertvector(bits<I32>(w >> 8), F32) * 0x1p-24f; }
/// The upper 53 bits as an integer.
KASSETTE_INLINE F64 upper53(U64 w) {
  constexpr std::uint64_t kMagic = 0x4330000000000000u;   // 2^52, which makes the low bits of its mantissa an integer
  F64 high = bits<F64>((w >> 38) | kMagic) - 0x1p52, low = bits<F64>((w >> 11 & 0x7ffffffu) | kMagic) - 0x1p52;
  return high * 0x1p27 + low;
}

// ---- loops -----------------------------------------------------------------------------------------------------------

void words(const RandomKey& key, std::int64_t first, std::int64_t n, const Form&, void* out) {
  each_word<U32>(key, first, n, static_cast<std::uint32_t*>(out), [](U32 w) __attribute__((always_inline)) { return w; });
}
void uniform_f32(const RandomKey& key, std::int64_t first, std::int64_t n, const Form& form, void* out) {
  const Formed<F32, float> formed(form);
  each_word<F32>(key, first, n, static_cast<float*>(out),
                 [&](U32 w) __attribute__((always_inline)) { return formed(unit(w)); });
}
void uniform_f64(const RandomKey& key, std::int64_t first, std::int64_t n, const Form& form, void* out) {
  const Formed<F64, double> formed(form);
  each_block64(key, first, n, static_cast<double*>(out), [&](U64 a, U64 b, F64& x, F64& y) __attribute__((always_inline)) {
    x = formed(upper53(a) * 0x1p-53);
    y = formed(upper53(b) * 0x1p-53);
  });
}
void normal_f32(const RandomKey& key, std::int64_t first, std::int64_t n, const Form& form, void* out) {
  const Formed<F32, float> formed(form);
  for_groups<float, 64>(key, first, n, static_cast<float*>(out),
                        [&](const Words& c, std::int64_t, int lane, float* to) __attribute__((always_inline)) {
    for (int k = 0; k < 4; k += 2) {
      // 31 bits of the first word and a half: in (0, 1]. Of the second, two bits for the quadrant and 30 for the angle.
      F32 u = __builtin_convertvector(bits<I32>(c.w[k] >> 1), F32) * 0x1p-31f + 0x1p-32f, x, y;
      F32 t = __builtin_convertvector(bits<I32>(c.w[k + 1] << 2), F32) * 0x1p-32f;
      normal_pair(u, t, c.w[k + 1], c.w[k + 1] << 1, x, y);
      x = formed(x);
      y = formed(y);
      std::memcpy(to + 16 * k + lane, &x, sizeof x);
      std::memcpy(to + 16 * (k + 1) + lane, &y, sizeof y);
    }
  });
}
void normal_f64(const RandomKey& key, std::int64_t first, std::int64_t n, const Form& form, void* out) {
  const Formed<F64, double> formed(form);
  each_block64(key, first, n, static_cast<double*>(out), [&](U64 a, U64 b, F64& x, F64& y) __attribute__((always_inline)) {
    // The angle takes the upper 53 bits, the quadrant the lowest two.
    normal_pair((upper53(a) + 0.5) * 0x1p-53, upper53(b) * 0x1p-53 - 0.5, b << 63, b << 62, x, y);
    x = formed(x);
    y = formed(y);
  });
}
void truncated_f32(const RandomKey& key, std::int64_t first, std::int64_t n, const Form& form, void* out) {
  const Formed<F32, float> formed(form);
  each_word<F32>(key, first, n, static_cast<float*>(out), [&](U32 w) __attribute__((always_inline)) {
    return formed(truncated_quantile(__builtin_convertvector(bits<I32>(w), F32) * 0x1p-31f + 0x1p-32f));
  });
}
void truncated_f64(const RandomKey& key, std::int64_t first, std::int64_t n, const Form& form, void* out) {
  const Formed<F64, double> formed(form);
  each_block64(key, first, n, static_cast<double*>(out), [&](U64 a, U64 b, F64& x, F64& y) __attribute__((always_inline)) {
    x = formed(truncated_quantile((upper53(a) + 0.5) * 0x1p-52 - 1.0));
    y = formed(truncated_quantile((upper53(b) + 0.5) * 0x1p-52 - 1.0));
  });
}

/// Lanes of all ones where a word is below.
struct Kept {
  std::uint32_t last;
  std::uint32_t any;
  explicit Kept(const Form& form) : last(static_cast<std::uint32_t>(form.below - 1)), any(form.below ? ~0u : 0u) {}
  KASSETTE_INLINE U32 operator()(U32 w) const { return bits<U32>(w <= last) & any; }
};
void bernoulli_f32(const RandomKey& key, std::int64_t first, std::int64_t n, const Form& form, void* out) {
  const Kept kept(form);
  const U32 one = bits<U32>(F32{} + 1.0f);
  each_word<U32>(key, first, n, static_cast<std::uint32_t*>(out),
                 [&](U32 w) __attribute__((always_inline)) { return kept(w) & one; });
}
void dropout_f32(const RandomKey& key, std::int64_t first, std::int64_t n, const Form& form, const float* x, float* out) {
  const Kept kept(form);
  const float scale = static_cast<float>(form.scale);
  alignas(64) float last[64] = {};
  for_groups<float, 64>(key, first, n, out, [&](const Words& c, std::int64_t at, int lane, float* to) __attribute__((always_inline)) {
    const float* from = x + at;
    if (n - at < 64) {
      std::memcpy(last, from, static_cast<std::size_t>(n - at) * sizeof(float));
      from = last;
    }
    for (int k = 0; k < 4; ++k) {
      U32 v = bits<U32>(load<F32>(from + 16 * k + lane) * scale) & kept(c.w[k]);
      std::memcpy(to + 16 * k + lane, &v, sizeof v);
    }
  });
}

}  // namespace

constinit const RandomLoops KASSETTE_LEVEL_NAME(random_loops) = {
    words,         uniform_f32,   uniform_f64,   normal_f32, normal_f64,
    truncated_f32, truncated_f64, bernoulli_f32, dropout_f32};

}  // namespace kassette
