// ops/ctc/ctc.h - connectionist temporal classification, CTC (Graves et al. 2006): the loss and decoding.
#pragma once
#include "ops/engine/op.h"

namespace kassette::ops {

/// Returns -log of the probability of each sample's labels, (samples, 1). labels: int64 (samples, length). y: float32
/// or float64 (samples, steps, classes), the blank last; probabilities are y + epsilon, normalised. Both lengths: int64
/// (samples, 1). Twice differentiable with respect to y.
Tensor ctc_batch_cost(const Tensor& labels, const Tensor& y, const Tensor& input_length, const Tensor& label_length,
                      double epsilon);

/// Returns labels, (samples, length), as a sparse tensor that has the first lengths[i] labels of sample i. lengths:
/// int64 (samples,).
Tensor ctc_label_dense_to_sparse(const Tensor& labels, const Tensor& lengths);

/// Greedy decoding, by the most probable class of each step. Returns the labels, int64 (samples, longest) padded with
/// -1, and minus the sum of the log probabilities, (samples, 1). y as above, input_length int64 (samples,). No
/// gradient.
Tensors ctc_greedy(const Tensor& y, const Tensor& input_length, double epsilon);
/// Options of the beam search: the beam's width, and the number of paths to return.
struct BeamOptions {
  std::int64_t width, paths;
  bool merge_repeated;  // merge repeated labels in the results; the scores do not change
};
/// Beam search. Returns the best labels as `paths` tensors like that of ctc_greedy(), and their log probabilities,
/// (samples, paths).
Tensors ctc_beam_search(const Tensor& y, const Tensor& input_length, const BeamOptions& options, double epsilon);

extern const OpDef ctc_greedy_op, ctc_beam_op;
extern const OpDef ctc_batch_cost_op, ctc_batch_cost_grad_op, ctc_batch_cost_grad_grad_op, ctc_label_mask_op;

}  // namespace kassette::ops
