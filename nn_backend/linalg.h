// nn_backend/linalg.h - products of tensors.
#ifndef KASSETTE_BACKEND_LINALG_H
#define KASSETTE_BACKEND_LINALG_H
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

/// (n, k) x (k, m) gives (n, m). Of any rank, the last axis of x with the last but one of y: (a.., k) x (b.., k, m)
/// gives (a.., b.., m); every index of a with every index of b. Rank 1 as in NumPy: (k) x (k) gives (). Integers wrap.
/// Throws ValueError where inner sizes differ or an operand has no axis, TypeError on bool or two dtypes. A sparse
/// matrix times a dense matrix or vector, either way round, is dense; gradients flow to both, to the sparse one's
/// values. What a placeholder of unknown rank gives is decided when the function is called; beside a sparse matrix it
/// is a matrix.
KASSETTE_API Tensor dot(const Operand& x, const Operand& y);

/// For each sample of axis 0, axis axes[0] of x with axes[1] of y; the result has the batch, the rest of x, the rest of
/// y, and is (batch, 1) where nothing is left. One axis stands for both; None is the last of x with the last but one of
/// y (the last, where y has rank 2). Throws ValueError on ranks below 2, other sizes, the batch axis or one out of
/// range; of an unknown rank, when the function is called.
KASSETTE_API Tensor batch_dot(const Operand& x, const Operand& y, const Axes& axes = None);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_LINALG_H
