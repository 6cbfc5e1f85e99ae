// ops/ctc_loops.h - the CTC loss of one sample: what its kernels read, and the loops that each CPU level has.
#pragma once
#include <cstdint>

#include "devices/cpu/level.h"

namespace kassette {

/// One sample. Its states are the label with a blank before, between and behind: state 2 i is blank i, state 2 i + 1 label i.
/// A path starts in one of the first two states, ends in one of the last two, and each step stays, goes to the next state, or
/// skips a blank between two labels that differ. The blank is the last class. At step t class k has the probability
/// q = (y[t, k] + epsilon) / sum over all k of the same.
template <class T>
struct CtcSample {
  const T* y;                   // (steps, classes)
  std::int64_t steps, classes;  // steps > 0
  double epsilon;
  std::int64_t length;         // of the label, without what is ignored
  const std::int64_t* labels;  // each in [0, classes - 1)
  const std::int64_t* first;   // the first step at which a path can be in the state of label i; rises
  const std::int64_t* slot;    // which of `seen` label i is
  const std::int64_t* seen;    // the classes of the label, each once
  std::int64_t n_seen;
  const double* skip;  // 1 where label i may follow label i - 1 without a blank, else 0; ctc_width + 8 of them

  /// By how many steps a path may be late; negative: the steps do not suffice, there is no path.
  std::int64_t slack() const { return steps - 1 - (length > 0 ? first[length - 1] : 0); }
};

/// Labels padded for vectors of up to eight, so that there is one more blank than labels, and zeros behind.
inline std::int64_t ctc_width(std::int64_t length) { return length / 8 * 8 + 8; }
/// float64 numbers of scratch memory that `loss` and `gradient` take.
inline std::int64_t ctc_loss_scratch(std::int64_t length) {
  return 2 * ctc_width(length) + 2 * (2 * ctc_width(length) + 16);
}
inline std::int64_t ctc_gradient_scratch(std::int64_t length, std::int64_t steps) {
  return 2 * ctc_width(length) + (steps + 1) * (2 * ctc_width(length) + 16) + steps;
}

/// Note [CTC in linear space]
/// The recursions run on probabilities in float64, every eighth step scaled by a power of two so that the largest that can
/// still matter is about one: no exponential or logarithm a state. What is exact in log space can be lost here: a state that is
/// 2^-1022 of the largest becomes 0, and may yet be all that the label is reached by. So each walk proves that nothing was
/// lost, or says that it cannot, and the sample is done in log space (ctc_log.h).
/// - loss: at each scaling, all states that a path of the label can be in are above kSmall. What was lost since the last scaling
///   is below 2^-1074 a state and adds to states that are above kSmall.
/// - gradient: the sum over states of alpha * beta at step t is p / (scale of alpha * scale of beta). A state that was lost is
///   below 2^-1022 in either, so of p it is at most 2^-1022 / that sum, which is held above kSmall too.
template <class T>
struct CtcLoops {
  /// -log of the probability of the label; false where the proof fails.
  bool (*loss)(const CtcSample<T>& s, double* scratch, double* loss);
  /// Both the loss and its gradient by y, (steps, classes): 1 / sum(z) - (the sum over paths through k at t of their probability) /
  /// (p z), where z = y + epsilon. false where the proof fails. g may be null.
  bool (*gradient)(const CtcSample<T>& s, double* scratch, double* loss, T* g);
  /// 1 / sum(z): the gradient where there is no path.
  void (*uniform)(const CtcSample<T>& s, T* g);
};
struct CtcTable {
  CtcLoops<float> f32;
  CtcLoops<double> f64;
};
KASSETTE_LEVEL_TABLES(CtcTable, ctc_table)

}  // namespace kassette
