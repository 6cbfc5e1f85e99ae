// include/kassette/nn/losses.h - losses as Keras 3 has them, and two of PyTorch's.
#ifndef KASSETTE_NN_LOSSES_H
#define KASSETTE_NN_LOSSES_H
#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace nn {

// y_pred are floats, and y_true, of the same shape, numbers of any dtype, which are cast. The last axis is removed: a
// result is the loss of a row, and np::mean of it that of a batch. Half types are computed in float32. Shapes that
// differ throw ValueError.

/// The mean of (y_true - y_pred)^2.
KASSETTE_API Tensor mean_squared_error(const Operand& y_true, const Operand& y_pred);
/// The mean of |y_true - y_pred|.
KASSETTE_API Tensor mean_absolute_error(const Operand& y_true, const Operand& y_pred);
/// The mean of d^2 / 2 for differences |d| <= delta, of delta |d| - delta^2 / 2 for larger ones.
KASSETTE_API Tensor huber(const Operand& y_true, const Operand& y_pred, double delta = 1.0);
/// The mean of log(cosh(y_pred - y_true)), without overflow.
KASSETTE_API Tensor log_cosh(const Operand& y_true, const Operand& y_pred);
/// The sum of y_true log(y_true / y_pred), both clipped to [K::epsilon(), 1].
KASSETTE_API Tensor kl_divergence(const Operand& y_true, const Operand& y_pred);
/// The mean of y_pred - y_true log(y_pred + K::epsilon()).
KASSETTE_API Tensor poisson(const Operand& y_true, const Operand& y_pred);
/// Minus the cosine of the angle between the vectors along the axis: -1 where they are parallel.
KASSETTE_API Tensor cosine_similarity(const Operand& y_true, const Operand& y_pred, int axis = -1);
/// The mean of max(1 - y_true y_pred, 0), for labels -1 and 1; if all labels are 0 or 1, zeros count as -1.
KASSETTE_API Tensor hinge(const Operand& y_true, const Operand& y_pred);
/// The mean of max(1 - y_true y_pred, 0)^2, for the same labels.
KASSETTE_API Tensor squared_hinge(const Operand& y_true, const Operand& y_pred);
/// max(1 + the largest y_pred of another class - that of the class, 0), for y_true of zeros and ones.
KASSETTE_API Tensor categorical_hinge(const Operand& y_true, const Operand& y_pred);

/// The cross-entropy of two classes elementwise, without removing an axis: K::binary_crossentropy.
KASSETTE_API Tensor binary_crossentropy(const Operand& target, const Operand& output, bool from_logits = false);
/// The cross-entropy of probabilities, or of logits, along the axis: K::categorical_crossentropy.
KASSETTE_API Tensor categorical_crossentropy(const Operand& target, const Operand& output, bool from_logits = false,
                                             int axis = -1);
/// The same against class ids: K::sparse_categorical_crossentropy.
KASSETTE_API Tensor sparse_categorical_crossentropy(const Operand& target, const Operand& output,
                                                    bool from_logits = false, int axis = -1);
/// Minus the log-probability of the class: `target` are integers, shaped like log_probabilities without the axis.
/// Throws ValueError for a class out of range.
KASSETTE_API Tensor nll_loss(const Operand& target, const Operand& log_probabilities, int axis = -1);
/// max(|anchor - positive| - |anchor - negative| + margin, 0) with the p-norm along the last axis, to whose differences
/// 1e-6 is added, as in PyTorch.
KASSETTE_API Tensor triplet_margin_loss(const Operand& anchor, const Operand& positive, const Operand& negative,
                                        double margin = 1.0, double p = 2.0);

}  // namespace nn
}  // namespace kassette

#endif  // KASSETTE_NN_LOSSES_H
