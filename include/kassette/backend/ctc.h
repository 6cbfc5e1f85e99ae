// include/kassette/backend/ctc.h - connectionist temporal classification.
#ifndef KASSETTE_BACKEND_CTC_H
#define KASSETTE_BACKEND_CTC_H
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

/// The CTC loss of each sample, (samples, 1): -log of the probability of its label, summed over all alignments. y_true
/// is (samples, labels). y_pred is (samples, time steps, classes): floats as softmax returns them, which are normalised
/// again after epsilon is added; the last class is the blank. input_length and label_length are (samples, 1); elements
/// beyond them are ignored, and fractions are cut off. A label_length above the width of y_true counts as that. A class
/// of y_true that is not below the blank ends the label. The loss is inf if no alignment fits into the time steps. It
/// can be differentiated twice with respect to y_pred. float16 and bfloat16 give float32. Throws ValueError if a length
/// is negative, input_length above the time steps or label_length above input_length, if a class of y_true is negative,
/// and if a class below the blank follows one that ends the label.
KASSETTE_API Tensor ctc_batch_cost(const Operand& y_true, const Operand& y_pred, const Operand& input_length,
                                   const Operand& label_length);
/// The labels (samples, length) as a sparse tensor with the first label_lengths[i] of each sample i; label_lengths is
/// (samples,).
KASSETTE_API Tensor ctc_label_dense_to_sparse(const Operand& labels, const Operand& label_lengths);

/// The result of ctc_decode: `auto [decoded, log_prob] = ...`.
struct KASSETTE_API CtcDecoded {
  Tensors decoded;
  Tensor log_prob;
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, const CtcDecoded& result);
};
/// The labels that are read from y_pred (samples, time steps, classes), whose last class is the blank; the first
/// input_length (samples,) steps count. Greedy: one tensor with the most likely class of each step, where repeats are
/// merged and then blanks dropped; log_prob (samples, 1) is minus the sum of the logarithms of those classes' scores.
/// Otherwise: the top_paths best labels that a search over beam_width prefixes finds, one tensor each; log_prob
/// (samples, top_paths) has the logarithms of their probabilities, and merge_repeated merges equal neighbours in the
/// labels found. Tensors are int64 (samples, longest), filled with -1 after shorter labels. No gradient. Throws
/// ValueError if input_length is not 0 to the time steps, and if top_paths is more than beam_width or than there are
/// labels.
KASSETTE_API CtcDecoded ctc_decode(const Operand& y_pred, const Operand& input_length, bool greedy = true,
                                   int beam_width = 100, int top_paths = 1, bool merge_repeated = false);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_CTC_H
