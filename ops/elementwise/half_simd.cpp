// ops/elementwise/half_simd.cpp - conversion of half types; compiled once per CPU level.
#include "ops/elementwise/half.h"

#if defined(__F16C__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "core/half.h"

namespace kassette::ops {
namespace {

#if defined(__F16C__)
constexpr std::int64_t kWidth = 8;

void from_half(const void* from, float* to, std::int64_t n) {
  auto* in = static_cast<const std::uint16_t*>(from);
  std::int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  for (; i < n; ++i) to[i] = _cvtsh_ss(in[i]);
}
void to_half(const float* from, void* to, std::int64_t n) {
  auto* out = static_cast<std::uint16_t*>(to);
  std::int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < n; ++i) out[i] = _cvtss_sh(from[i], _MM_FROUND_TO_NEAREST_INT);
}
#elif defined(__aarch64__)
void from_half(const void* from, float* to, std::int64_t n) {
  auto* in = static_cast<const __fp16*>(from);
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) vst1q_f32(to + i, vcvt_f32_f16(vld1_f16(in + i)));
  for (; i < n; ++i) to[i] = static_cast<float>(in[i]);
}
void to_half(const float* from, void* to, std::int64_t n) {
  auto* out = static_cast<__fp16*>(to);
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) vst1_f16(out + i, vcvt_f16_f32(vld1q_f32(from + i)));
  for (; i < n; ++i) out[i] = static_cast<__fp16>(from[i]);
}
#else
void from_half(const void* from, float* to, std::int64_t n) {
  auto* in = static_cast<const Half*>(from);
  for (std::int64_t i = 0; i < n; ++i) to[i] = to_float(in[i]);
}
void to_half(const float* from, void* to, std::int64_t n) {
  auto* out = static_cast<Half*>(to);
  for (std::int64_t i = 0; i < n; ++i) out[i] = kassette::to_half(from[i]);
}
#endif

// The compiler vectorises these loops.
void from_bfloat(const void* from, float* to, std::int64_t n) {
  auto* in = static_cast<const BFloat16*>(from);
  for (std::int64_t i = 0; i < n; ++i) to[i] = to_float(in[i]);
}
void to_bfloat(const float* from, void* to, std::int64_t n) {
  auto* out = static_cast<BFloat16*>(to);
  for (std::int64_t i = 0; i < n; ++i) out[i] = to_bfloat16(from[i]);
}

}  // namespace

constinit const HalfTable KASSETTE_LEVEL_NAME(half_table){from_half, to_half, from_bfloat, to_bfloat};

}  // namespace kassette::ops
