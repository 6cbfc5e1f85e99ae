// ops/ctc/ctc_batch.h - checks of the lengths and labels of a CTC loss, with the same errors on every device.
#pragma once
#include "ops/math/math.h"
#include "ops/engine/op.h"
#include "ops/engine/refusals.h"

namespace kassette::ops {

/// Indices of the inputs of the loss and of its gradients. Only the second derivative has a direction.
inline constexpr int kCtcLabels = 0, kCtcY = 1, kCtcInputLength = 2, kCtcLabelLength = 3, kCtcDirection = 4;
/// The name in error messages, also in those of the gradients: the function that the user called.
inline constexpr const char* kCtcName = "ctc_batch_cost";

/// The attributes of the loss and of its gradients.
struct CtcAttrs {
  static constexpr const char* attrs_name = "ctc";
  double epsilon;  // added to the probabilities
};
/// The number of time steps and labels of a sample; or if the sample is invalid, both are 0, and `refusal` and
/// `numbers` describe the error.
struct CtcCounts {
  std::int64_t steps = 0, labels = 0;
  Refusal refusal = Refusal::none;
  std::int64_t numbers[kRefusalNumbers] = {};
};
/// The sizes that all samples have in common: those of y, and the width of the labels.
struct CtcSizes {
  std::int64_t steps, classes, width;
};

/// Checks sample i and returns its counts. A class id from the blank on ends the labels; only such ids may follow it.
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

}  // namespace kassette::ops
