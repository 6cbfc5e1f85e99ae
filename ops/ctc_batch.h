// ops/ctc_batch.h - lengths and labels of a CTC loss, checked on the host for every device.
#pragma once
#include <algorithm>
#include <vector>

#include "core/text.h"
#include "ops/op.h"

namespace kassette {

/// Inputs of the loss and of its gradients; the second order has its direction behind them.
inline constexpr int kCtcLabels = 0, kCtcY = 1, kCtcInputLength = 2, kCtcLabelLength = 3, kCtcDirection = 4;
/// Messages of the gradients are of the same arguments, in the name of what the user called.
inline constexpr const char* kCtcName = "ctc_batch_cost";

/// How many time steps and labels of each sample count; throws unless they fit. Messages print no Spec: the device library has no
/// code for that.
struct CtcLengths {
  std::vector<std::int64_t> steps, labels;

  CtcLengths(const Call& call, const std::int64_t* ids, const std::int64_t* input_length, const std::int64_t* label_length) {
    const Spec& y = call.spec(kCtcY);
    const std::int64_t width = call.spec(kCtcLabels).dims[1];
    for (std::int64_t i = 0; i < y.dims[0]; ++i) {
      const std::int64_t available = input_length[i], length = std::min(label_length[i], width);
      if (available < 0 || available > y.dims[1])
        fail<ValueError>(kCtcName, ": input_length ", available, " of sample ", i, "; y_pred has ", y.dims[1], " time steps");
      if (length < 0) fail<ValueError>(kCtcName, ": label_length ", length, " of sample ", i, " is negative");
      if (length > available)
        fail<ValueError>(kCtcName, ": the ", length, " labels of sample ", i, " need as many time steps; its input_length is ", available);
      steps.push_back(available);
      labels.push_back(counted(y, i, ids + i * width, length));
    }
  }

 private:
  /// How many labels of sample i count: a class from the blank on ends them, and none but such may follow.
  static std::int64_t counted(const Spec& y, std::int64_t i, const std::int64_t* ids, std::int64_t length) {
    const std::int64_t blank = y.dims[2] - 1;
    std::int64_t n = 0;
    for (std::int64_t k = 0; k < length; ++k) {
      if (ids[k] < 0) fail<ValueError>(kCtcName, ": label ", ids[k], " at position ", k, " of sample ", i, " is negative, within its label_length of ", length);
      if (ids[k] >= blank) continue;
      if (n < k)
        fail<ValueError>(kCtcName, ": label ", ids[k], " at position ", k, " of sample ", i, " follows ", ids[n], ", which ends the label: y_pred has ", blank,
                         " classes and the blank");
      ++n;
    }
    return n;
  }
};

}  // namespace kassette
