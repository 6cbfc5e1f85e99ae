// include/kassette/backend/shaping.h - ops on shapes. Axes may be negative.
#ifndef KASSETTE_BACKEND_SHAPING_H
#define KASSETTE_BACKEND_SHAPING_H
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

/// Tensors of equal dtype and rank joined along an axis; the other sizes must be equal. If all are sparse, so is the
/// result; if some are dense, the sparse ones are densified. Throws ValueError or TypeError if they do not fit
/// together.
KASSETTE_API Tensor concatenate(const Tensors& tensors, int axis = -1);
/// n tensors of one shape joined along a new axis of size n.
KASSETTE_API Tensor stack(const Tensors& x, int axis = 0);
/// The elements in row-major order with another shape; one size may be -1 and is inferred. Throws ValueError if the
/// numbers of elements differ. Shares memory.
KASSETTE_API Tensor reshape(const Operand& x, const Dims& shape);
/// Output axis i is input axis pattern[i]. Throws ValueError unless pattern is a permutation of all axes.
KASSETTE_API Tensor permute_dimensions(const Operand& x, const Axes& pattern);
/// All axes in reverse order; for a sparse tensor, the result is sparse.
KASSETTE_API Tensor transpose(const Operand& x);
/// Each element along an axis `rep` times in a row: [a, b] gives [a, a, b, b]. rep must be at least 1.
KASSETTE_API Tensor repeat_elements(const Operand& x, int rep, int axis);
/// (s, d) to (s, n, d). Throws AssertionError unless x has rank 2.
KASSETTE_API Tensor repeat(const Operand& x, int n);
/// x repeated along each axis as often as n says: [a, b] gives [a, b, a, b]. If n is shorter than the rank, leading
/// axes are unchanged; if it is longer, NotImplementedError is thrown.
KASSETTE_API Tensor tile(const Operand& x, const Dims& n);
/// All elements along one axis. Shares memory.
KASSETTE_API Tensor flatten(const Operand& x);
/// (N, ...) to (N, product of the rest). Shares memory.
KASSETTE_API Tensor batch_flatten(const Operand& x);
/// A new axis of size 1 at `axis`. Shares memory.
KASSETTE_API Tensor expand_dims(const Operand& x, int axis = -1);
/// x without an axis, which must have size 1. Shares memory.
KASSETTE_API Tensor squeeze(const Operand& x, int axis);
/// The elements backwards along the axes listed.
KASSETTE_API Tensor reverse(const Operand& x, const Axes& axes);
/// size[i] elements of each axis i, from start[i] on; a size of -1 means all up to the end. Throws ValueError if this
/// goes beyond the end.
KASSETTE_API Tensor slice(const Operand& x, const Dims& start, const Dims& size);
/// float32 zeros with a one at each of the integer indices, along a new last axis; an index out of range gives only
/// zeros.
KASSETTE_API Tensor one_hot(const Operand& indices, int num_classes);
/// The rows of `reference` selected by int32 or int64 indices of any shape. Throws ValueError for an index out of
/// range.
KASSETTE_API Tensor gather(const Operand& reference, const Operand& indices);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_SHAPING_H
