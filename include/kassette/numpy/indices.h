// include/kassette/numpy/indices.h - indices as NumPy makes them: of positions, triangles and diagonals.
#ifndef KASSETTE_NUMPY_INDICES_H
#define KASSETTE_NUMPY_INDICES_H
#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace numpy {

// Indices are int64, one tensor for each axis: x(i[0], i[1]) are the elements, x.at(i[0], i[1]) makes others of them.

/// The indices along each axis, in a tensor of that shape, of row-major positions in it. Throws ValueError for a
/// position out of range, also for a negative one.
KASSETTE_API Tensors unravel_index(const Operand& indices, const Dims& shape);
/// The row-major positions in a tensor of that shape of indices along each axis, which broadcast. Throws ValueError for
/// an index out of range, also for a negative one.
KASSETTE_API Tensor ravel_multi_index(const Tensors& multi_index, const Dims& dims);
/// The indices of the elements on and below (tril), or on and above (triu) diagonal k of a matrix of n rows and m
/// columns (None: n).
KASSETTE_API Tensors tril_indices(std::int64_t n, std::int64_t k = 0, const Scalar& m = None);
KASSETTE_API Tensors triu_indices(std::int64_t n, std::int64_t k = 0, const Scalar& m = None);
/// The indices of the diagonal of a tensor with ndim axes of size n.
KASSETTE_API Tensors diag_indices(std::int64_t n, std::int64_t ndim = 2);

}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_NUMPY_INDICES_H
