// include/kassette/backend/losses.h - cross-entropies and in_top_k.
#ifndef KASSETTE_BACKEND_LOSSES_H
#define KASSETTE_BACKEND_LOSSES_H
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

/// The cross-entropy of `output`, scores that are normalised along the axis to probabilities and clipped by epsilon, or
/// logits, against the distribution `target` of the same shape. The axis is removed. Where a probability is clipped
/// the gradient is 0, also if it is a result of `softmax`: pass the logits instead. Throws ValueError if the shapes
/// differ or the axis is out of range.
KASSETTE_API Tensor categorical_crossentropy(const Operand& target, const Operand& output, bool from_logits = false,
                                             int axis = -1);
/// The same against class ids (floats are cast; NaN is not an id): `target` has the shape of output without the axis,
/// or the same number of elements. The result has output's shape without the axis. Throws ValueError for an id out of
/// range.
KASSETTE_API Tensor sparse_categorical_crossentropy(const Operand& target, const Operand& output,
                                                    bool from_logits = false, int axis = -1);
/// -(t log o + (1 - t) log(1 - o)) elementwise, with o clipped by epsilon, where its gradient is 0, also if o is a
/// result of `sigmoid`; or the same from logits, computed in a stable way. Throws ValueError unless both have the same
/// shape, which the result has too.
KASSETTE_API Tensor binary_crossentropy(const Operand& target, const Operand& output, bool from_logits = false);
/// bool (samples,): whether fewer than k of the sample's predictions (samples, classes) are larger than that of the
/// target class, so that a target that ties with the k-th is in the top k. False if the target is out of range or a
/// prediction of the row is not finite.
KASSETTE_API Tensor in_top_k(const Operand& predictions, const Operand& targets, int k);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_LOSSES_H
