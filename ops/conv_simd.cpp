// ops/conv_simd.cpp - the inner loops of convolution; compiled once per CPU level.
#include <algorithm>
#include <array>
#include <utility>

#include "ops/simd.h"

#include "ops/conv_loops.h"

namespace kassette {
namespace {

// Two vectors of columns; as many rows as leave registers for the two and for the number that is multiplied with them.
#if defined(__AVX512F__)
constexpr int kRows = 12;
#else
constexpr int kRows = 6;
#endif
constexpr int kVectors = 2;

#define KASSETTE_UNROLL _Pragma("GCC unroll 16")

/// a + i * step for rows of a tile, from few base addresses: x86 adds one scaled register to one address.
template <class T, int kM>
struct RowsOf {
  static constexpr int kGroups = (kM + 3) / 4;
  const T* at[kGroups];
  std::int64_t step, three;
  KASSETTE_FN RowsOf(const T* a, std::int64_t step_) : step(step_), three(3 * step_) {
    KASSETTE_UNROLL
    for (int g = 0; g < kGroups; ++g) at[g] = a + 4 * g * step;
  }
  KASSETTE_FN T operator()(int i, std::int64_t l) const {
    const T* p = at[i / 4] + l;
    return i % 4 == 0 ? p[0] : i % 4 == 1 ? p[step] : i % 4 == 2 ? p[2 * step] : p[three];
  }
};

/// A tile of results in registers: kM rows of kV vectors.
template <class T, int kM, int kV>
struct Sums {
  using X = Vec<T>;
  using V = typename X::V;
  V sum[kM][kV];
  KASSETTE_FN Sums() {
    KASSETTE_UNROLL
    for (int i = 0; i < kM; ++i) {
      KASSETTE_UNROLL
      for (int j = 0; j < kV; ++j) sum[i][j] = V(T(0));
    }
  }
  /// Row i gains a(i) times the vectors at b.
  template <class A>
  KASSETTE_FN void add(const T* b, A a) {
    V column[kV];
    KASSETTE_UNROLL
    for (int j = 0; j < kV; ++j) column[j] = X::load(b + j * X::kWidth);
    KASSETTE_UNROLL
    for (int i = 0; i < kM; ++i) {
      const V x(a(i));
      KASSETTE_UNROLL
      for (int j = 0; j < kV; ++j) sum[i][j] = xsimd::fma(x, column[j], sum[i][j]);
    }
  }
  /// To rows `step` apart, of which `columns` elements are written; in addition to what is there where `add`.
  KASSETTE_FN void store(T* out, std::int64_t step, std::int64_t columns, bool add) const {
    KASSETTE_UNROLL
    for (int i = 0; i < kM; ++i) {
      KASSETTE_UNROLL
      for (int j = 0; j < kV; ++j) {
        const Part<T> part{columns - j * X::kWidth};
        T* to = out + i * step + j * X::kWidth;
        part.store(to, add ? sum[i][j] + part.load(to) : sum[i][j]);
      }
    }
  }
};

template <class T, int kM, int kV>
void conv_tile(const ConvTile<T>& t) {
  constexpr std::int64_t w = Vec<T>::kWidth;
  Sums<T, kM, kV> sum;
  const T* b = t.b;
  for (std::int64_t r = 0; r < t.runs; ++r) {
    const RowsOf<T, kM> a(t.a + t.offsets[r], t.a_step);
    for (std::int64_t l = 0; l < t.run; ++l, b += kVectors * w) {
      sum.add(b, [&](int i) __attribute__((always_inline)) { return a(i, l); });
    }
  }
  sum.store(t.out, t.out_step, t.columns, t.add);
}

template <class T, int kM, int kV>
void kernel_gradient_tile(const KernelGradientTile<T>& t) {
  Sums<T, kM, kV> sum;
  for (std::int64_t line = 0; line < t.lines; ++line) {
    const T *a = t.a + line * t.a_line, *b = t.b + line * t.b_line;
    for (std::int64_t p = 0; p < t.pixels; ++p, a += t.a_step, b += t.b_step) {
      sum.add(b, [&](int i) __attribute__((always_inline)) { return a[i]; });
    }
  }
  sum.store(t.out, t.out_step, t.columns, /*add=*/true);
}

/// kP pixels by one vector of channels.
template <class T, int kP>
KASSETTE_FN void depthwise_pixels(const DepthwiseLine<T>& t, std::int64_t first, std::int64_t c, const Part<T>& part) {
  using V = typename Vec<T>::V;
  V sum[kP];
  KASSETTE_UNROLL
  for (int i = 0; i < kP; ++i) sum[i] = V(T(0));
  const T* a = t.a + first * t.a_step + c;
  for (std::int64_t tap = 0; tap < t.taps; ++tap) {
    const V weight = part.load(t.b + tap * t.channels + c);
    KASSETTE_UNROLL
    for (int i = 0; i < kP; ++i) sum[i] = xsimd::fma(part.load(a + t.offsets[tap] + i * t.a_step), weight, sum[i]);
  }
  KASSETTE_UNROLL
  for (int i = 0; i < kP; ++i) part.store(t.out + (first + i) * t.out_step + c, sum[i]);
}
template <class T>
void depthwise_line(const DepthwiseLine<T>& t) {
  constexpr std::int64_t w = Vec<T>::kWidth, kP = 4;
  for (std::int64_t p = 0; p < t.pixels;) {
    const bool four = p + kP <= t.pixels;
    for (std::int64_t c = 0; c < t.channels; c += w) {
      const Part<T> part{t.channels - c};
      if (four) depthwise_pixels<T, kP>(t, p, c, part);
      else depthwise_pixels<T, 1>(t, p, c, part);
    }
    p += four ? kP : 1;
  }
}

/// kTaps taps of one vector of channels, over all pixels of a line.
template <class T, int kTaps>
KASSETTE_FN void depthwise_taps(const DepthwiseGradientLine<T>& t, std::int64_t first, std::int64_t c, const Part<T>& part) {
  using V = typename Vec<T>::V;
  V sum[kTaps];
  const T* at[kTaps];
  KASSETTE_UNROLL
  for (int i = 0; i < kTaps; ++i) {
    sum[i] = part.load(t.out + (first + i) * t.channels + c);
    at[i] = t.a + t.offsets[first + i] + c;
  }
  const T* b = t.b + c;
  for (std::int64_t p = 0; p < t.pixels; ++p, b += t.b_step) {
    const V dy = part.load(b);
    KASSETTE_UNROLL
    for (int i = 0; i < kTaps; ++i) sum[i] = xsimd::fma(part.load(at[i] + p * t.a_step), dy, sum[i]);
  }
  KASSETTE_UNROLL
  for (int i = 0; i < kTaps; ++i) part.store(t.out + (first + i) * t.channels + c, sum[i]);
}
template <class T>
void depthwise_gradient_line(const DepthwiseGradientLine<T>& t) {
  constexpr std::int64_t w = Vec<T>::kWidth;
  for (std::int64_t c = 0; c < t.channels; c += w) {
    const Part<T> part{t.channels - c};
    std::int64_t tap = 0;
    for (; tap + 3 <= t.taps; tap += 3) depthwise_taps<T, 3>(t, tap, c, part);
    for (; tap < t.taps; ++tap) depthwise_taps<T, 1>(t, tap, c, part);
  }
}

/// Loops for 1 to kRows rows and for as many vectors as the columns fill.
template <class T, class Tile, template <class, int, int> class Loop, int... i>
constexpr std::array<void (*)(const Tile&), sizeof...(i)> loops_of(std::integer_sequence<int, i...>) {
  return {&Loop<T, i / kVectors + 1, i % kVectors + 1>::run...};
}
template <class T, int kM, int kV>
struct TileLoop {
  static void run(const ConvTile<T>& t) { conv_tile<T, kM, kV>(t); }
};
template <class T, int kM, int kV>
struct GradientLoop {
  static void run(const KernelGradientTile<T>& t) { kernel_gradient_tile<T, kM, kV>(t); }
};
template <class T>
std::size_t loop_index(std::int64_t rows, std::int64_t columns) {
  return static_cast<std::size_t>((rows - 1) * kVectors + (columns - 1) / Vec<T>::kWidth);
}
template <class T>
void run_tile(const ConvTile<T>& t, std::int64_t pixels) {
  static constexpr auto loops = loops_of<T, ConvTile<T>, TileLoop>(std::make_integer_sequence<int, kRows * kVectors>());
  loops[loop_index<T>(pixels, t.columns)](t);
}
template <class T>
void run_kernel_gradient(const KernelGradientTile<T>& t, std::int64_t rows) {
  static constexpr auto loops = loops_of<T, KernelGradientTile<T>, GradientLoop>(std::make_integer_sequence<int, kRows * kVectors>());
  loops[loop_index<T>(rows, t.columns)](t);
}

template <class T>
constexpr ConvLoops<T> all_loops{kRows, static_cast<int>(kVectors* Vec<T>::kWidth), run_tile<T>, run_kernel_gradient<T>, depthwise_line<T>,
                                 depthwise_gradient_line<T>};

}  // namespace

constinit const ConvTable KASSETTE_LEVEL_NAME(conv_table) = {all_loops<float>, all_loops<double>};

}  // namespace kassette
