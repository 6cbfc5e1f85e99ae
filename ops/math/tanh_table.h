// ops/math/tanh_table.h - tanh of floats by sixteen polynomials; part of simd_math.h, compiled once per CPU
// level.
#pragma once
#include "devices/cpu/simd_fma.h"
#include "ops/math/math.h"

#ifdef KASSETTE_HAS_FMA

namespace kassette::ops {
namespace m {
inline namespace KASSETTE_LEVEL {

/// The range of |x| in pieces: two per octave from 2^-4 on; the first one starts at 0, the last one ends at kFlat,
/// where this tanh becomes 1. A piece has a number c for which tanh(c) is within 0.001 ULP of a float (found by
/// search), that tanh, and the coefficients of a polynomial in x - c, which is exact. They are minimax in ULPs of the
/// result (reweighted least squares), rounded one after the other, each time fitting the others again. The largest
/// error over all floats is 1.22 ULP.
struct TanhPieces {
  static constexpr float kFlat = 0x1.1cd4a8p+3f, kFirst = 0.046875f;  // kFirst: a number in the piece before 2^-4
  // Column: the exponent and the first bit of the mantissa, modulo 16. Row 0: c; row 1: tanh(c); then the other
  // coefficients.
  alignas(64) static constexpr float kRow[8][16] = {
      {0x1.3ff6bcp+1f, 0x1.c01338p+1f, 0x1.3ffc3cp+2f, 0x1.bfe31ep+2f, 0x1.10712ap+3f, 0, 0x1.3ff3f2p-4f,
       0x1.bfe512p-4f, 0x1.4018fcp-3f, 0x1.bffda6p-3f, 0x1.400624p-2f, 0x1.c0023cp-2f, 0x1.400dfap-1f, 0x1.c0129cp-1f,
       0x1.3fed1ep+0f, 0x1.bff09ap+0f},
      {0x1.f92486p-1f, 0x1.ff1174p-1f, 0x1.fff418p-1f, 0x1.ffffc8p-1f, 0x1.fffffep-1f, 0, 0x1.3f4dc2p-4f,
       0x1.be1e3cp-4f, 0x1.3d842ap-3f, 0x1.b8fac6p-3f, 0x1.35ff1ep-2f, 0x1.a5747ap-2f, 0x1.1bfe2cp-1f, 0x1.686fb4p-1f,
       0x1.b247a4p-1f, 0x1.e1f878p-1f},
      {0x1.b3ee86p-6f, 0x1.dcab24p-9f, 0x1.7d83d6p-13f, 0x1.c0a1c4p-19f, 0x1.560a78p-23f, 0x1p+0f, 0x1.fce37ap-1f,
       0x1.f9ed26p-1f, 0x1.f3b17cp-1f, 0x1.e84308p-1f, 0x1.d113c4p-1f, 0x1.a944f6p-1f, 0x1.627a08p-1f, 0x1.0242d2p-1f,
       0x1.1f48fcp-2f, 0x1.d26162p-4f},
      {-0x1.ae169cp-6f, -0x1.dbcc54p-9f, -0x1.7d5992p-13f, -0x1.c0753cp-19f, -0x1.a94c22p-20f, 0, -0x1.3d5d18p-4f,
       -0x1.b8d36cp-4f, -0x1.35e26p-3f, -0x1.a488c2p-3f, -0x1.19962cp-2f, -0x1.5e0ff4p-2f, -0x1.893cd8p-2f,
       -0x1.6b9ea8p-2f, -0x1.e75a36p-3f, -0x1.b706cep-4f},
      {0x1.16f75ap-6f, 0x1.3bbf38p-9f, 0x1.f2ed38p-14f, 0x1.2561a6p-19f, 0x1.3547d8p-23f, -0x1.555556p-2f,
       -0x1.4cf4bp-2f, -0x1.45a494p-2f, -0x1.352f3ap-2f, -0x1.1839d8p-2f, -0x1.c1968cp-3f, -0x1.16db74p-3f,
       -0x1.235828p-6f, 0x1.4f3bd8p-4f, 0x1.bbc32ep-4f, 0x1.01d822p-4f},
      {-0x1.07f96cp-7f, -0x1.398082p-10f, -0x1.f3e54cp-15f, -0x1.263156p-20f, 0x1.e11b22p-17f, 0, 0x1.aa2b52p-5f,
       0x1.20060ap-4f, 0x1.8e00bcp-4f, 0x1.04e9fep-3f, 0x1.43e308p-3f, 0x1.5c29bcp-3f, 0x1.1a56c8p-3f, 0x1.f1ad4ap-5f,
       -0x1.9b63ccp-7f, -0x1.817decp-6f},
      {0x1.7a8a16p-9f, 0x1.00bf8ap-11f, 0x1.dd2624p-16f, 0x1.192a92p-21f, -0x1.a7d85ap-23f, 0x1.11155p-3f,
       -0x1.f37a2ep-3f, 0x1.4725bep+0f, 0x1.57c60ep-3f, 0x1.45ab1ep-4f, 0x1.60dcbep-5f, -0x1.e253bcp-8f,
       -0x1.bbcf56p-5f, -0x1.e174dcp-5f, -0x1.430046p-6f, 0x1.c82a26p-9f},
      {-0x1.6d05bap-11f, -0x1.4a97b2p-13f, -0x1.3ab78ap-17f, -0x1.729f38p-23f, -0x1.32c5cep-15f, 0, -0x1.54dfa2p+1f,
       -0x1.09c784p-5f, 0x1.caa306p-5f, -0x1.4e0dd2p-4f, -0x1.407688p-4f, -0x1.002a2cp-4f, -0x1.834b3cp-6f,
       0x1.ab925ap-7f, 0x1.edced6p-7f, 0x1.12df56p-9f}};
};

#if defined(__AVX512F__)
inline __attribute__((always_inline)) __m512 tanh_pieces(__m512 x) {
  const __m512 sign = _mm512_set1_ps(-0.f);
  const __m512 size = _mm512_min_ps(_mm512_set1_ps(TanhPieces::kFlat), _mm512_andnot_ps(sign, x));  // NaN stays
  const __m512i piece =
      _mm512_srli_epi32(_mm512_castps_si512(_mm512_max_ps(size, _mm512_set1_ps(TanhPieces::kFirst))), 22);
  auto row = [&](int k) __attribute__((always_inline)) {
    return _mm512_permutexvar_ps(piece, _mm512_load_ps(TanhPieces::kRow[k]));
  };
  const __m512 d = _mm512_sub_ps(size, row(0));
  __m512 y = row(7);
  for (int k = 6; k >= 1; --k) y = _mm512_fmadd_ps(y, d, row(k));
  return _mm512_or_ps(y, _mm512_and_ps(x, sign));
}
#elif defined(__aarch64__)
inline __attribute__((always_inline)) float32x4_t tanh_pieces(float32x4_t x) {
  const float32x4_t size = vminq_f32(vdupq_n_f32(TanhPieces::kFlat), vabsq_f32(x));  // NaN stays
  const uint32x4_t at = vreinterpretq_u32_f32(vmaxq_f32(size, vdupq_n_f32(TanhPieces::kFirst)));
  const uint32x4_t piece = vandq_u32(vshrq_n_u32(at, 22), vdupq_n_u32(15));
  // The four bytes of a row's element: a row is a table of 64 bytes.
  const uint8x16_t bytes = vreinterpretq_u8_u32(vmlaq_u32(vdupq_n_u32(0x03020100), piece, vdupq_n_u32(0x04040404)));
  auto row = [&](int k) __attribute__((always_inline)) {
    const auto* p = reinterpret_cast<const std::uint8_t*>(TanhPieces::kRow[k]);
    const uint8x16x4_t table{{vld1q_u8(p), vld1q_u8(p + 16), vld1q_u8(p + 32), vld1q_u8(p + 48)}};
    return vreinterpretq_f32_u8(vqtbl4q_u8(table, bytes));
  };
  const float32x4_t d = vsubq_f32(size, row(0));
  float32x4_t y = row(7);
  for (int k = 6; k >= 1; --k) y = vfmaq_f32(row(k), y, d);
  return vbslq_f32(vdupq_n_u32(0x80000000), x, y);
}
#else
inline __attribute__((always_inline)) __m256 tanh_pieces(__m256 x) {
  const __m256 sign = _mm256_set1_ps(-0.f);
  const __m256 size = _mm256_min_ps(_mm256_set1_ps(TanhPieces::kFlat), _mm256_andnot_ps(sign, x));  // NaN stays
  const __m256i at = _mm256_castps_si256(_mm256_max_ps(size, _mm256_set1_ps(TanhPieces::kFirst)));
  const __m256i piece = _mm256_srli_epi32(at, 22);
  const __m256 second = _mm256_castsi256_ps(_mm256_slli_epi32(at, 6));  // its sign: the second half of a row
  auto row = [&](int k) __attribute__((always_inline)) {
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(_mm256_load_ps(TanhPieces::kRow[k]), piece),
                            _mm256_permutevar8x32_ps(_mm256_load_ps(TanhPieces::kRow[k] + 8), piece), second);
  };
  const __m256 d = _mm256_sub_ps(size, row(0));
  __m256 y = row(7);
  for (int k = 6; k >= 1; --k) y = _mm256_fmadd_ps(y, d, row(k));
  return _mm256_or_ps(y, _mm256_and_ps(x, sign));
}
#endif

}  // namespace KASSETTE_LEVEL
}  // namespace m
}  // namespace kassette::ops
#endif
