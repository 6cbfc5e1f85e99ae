// nn_backend/losses.h - cross-entropies and in_top_k.
#ifndef KASSETTE_BACKEND_LOSSES_H
#define KASSETTE_BACKEND_LOSSES_H
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

/// The cross-entropy of `output`, scores that are normalised along the axis to probabilities and clipped by epsilon, or
/// logits, against the distribution `target` of the same shape. The axis is removed. Throws ValueError if the shapes
/// differ or the axis is out of range.
KASSETTE_API Tensor categorical_crossentropy(const Operand& target, const Operand& output, bool from_logits = false,
                                             int axis = -1);
/// The same against class ids (floats are cast, NaN is none): `target` has the shape of output without the axis, or as
/// many elements. The result has output's shape without the axis. Throws ValueError for an id out of range.
KASSETTE_API Tensor sparse_categorical_crossentropy(const Operand& target, const Operand& output,
                                                    bool from_logits = false, int axis = -1);
/// -(t log o + (1 - t) log(1 - o)) elementwise, o clipped by epsilon; or the same from logits, stable. One shape, which
/// the result has too; else ValueError.
KASSETTE_API Tensor binary_crossentropy(const Operand& target, const Operand& output, bool from_logits = false);
/// bool (samples,): whether fewer than k of predictions (samples, classes) are larger than that of the target class:
/// ties are in. False where the target is out of range or a prediction of the row is not finite.
KASSETTE_API Tensor in_top_k(const Operand& predictions, const Operand& targets, int k);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_LOSSES_H
