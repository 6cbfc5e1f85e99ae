// ops/fft/fft_plan.h - what the transform of a length needs, made once: how it is divided into passes, and roots of
// unity.
#pragma once
#include <atomic>
#include <cstdint>
#include <vector>

#include "core/ref.h"

namespace kassette::ops {

/// e^(-2 pi i k / n) for 0 <= k < n, from sine and cosine in the first eighth of the circle: roots that mirror each
/// other do so to the bit.
struct Root {
  double re, im;
};
Root root_of_unity(std::int64_t k, std::int64_t n);

/// How a transform is computed.
enum class FftWay : std::uint8_t {
  passes,  // Stockham's algorithm, in lanes: a vector holds an element of several rows
  chirp,   // Bluestein's: a convolution of length m, for lengths with large prime factors
  steps    // of one long row as a matrix: its columns, then its rows, both in lanes
};

inline constexpr int kLargestRadix = 31;
/// Vectors have at most that many lanes.
inline constexpr std::int64_t kMostLanes = 16;

/// A plan never changes. T: float or double.
template <class T>
struct FftPlan {
  mutable std::atomic<std::int32_t> count{1};
  [[gnu::noinline]] static void destroy(const FftPlan* p) noexcept { delete p; }
  FftWay way = FftWay::passes;
  std::int64_t n = 1;
  /// The vectors that a transform in lanes needs, for each part of two arrays.
  std::int64_t work = 1;

  // passes: their radices, and for each pass the roots that it multiplies by, in the order in which it does
  std::vector<int> radices;
  std::vector<T> twiddles;

  // chirp: the plan of the convolution, e^(-pi i k^2 / n), and the transform of its conjugate divided by m
  Ref<const FftPlan> convolution;
  std::vector<T> chirp, spectrum;

  // steps: n = rows * columns
  std::int64_t rows = 0, columns = 0;
  Ref<const FftPlan> of_rows, of_columns;  // of transforms along them: of lengths `columns` and `rows`
  // e^(-2 pi i k l / n) for l < kMostLanes of each row k, and e^(-2 pi i k / n) for k < fine and multiples of `fine`.
  std::vector<T> lane_roots;
  std::int64_t fine = 1;
  std::vector<Root> fine_roots, coarse_roots;
  __attribute__((always_inline)) Root root(std::int64_t k) const {
    const Root a = coarse_roots[static_cast<std::size_t>(k / fine)], b = fine_roots[static_cast<std::size_t>(k % fine)];
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
};

/// The plan for n numbers in each of several rows (`in_lanes`), or in one that may be long.
template <class T>
Ref<const FftPlan<T>> plan_of(std::int64_t n, bool in_lanes);

/// e^(-2 pi i k / n) for k <= n / 4, for the real transforms of an even n.
template <class T>
struct FftRoots {
  mutable std::atomic<std::int32_t> count{1};
  [[gnu::noinline]] static void destroy(const FftRoots* p) noexcept { delete p; }
  std::vector<T> at;
};
template <class T>
Ref<const FftRoots<T>> roots_of(std::int64_t n);

/// For tests: how many bytes the plans that are kept for later have.
std::int64_t kept_plan_bytes();

}  // namespace kassette::ops
