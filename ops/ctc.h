// ops/ctc.h - connectionist temporal classification (Graves et al. 2006), as functions of tensors.
#pragma once
#include "ops/op.h"

namespace kassette {

/// -log of the probability of each label, (samples, 1). labels: int64 (samples, length); y, float32 or float64: (samples, steps, classes),
/// blank last, normalised after epsilon is added; both lengths int64 (samples, 1). Differentiable by y, twice.
Tensor ctc_batch_cost(const Tensor& labels, const Tensor& y, const Tensor& input_length, const Tensor& label_length,
                      double epsilon);

/// labels (samples, length) as a sparse tensor of the first `lengths`, int64 (samples,), of each sample.
Tensor ctc_label_dense_to_sparse(const Tensor& labels, const Tensor& lengths);

/// The likeliest class of each step: labels int64 (samples, longest), -1 behind the shorter, and minus the sum of the logarithms,
/// (samples, 1). y as above, input_length int64 (samples,). No gradient.
Tensors ctc_greedy(const Tensor& y, const Tensor& input_length, double epsilon);
struct BeamOptions {
  std::int64_t width, paths;
  bool merge_repeated;  // in the labels that are found; their scores stay
};
/// The best labels, `paths` tensors, and the logarithms of their probabilities, (samples, paths).
Tensors ctc_beam_search(const Tensor& y, const Tensor& input_length, const BeamOptions& options, double epsilon);

extern const OpDef ctc_greedy_op, ctc_beam_op;
extern const OpDef ctc_batch_cost_op, ctc_batch_cost_grad_op, ctc_batch_cost_grad_grad_op, ctc_label_mask_op;

}  // namespace kassette
