// include/kassette/backend/sparse.h - sparse tensors.
#ifndef KASSETTE_BACKEND_SPARSE_H
#define KASSETTE_BACKEND_SPARSE_H
#include <kassette/none.h>
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

/// A sparse tensor of any rank: values (n,), their indices, and the shape of the dense tensor that it stands for.
/// `indices` is (n, rank), or a flat container of that many integers. Entries may be in any order; one that is listed
/// twice counts as the sum of its values. The dtype is, unless given, that of the container or tensor of values, and
/// floatx for a list. Values may be variables or placeholders, and gradients flow to them. Throws ValueError if an
/// index is outside of the shape, and if the numbers of indices and values differ.
KASSETTE_API Tensor sparse_coo(const Operand& indices, const Operand& values, const Dims& dense_shape,
                               DType dtype = None);
/// A matrix in compressed rows, as SciPy's csr_matrix holds it: the entries of row r are row_starts[r] to row_starts[r
/// + 1] - 1 of `columns` and `values`. Throws ValueError unless row_starts rise from 0 to the number of entries.
KASSETTE_API Tensor sparse_csr(const Operand& row_starts, const Operand& columns, const Operand& values,
                               const Dims& dense_shape, DType dtype = None);
/// A sparse tensor of the elements of a dense one that are not zero; x itself if it is sparse. Gradients flow to those
/// elements.
KASSETTE_API Tensor to_sparse(const Operand& x);

/// True for a sparse tensor.
KASSETTE_API bool is_sparse(const Operand& tensor);
/// The dense tensor that a sparse one stands for; a dense tensor itself.
KASSETTE_API Tensor to_dense(const Operand& tensor);

/// The parts of a sparse tensor: indices (n, rank) and dense_shape (rank,), int64, and values (n,).
struct KASSETTE_API SparseParts {
  Tensor indices, values, dense_shape;
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, const SparseParts& parts);
};
/// `auto [indices, values, dense_shape] = K::sparse_parts(x);` Throws TypeError for a dense tensor.
KASSETTE_API SparseParts sparse_parts(const Tensor& x);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_SPARSE_H
