// ops/ctc.h - connectionist temporal classification (Graves et al. 2006), as functions of tensors.
#pragma once
#include "ops/op.h"

namespace kassette {

/// -log of the probability of each label, (samples, 1). labels: int64 (samples, length); y, float32 or float64: (samples, steps, classes),
/// blank last, normalised after epsilon is added; both lengths int64 (samples, 1). Differentiable by y, twice.
Tensor ctc_batch_cost(const Tensor& labels, const Tensor& y, const Tensor& input_length, const Tensor& label_length, double epsilon);

/// labels (samples, length) as a sparse tensor of the first `lengths`, int64 (samples,), of each sample.
Tensor ctc_label_dense_to_sparse(const Tensor& labels, const Tensor& lengths);

extern const OpDef ctc_batch_cost_row, ctc_batch_cost_grad_row, ctc_batch_cost_grad_grad_row, ctc_label_mask_row;

}  // namespace kassette
