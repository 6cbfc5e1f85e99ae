// nn_backend/inspect/summary_simd.cpp - the loops of summaries and histograms; compiled once per CPU level. Eight
// doubles at a time on each level, in as many vectors as that takes, so that sums have the same order on all levels.
#include "ops/elementwise/simd.h"

#include "nn_backend/inspect/summary_loops.h"

namespace kassette::inspect {
using namespace ops;
namespace {

using V = xsimd::batch<double>;
constexpr int kLanes = 8, kWidth = static_cast<int>(V::size), kVectors = kLanes / kWidth;

/// Eight doubles.
struct Numbers {
  V part[kVectors];
  explicit Numbers(double v = 0) {
    for (V& p : part) p = V(v);
  }
  void copy_to(double (&to)[kLanes]) const {
    for (int k = 0; k < kVectors; ++k) part[k].store_unaligned(to + k * kWidth);
  }
};

/// A vector of numbers from memory.
KASSETTE_FN V read(const double* p) { return V::load_unaligned(p); }
KASSETTE_FN V read(const float* p) {
#if defined(__AVX512F__)
  return _mm512_cvtps_pd(_mm256_loadu_ps(p));
#elif defined(__AVX__)
  return _mm256_cvtps_pd(_mm_loadu_ps(p));
#elif defined(__SSE2__)
  return _mm_cvtps_pd(_mm_castsi128_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
#elif defined(__aarch64__)
  return vcvt_f64_f32(vld1_f32(p));
#else
  double wide[kWidth];
  for (int j = 0; j < kWidth; ++j) wide[j] = static_cast<double>(p[j]);
  return V::load_unaligned(wide);
#endif
}
/// A vector of small numbers, truncated to integers.
KASSETTE_FN void store(std::int32_t* to, const V& v) {
#if defined(__AVX512F__)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvttpd_epi32(v));
#elif defined(__AVX__)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvttpd_epi32(v));
#elif defined(__SSE2__)
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_cvttpd_epi32(v));
#elif defined(__aarch64__)
  vst1_s32(to, vmovn_s64(vcvtq_s64_f64(v)));
#else
  double wide[kWidth];
  v.store_unaligned(wide);
  for (int j = 0; j < kWidth; ++j) to[j] = static_cast<std::int32_t>(wide[j]);
#endif
}
KASSETTE_FN auto is_finite(const V& v) { return v - v == V(0.0); }

/// Calls f(k, values, i) for each vector of elements, eight elements at a time: elements i to i + kWidth are vector k
/// of these. The last eight are padded with `fill`, and their i is negative: -8 for the first of them.
template <class T, class F>
KASSETTE_FN void each(const T* p, std::int64_t n, T fill, F f) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) f(k, read(p + i + k * kWidth), i + k * kWidth);
  }
  if (i == n) return;
  T rest[kLanes];
  for (int j = 0; j < kLanes; ++j) rest[j] = i + j < n ? p[i + j] : fill;
#pragma GCC unroll 4
  for (int k = 0; k < kVectors; ++k) f(k, read(rest + k * kWidth), std::int64_t(k * kWidth - kLanes));
}

template <class T>
void statistics(const T* p, std::int64_t n, double from, Statistics* out) {
  const double infinity = __builtin_inf();
  const V none(0.0), one(1.0), most(infinity), least(-infinity), start(from);
  Numbers finite, nan, zeros, sum, low(infinity), high(-infinity);  // counts are exact in doubles
  each<T>(
      p, n, static_cast<T>(infinity), [&](int k, const V& v, std::int64_t) __attribute__((always_inline)) {
        const auto counts = is_finite(v);
        finite.part[k] += m::select(counts, one, none);
        nan.part[k] += m::select(m::is_nan(v), one, none);
        zeros.part[k] += m::select(v == none, one, none);
        sum.part[k] += m::select(counts, v - start, none);
        const V below = m::select(counts, v, most), above = m::select(counts, v, least);
        low.part[k] = xsimd::min(below, low.part[k]);
        high.part[k] = xsimd::max(above, high.part[k]);
      });
  double finites[kLanes], nans[kLanes], zero[kLanes], lows[kLanes], highs[kLanes], sums[kLanes];
  finite.copy_to(finites);
  nan.copy_to(nans);
  zeros.copy_to(zero);
  low.copy_to(lows);
  high.copy_to(highs);
  sum.copy_to(sums);
  *out = {0, 0, 0, infinity, -infinity, 0};
  for (int j = 0; j < kLanes; ++j) {
    out->finite += static_cast<std::int64_t>(finites[j]);
    out->nan += static_cast<std::int64_t>(nans[j]);
    out->zeros += static_cast<std::int64_t>(zero[j]);
    out->min = lows[j] < out->min ? lows[j] : out->min;
    out->max = highs[j] > out->max ? highs[j] : out->max;
    out->sum += sums[j];
  }
}

template <class T>
double squares(const T* p, std::int64_t n, double mean) {
  const V none(0.0), center(mean);
  Numbers sum;
  each<T>(
      p, n, static_cast<T>(__builtin_inf()), [&](int k, const V& v, std::int64_t) __attribute__((always_inline)) {
        const V d = v - center;
        sum.part[k] += m::select(is_finite(v), d * d, none);
      });
  double sums[kLanes], total = 0;
  sum.copy_to(sums);
  for (double s : sums) total += s;
  return total;
}

template <class T>
void bins(const T* p, std::int64_t n, const BinRule& rule, std::int32_t* bin) {
  const V none(0.0), unit(rule.unit), start(rule.start), scale(rule.scale), bias(rule.bias), last(rule.n - 1.0),
      outside(1.0 * rule.n);
  std::int32_t rest[kLanes];
  each<T>(
      p, n, T(0), [&](int, const V& v, std::int64_t i) __attribute__((always_inline)) {
        V at = (v * unit - start) * scale + bias;
        at = m::select(at > none, at, none);  // NaN (0 times an infinite scale) is not: the first bin
        at = xsimd::min(at, last);
        store(i >= 0 ? bin + i : rest + kLanes + i, m::select(is_finite(v), at, outside));
      });
  for (std::int64_t i = n / kLanes * kLanes; i < n; ++i) bin[i] = rest[i % kLanes];
}

template <class T>
constexpr SummaryLoops<T> loops{statistics<T>, squares<T>, bins<T>};

}  // namespace

constinit const SummaryTable KASSETTE_LEVEL_NAME(summary_table) = {loops<float>, loops<double>};

}  // namespace kassette::inspect
