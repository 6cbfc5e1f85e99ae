// include/kassette/backend/linalg.h - products of tensors.
#ifndef KASSETTE_BACKEND_LINALG_H
#define KASSETTE_BACKEND_LINALG_H
#include <kassette/none.h>
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

/// The product of two tensors: (n, k) x (k, m) gives (n, m). For other ranks, it sums over the last axis of x and the
/// last but one of y: (a.., k) x (b.., k, m) gives (a.., b.., m), for every index of a with every index of b. Rank 1 is
/// as in NumPy: (k) x (k) gives (). Integers wrap around. Throws ValueError if the inner sizes differ or an operand has
/// no axis, TypeError for bool or for two different dtypes. The product of a sparse matrix and a dense matrix or
/// vector, in either order, is dense; gradients flow to both, for the sparse one to its values. For a placeholder of
/// unknown rank the form of the product is decided when the function is called; multiplied with a sparse matrix, it is
/// taken to be a matrix.
KASSETTE_API Tensor dot(const Operand& x, const Operand& y);

/// The product of x and y for each sample of axis 0, summed over axis axes[0] of x and axis axes[1] of y. The result
/// has the batch axis, then the other axes of x, then those of y, and is (batch, 1) if none is left. A single axis is
/// used for both; None means the last axis of x and the last but one of y (the last, if y has rank 2). Throws
/// ValueError if a rank is below 2, if the sizes differ, and if an axis is the batch axis or out of range; for an
/// unknown rank, when the function is called.
KASSETTE_API Tensor batch_dot(const Operand& x, const Operand& y, const Axes& axes = None);

}  // namespace backend

/// The product of matrices, as Python's @ with NumPy and TensorFlow: of the last two axes, whose leading axes are
/// batches and broadcast: (b, n, k) x (b, k, m) and (b, n, k) x (k, m) give (b, n, m). Up to rank 2 of y it is K::dot.
/// Throws as that does, and ValueError if the rank of y is not known, or that of x where y has more than two axes.
KASSETTE_API Tensor matmul(const Operand& x, const Operand& y);

}  // namespace kassette

#endif  // KASSETTE_BACKEND_LINALG_H
