// nn_backend/ctc.h - connectionist temporal classification.
#ifndef KASSETTE_BACKEND_CTC_H
#define KASSETTE_BACKEND_CTC_H
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

/// The CTC loss of each sample, (samples, 1): -log of the probability of its label, summed over all alignments. y_true
/// (samples, labels); y_pred (samples, time steps, classes), floats as softmax gives them, which are normalised again
/// after epsilon is added; the blank is the last class. input_length and label_length (samples, 1); what lies beyond
/// them is ignored. A class of y_true from the blank on ends the label. inf where no alignment fits into the time
/// steps. The gradient is by y_pred and can be taken twice. float16 and bfloat16 give float32. Throws ValueError for
/// lengths that do not fit, a negative label, and a label behind one that ends it.
KASSETTE_API Tensor ctc_batch_cost(const Operand& y_true, const Operand& y_pred, const Operand& input_length,
                                   const Operand& label_length);
/// labels (samples, length) as a sparse tensor of the first label_lengths, (samples,), of each sample.
KASSETTE_API Tensor ctc_label_dense_to_sparse(const Operand& labels, const Operand& label_lengths);

/// What ctc_decode gives: `auto [decoded, log_prob] = ...`.
struct KASSETTE_API CtcDecoded {
  Tensors decoded;
  Tensor log_prob;
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, const CtcDecoded& result);
};
/// Labels out of y_pred (samples, time steps, classes), the blank last, of which input_length (samples,) count. Greedy:
/// the likeliest class of each step, repeats merged, then blanks dropped; one tensor, and log_prob (samples, 1), which
/// is minus the sum of the logarithms of those classes' scores. Else the top_paths best labels that a search over
/// beam_width prefixes finds, one tensor each, and log_prob (samples, top_paths), the logarithms of their
/// probabilities; merge_repeated merges equal neighbours in the labels found. Tensors are int64 (samples, longest), -1
/// behind shorter labels. No gradient. Throws ValueError for lengths that do not fit, and where top_paths is more than
/// beam_width or than there are labels.
KASSETTE_API CtcDecoded ctc_decode(const Operand& y_pred, const Operand& input_length, bool greedy = true,
                                   int beam_width = 100, int top_paths = 1, bool merge_repeated = false);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_CTC_H
