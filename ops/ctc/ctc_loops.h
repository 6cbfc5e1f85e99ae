// ops/ctc/ctc_loops.h - the CTC loss of one sample: the data that its kernels read, and its loops for each CPU level.
#pragma once
#include <cstdint>

#include "devices/cpu/level.h"

namespace kassette::ops {

/// One sample. Its states are the labels with a blank before, between and after them: state 2 i is blank i, state 2 i +
/// 1 is label i. A path starts in one of the first two states and ends in one of the last two. In each step it stays,
/// goes to the next state, or skips a blank between two labels that differ. The blank is the last class. At step t,
/// class k has the probability q = (y[t, k] + epsilon) / sum over j of (y[t, j] + epsilon).
template <class T>
struct CtcSample {
  const T* y;                   // (steps, classes)
  std::int64_t steps, classes;  // steps > 0
  double epsilon;
  std::int64_t length;         // the number of labels that count
  const std::int64_t* labels;  // each in [0, classes - 1)
  const std::int64_t* first;   // the first step at which a path can be in the state of label i; strictly increasing
  const std::int64_t* slot;    // the index of label i in `seen`
  const std::int64_t* seen;    // the distinct classes among the labels
  std::int64_t n_seen;
  const double* skip;  // 1 if label i may follow label i - 1 without a blank, else 0; ctc_width() + 8 elements

  /// The number of steps by which a path may be delayed. If negative there are too few steps, and no path exists.
  std::int64_t slack() const { return steps - 1 - (length > 0 ? first[length - 1] : 0); }
};

/// The number of labels padded to a multiple of eight, the largest vector, with room for one blank more than there are
/// labels.
inline std::int64_t ctc_width(std::int64_t length) { return length / 8 * 8 + 8; }
/// The scratch memory that CtcLoops::loss and ::gradient need, in float64 elements.
inline std::int64_t ctc_loss_scratch(std::int64_t length) {
  return 2 * ctc_width(length) + 2 * (2 * ctc_width(length) + 16);
}
inline std::int64_t ctc_gradient_scratch(std::int64_t length, std::int64_t steps) {
  return 2 * ctc_width(length) + (steps + 1) * (2 * ctc_width(length) + 16) + steps;
}

// Note [CTC in linear space]
// The recursions run on probabilities in float64. Every eighth step they are scaled by a power of two, so that the
// largest one that still matters is about 1; no state needs an exponential or a logarithm. But probabilities may
// underflow here that log space represents: a state below 2^-1022 of the largest becomes 0, although all paths to the
// label may go through it. So each pass proves that no underflow affected the result, or else returns false, and the
// sample is computed in log space (ctc_log.h).
// - loss: at each scaling, all states that a path of the label can be in must be above kSmall. An underflow since the
//   last scaling lost less than 2^-1074 per state, which would have been added to states above kSmall.
// - gradient: the sum over states of alpha * beta at step t is p / (scale of alpha * scale of beta). A state that
//   underflowed is below 2^-1022 in alpha or beta, so its share of p is at most 2^-1022 / that sum, which must be above
//   kSmall too.

/// The loops for one element type at one CPU level.
template <class T>
struct CtcLoops {
  /// Sets `loss` to -log of the probability of the labels. Returns false if the proof fails.
  bool (*loss)(const CtcSample<T>& s, double* scratch, double* loss);
  /// Sets `loss`, and unless g is null sets g to the gradient with respect to y, (steps, classes): 1 / sum(z) - (the
  /// probability of all paths through class k at step t) / (p z), where z = y + epsilon. Returns false if the proof
  /// fails.
  bool (*gradient)(const CtcSample<T>& s, double* scratch, double* loss, T* g);
  /// Sets g to 1 / sum(z), the gradient if no path exists.
  void (*uniform)(const CtcSample<T>& s, T* g);
};
/// The loops of one CPU level.
struct CtcTable {
  CtcLoops<float> f32;
  CtcLoops<double> f64;
};
KASSETTE_LEVEL_TABLES(CtcTable, ctc_table)

}  // namespace kassette::ops
