// The kernels of one CPU level in GCC's vector types: compiled three times, with -DLEVEL=sse2,
// avx2, avx512 and its -m flags.
#include "kernels.h"

#include <cstring>
#include <immintrin.h>

namespace limits {
namespace LEVEL_SPACE {

#if defined(__AVX512F__)
constexpr std::size_t kWidth = 16;
#elif defined(__AVX2__)
constexpr std::size_t kWidth = 8;
#else
constexpr std::size_t kWidth = 4;
#endif
typedef float Floats __attribute__((vector_size(kWidth * 4)));
typedef float Unaligned __attribute__((vector_size(kWidth * 4), aligned(4), may_alias));
typedef int Ints __attribute__((vector_size(kWidth * 4)));

static inline Floats load(const float* p) { return *reinterpret_cast<const Unaligned*>(p); }
static inline void store(float* p, Floats v) { *reinterpret_cast<Unaligned*>(p) = v; }
static inline void store_past_caches(float* p, Floats v) {
#if defined(__AVX512F__)
  _mm512_stream_ps(p, v);
#elif defined(__AVX2__)
  _mm256_stream_ps(p, v);
#else
  _mm_stream_ps(p, v);
#endif
}
static inline Floats larger(Floats a, Floats b) { return a > b ? a : b; }
static inline Floats smaller(Floats a, Floats b) { return a < b ? a : b; }

/// About 1 ulp; the constants are Cephes' expf.
static inline Floats exp_of(Floats x) {
  x = smaller(larger(x, Floats{} - 87.3f), Floats{} + 88.3f);
  Floats shifted = x * 1.44269504f + 12582912.f;  // the nearest integer, in the low bits
  Floats n = shifted - 12582912.f;
  Floats r = x - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  Floats p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + (r + 1.f);
  return reinterpret_cast<Floats>(reinterpret_cast<Ints>(p) + (reinterpret_cast<Ints>(shifted) << 23));
}

struct Add {
  Floats operator()(Floats a, Floats b) const { return a + b; }
};
struct Mul {
  Floats operator()(Floats a, Floats b) const { return a * b; }
};
struct Relu {
  Floats operator()(Floats a, Floats) const { return larger(a, Floats{}); }
};
struct Copy {
  Floats operator()(Floats a, Floats) const { return a; }
};
struct Exp {
  Floats operator()(Floats a, Floats) const { return exp_of(a); }
};
struct Chain10 {  // the ten operations of row ew.chain10 in one pass
  Floats operator()(Floats x, Floats) const {
    Floats e = exp_of((x + x * x * x * 0.044715f) * (2 * 0.7978845608f));
    return (x * 0.5f) * ((e - 1.f) / (e + 1.f) + 1.f) + x;
  }
};

template <class Op>
static void map(const float* a, const float* b, float* c, std::size_t lo, std::size_t hi, bool stream) {
  Op op;
  std::size_t i = lo;
  if (stream)
    for (; i + kWidth <= hi; i += kWidth) store_past_caches(c + i, op(load(a + i), load(b + i)));
  else {
#pragma GCC unroll 4
    for (; i + kWidth <= hi; i += kWidth) store(c + i, op(load(a + i), load(b + i)));
  }
  if (i < hi && hi - lo >= kWidth) store(c + hi - kWidth, op(load(a + hi - kWidth), load(b + hi - kWidth)));
}

static float sum(const float* a, std::size_t n) {
  Floats s[4] = {};
  for (std::size_t i = 0; i + 4 * kWidth <= n; i += 4 * kWidth)
    for (std::size_t k = 0; k < 4; ++k) s[k] += load(a + i + k * kWidth);
  Floats all = (s[0] + s[1]) + (s[2] + s[3]);
  float total = 0;
  for (std::size_t k = 0; k < kWidth; ++k) total += all[k];
  return total;
}

/// Three streams in, three out: whatever else a step computes has to be done on the way.
static float adam(float* w, float* m, float* v, std::size_t lo, std::size_t hi, float rate) {
  Floats total = {};
  for (std::size_t i = lo; i + kWidth <= hi; i += kWidth) {
    Floats x = load(w + i), g = x + x;
    Floats m1 = 0.9f * load(m + i) + 0.1f * g, v1 = 0.999f * load(v + i) + 0.001f * (g * g);
    Floats root;
    for (std::size_t k = 0; k < kWidth; ++k) root[k] = __builtin_sqrtf(v1[k]);
    total += x * x;
    store(m + i, m1), store(v + i, v1), store(w + i, x - rate * m1 / (root + 1e-7f));
  }
  float sum = 0;
  for (std::size_t k = 0; k < kWidth; ++k) sum += total[k];
  return sum;
}

static double fma_loop(long rounds) {  // twelve independent chains, named so that they stay in registers
  Floats x = Floats{} + 0.999f, y = Floats{} + 1e-3f;
  Floats a0 = x, a1 = x, a2 = x, a3 = x, a4 = x, a5 = x, a6 = x, a7 = x, a8 = x, a9 = x, a10 = x, a11 = x;
  for (long i = 0; i < rounds; ++i) {
    a0 = a0 * x + y, a1 = a1 * x + y, a2 = a2 * x + y, a3 = a3 * x + y, a4 = a4 * x + y, a5 = a5 * x + y;
    a6 = a6 * x + y, a7 = a7 * x + y, a8 = a8 * x + y, a9 = a9 * x + y, a10 = a10 * x + y, a11 = a11 * x + y;
    // Keeps the chains: without it they are one and the same.
    asm volatile(""
                 : "+x"(a0), "+x"(a1), "+x"(a2), "+x"(a3), "+x"(a4), "+x"(a5), "+x"(a6), "+x"(a7), "+x"(a8), "+x"(a9),
                   "+x"(a10), "+x"(a11));
  }
  Floats all = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;
  asm volatile("" : : "x"(all));
  return static_cast<double>(rounds) * 12 * 2 * static_cast<double>(kWidth);
}

}  // namespace LEVEL_SPACE

#define STRING_(x) #x
#define STRING(x) STRING_(x)
const Kernels& LEVEL() {
  static const Kernels kernels = {STRING(LEVEL),
                                  LEVEL_SPACE::map<LEVEL_SPACE::Add>,
                                  LEVEL_SPACE::map<LEVEL_SPACE::Mul>,
                                  LEVEL_SPACE::map<LEVEL_SPACE::Relu>,
                                  LEVEL_SPACE::map<LEVEL_SPACE::Exp>,
                                  LEVEL_SPACE::map<LEVEL_SPACE::Chain10>,
                                  LEVEL_SPACE::map<LEVEL_SPACE::Copy>,
                                  LEVEL_SPACE::adam,
                                  LEVEL_SPACE::sum,
                                  LEVEL_SPACE::fma_loop};
  return kernels;
}

}  // namespace limits
