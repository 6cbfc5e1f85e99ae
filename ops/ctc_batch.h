// ops/ctc_batch.h - lengths and labels of a CTC loss, held to each other in the same words on every device.
#pragma once
#include "ops/math.h"
#include "ops/op.h"
#include "ops/refusals.h"

namespace kassette {

/// Inputs of the loss and of its gradients; the second order has its direction behind them.
inline constexpr int kCtcLabels = 0, kCtcY = 1, kCtcInputLength = 2, kCtcLabelLength = 3, kCtcDirection = 4;
/// Messages of the gradients are of the same arguments, in the name of what the user called.
inline constexpr const char* kCtcName = "ctc_batch_cost";

struct CtcAttrs {
  static constexpr const char* attrs_name = "ctc";
  double epsilon;  // is added to the probabilities
};
/// How many time steps and labels of a sample count, none of them where it is refused; and why that is.
struct CtcCounts {
  std::int64_t steps = 0, labels = 0;
  Refusal refusal = Refusal::none;
  std::int64_t numbers[kRefusalNumbers] = {};
};
/// What all samples have in common: the sizes of y and of the labels.
struct CtcSizes {
  std::int64_t steps, classes, width;
};

/// Sample i. A class from the blank on ends the labels, and none but such may follow.
KASSETTE_FN CtcCounts ctc_counts(const CtcSizes& sizes, std::int64_t i, const std::int64_t* ids,
                                 std::int64_t input_length, std::int64_t label_length) {
  const std::int64_t length = label_length < sizes.width ? label_length : sizes.width, blank = sizes.classes - 1;
  if (input_length < 0 || input_length > sizes.steps)
    return {0, 0, Refusal::ctc_input_length, {input_length, i, sizes.steps}};
  if (length < 0) return {0, 0, Refusal::ctc_label_length, {length, i}};
  if (length > input_length) return {0, 0, Refusal::ctc_too_long, {length, i, input_length}};
  std::int64_t n = 0;
  for (std::int64_t k = 0; k < length; ++k) {
    if (ids[k] < 0) return {0, 0, Refusal::ctc_label, {ids[k], k, i, length}};
    if (ids[k] >= blank) continue;
    if (n < k) return {0, 0, Refusal::ctc_after_end, {ids[k], k, i, ids[n], blank}};
    ++n;
  }
  return {input_length, n, Refusal::none, {}};
}

}  // namespace kassette
