// ops/convolution/conv_simd.cpp - the inner loops of convolution; compiled once per CPU level.
#include <algorithm>
#include <array>
#include <utility>

#include "ops/elementwise/simd.h"

#include "ops/convolution/conv_loops.h"
#include "ops/elementwise/unary.h"

namespace kassette::ops {
namespace {

#if defined(__AVX512F__) || defined(__aarch64__)  // 32 registers
constexpr int kPixels = 8;                        // of a line of a depthwise convolution at once
// The number of sums in a block of dot products. Each takes a register; the others hold the factors.
constexpr int kDots = 12;
#else
constexpr int kPixels = 4;
constexpr int kDots = 8;
#endif

#define KASSETTE_UNROLL _Pragma("GCC unroll 16")

/// Computes the addresses a + i * step of the rows of a tile from few base pointers, since an x86 address is one base
/// plus one scaled register.
template <class T, int kM>
struct RowsOf {
  static constexpr int kGroups = (kM + 3) / 4;
  const T* at[kGroups];
  std::int64_t step, three;
  KASSETTE_FN RowsOf(const T* a, std::int64_t step_) : step(step_), three(3 * step_) {
    KASSETTE_UNROLL
    for (int g = 0; g < kGroups; ++g) at[g] = a + 4 * g * step;
  }
  KASSETTE_FN const T* operator()(int i, std::int64_t l) const {
    const T* p = at[i / 4] + l;
    return i % 4 == 0 ? p : i % 4 == 1 ? p + step : i % 4 == 2 ? p + 2 * step : p + three;
  }
};

/// The sum of the lanes. Before xsimd 9 reduce_add was called hadd.
template <class V>
KASSETTE_FN auto sum_lanes(const V& v) {
  if constexpr (requires { reduce_add(v); }) return reduce_add(v);
  else return hadd(v);
}

/// kM windows by kN columns, with the values of a window in the lanes. Lanes past the end of a stretch are multiplied
/// by weights that are 0.
template <class T, int kM, int kN>
void dot_block(const devices::GemmBlock<T>& t) {
  using X = Vec<T>;
  using V = typename X::V;
  V sum[kM][kN];
  KASSETTE_UNROLL
  for (int i = 0; i < kM; ++i) {
    KASSETTE_UNROLL
    for (int j = 0; j < kN; ++j) sum[i][j] = V(T(0));
  }
  const T* b = t.b;
  for (std::int64_t r = 0; r < t.runs; ++r) {
    const T* a = t.a + t.a_runs[r];
    auto add = [&](auto load) __attribute__((always_inline)) {
      V column[kN];
      KASSETTE_UNROLL
      for (int j = 0; j < kN; ++j) column[j] = X::load(b + j * X::kWidth);
      KASSETTE_UNROLL
      for (int i = 0; i < kM; ++i) {
        const V x = load(a + i * t.a_step);
        KASSETTE_UNROLL
        for (int j = 0; j < kN; ++j) sum[i][j] = m::fma(x, column[j], sum[i][j]);
      }
      a += X::kWidth;
      b += kN * X::kWidth;
    };
    std::int64_t left = t.run;
    for (; left >= X::kWidth; left -= X::kWidth)
      add([](const T* p) __attribute__((always_inline)) { return X::load(p); });
    if (left > 0) add([&](const T* p) __attribute__((always_inline)) { return X::load_part(p, left); });
  }
  KASSETTE_UNROLL
  for (int i = 0; i < kM; ++i) {
    KASSETTE_UNROLL
    for (int j = 0; j < kN; ++j) {
      T y = sum_lanes(sum[i][j]);
      if (t.finish.bias) y += t.finish.bias[j];
      t.out[i * t.out_step + j] = t.finish.relu ? Relu::value(y) : y;
    }
  }
}

/// kP pixels by one vector of channels.
template <class T, int kP>
KASSETTE_FN void depthwise_pixels(const DepthwiseLine<T>& t, std::int64_t first, std::int64_t c, const Part<T>& part) {
  using V = typename Vec<T>::V;
  V sum[kP];
  KASSETTE_UNROLL
  for (int i = 0; i < kP; ++i) sum[i] = V(T(0));
  const RowsOf<T, kP> a(t.a + first * t.a_step + c, t.a_step);
  for (std::int64_t tap = 0; tap < t.taps; ++tap) {
    const V weight = part.load(t.b + t.weights[tap] + c);
    const std::int64_t at = t.offsets[tap];
    KASSETTE_UNROLL
    for (int i = 0; i < kP; ++i) sum[i] = m::fma(part.load(a(i, at)), weight, sum[i]);
  }
  KASSETTE_UNROLL
  for (int i = 0; i < kP; ++i) part.store(t.out + (first + i) * t.out_step + c, sum[i]);
}
template <class T>
void depthwise_line(const DepthwiseLine<T>& t) {
  constexpr int kP = kPixels;
  auto pixels = [&](auto count, std::int64_t p) __attribute__((always_inline)) {
    each_vector<T>(
        t.channels, [&](std::int64_t c, const Part<T>& part)
                        __attribute__((always_inline)) { depthwise_pixels<T, count>(t, p, c, part); });
  };
  std::int64_t p = 0;
  for (; p + kP <= t.pixels; p += kP) pixels(std::integral_constant<int, kP>(), p);
  if (p == t.pixels) return;
  // The remaining pixels are computed together with some earlier ones, a second time.
  if (p > 0) return pixels(std::integral_constant<int, kP>(), t.pixels - kP);
  for (; p < t.pixels; ++p) pixels(std::integral_constant<int, 1>(), p);
}

/// kTaps taps of one vector of channels, over all pixels of a line.
template <class T, int kTaps>
KASSETTE_FN void depthwise_taps(const DepthwiseGradientLine<T>& t, std::int64_t first, std::int64_t c,
                                const Part<T>& part) {
  using V = typename Vec<T>::V;
  V sum[kTaps];
  const T* at[kTaps];
  KASSETTE_UNROLL
  for (int i = 0; i < kTaps; ++i) {
    sum[i] = part.load(t.out + t.weights[first + i] + c);
    at[i] = t.a + t.offsets[first + i] + c;
  }
  const T* b = t.b + c;
  for (std::int64_t p = 0; p < t.pixels; ++p, b += t.b_step) {
    const V dy = part.load(b);
    KASSETTE_UNROLL
    for (int i = 0; i < kTaps; ++i) sum[i] = m::fma(part.load(at[i] + p * t.a_step), dy, sum[i]);
  }
  KASSETTE_UNROLL
  for (int i = 0; i < kTaps; ++i) part.store(t.out + t.weights[first + i] + c, sum[i]);
}
template <class T>
void depthwise_gradient_line(const DepthwiseGradientLine<T>& t) {
  each_vector<T>(
      t.channels, [&](std::int64_t c, const Part<T>& part) __attribute__((always_inline)) {
        std::int64_t tap = 0;
        for (; tap + 9 <= t.taps; tap += 9) depthwise_taps<T, 9>(t, tap, c, part);
        for (; tap + 3 <= t.taps; tap += 3) depthwise_taps<T, 3>(t, tap, c, part);
        for (; tap < t.taps; ++tap) depthwise_taps<T, 1>(t, tap, c, part);
      });
}

/// The loops of dot products, indexed by the number of columns, then of windows.
template <class T, int kN, int... i>
constexpr std::array<void (*)(const devices::GemmBlock<T>&), kDots> dot_loops_of(std::integer_sequence<int, i...>) {
  return {&dot_block<T, i + 1, kN>...};
}
template <class T, int... n>
constexpr std::array<std::array<void (*)(const devices::GemmBlock<T>&), kDots>, kDotColumns> all_dot_loops(
    std::integer_sequence<int, n...>) {
  return {dot_loops_of<T, n + 1>(std::make_integer_sequence<int, kDots / (n + 1)>())...};
}
template <class T>
void run_dots(const devices::GemmBlock<T>& t, std::int64_t pixels) {
  static constexpr auto loops = all_dot_loops<T>(std::make_integer_sequence<int, kDotColumns>());
  loops[t.columns - 1][pixels - 1](t);
}
template <class T>
constexpr ConvLoops<T> all_loops{kDots, run_dots<T>, depthwise_line<T>, depthwise_gradient_line<T>};

}  // namespace

constinit const ConvTable KASSETTE_LEVEL_NAME(conv_table) = {all_loops<float>, all_loops<double>};

}  // namespace kassette::ops
