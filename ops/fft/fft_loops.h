// ops/fft/fft_loops.h - the work of one transform, as the loops for a CPU level take it.
#pragma once
#include "devices/cpu/level.h"
#include "ops/fft/fft.h"
#include "ops/fft/fft_plan.h"

namespace kassette::ops {

/// Where the numbers of all rows are. Row r begins at r / inner * length * inner + r % inner, and its elements are
/// `inner` apart. A part that is null is zeros, or is not wanted.
template <class T>
struct FftSide {
  T *re = nullptr, *im = nullptr;
  std::int64_t length = 0, inner = 1;
};

/// Transforms of n numbers in each row. Rows are divided into groups of as many as a vector has lanes, none of which
/// holds rows of two spans.
template <class T>
struct FftJob {
  const FftPlan<T>* plan = nullptr;   // of n numbers; of n / 2 where real numbers are taken as complex ones
  const T* roots = nullptr;           // roots_of(n), if so
  const FftPlan<T>* steps = nullptr;  // the first of two steps: results are multiplied by roots
  FftForm form = FftForm::complex;
  bool inverse = false;
  T scale = 1, weight = 1;  // of all results, and of the numbers of the half that have a mirror image
  std::int64_t n = 1, rows = 1, span = 1;
  FftSide<const T> from;
  FftSide<T> to;
  std::int64_t groups(std::int64_t lanes) const { return rows / span * ((span + lanes - 1) / lanes); }
  /// Elements of the memory that a group works in.
  std::int64_t work(std::int64_t lanes) const { return 4 * (plan->work + 1) * lanes; }
};

/// The loops for a long row, of which `re` and `im` are contiguous.
template <class T>
struct ChirpRow {
  const FftPlan<T>* plan;
  const T *re, *im;
  std::int64_t given;  // numbers there, at most n
  T *to_re, *to_im;
};
template <class T>
struct FftLoops {
  std::int64_t lanes;
  void (*groups)(const FftJob<T>& job, std::int64_t begin, std::int64_t end, T* work);
  /// to = from * chirp for k < given, zeros up to m.
  void (*chirp_in)(const ChirpRow<T>& row, std::int64_t begin, std::int64_t end);
  /// to = from * spectrum, elements of the convolution.
  void (*chirp_spectrum)(const ChirpRow<T>& row, std::int64_t begin, std::int64_t end);
  /// to = from * chirp, for k < n.
  void (*chirp_out)(const ChirpRow<T>& row, std::int64_t begin, std::int64_t end);
};
struct FftTable {
  FftLoops<float> f32;
  FftLoops<double> f64;
};
KASSETTE_LEVEL_TABLES(FftTable, fft_table)
template <class T>
const FftLoops<T>& fft_loops() {
  if constexpr (std::is_same_v<T, float>) return KASSETTE_PICK(fft_table).f32;
  else return KASSETTE_PICK(fft_table).f64;
}

}  // namespace kassette::ops
