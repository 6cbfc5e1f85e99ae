// include/kassette/numpy/selection.h - NumPy's functions that select elements.
#ifndef KASSETTE_NUMPY_SELECTION_H
#define KASSETTE_NUMPY_SELECTION_H
#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace numpy {

// The dtype of indices is any integer dtype. A negative index counts from the end, one that is out of range throws
// ValueError. Gradients flow to the elements that are selected.

/// x where the condition is true, y elsewhere. All three broadcast; x and y are promoted. A condition that is a number
/// is true unless it is 0.
KASSETTE_API Tensor where(const Operand& condition, const Operand& x, const Operand& y);
/// Where several conditions hold, the choice of the first of them; `otherwise` where none does. All broadcast, and the
/// choices are promoted.
KASSETTE_API Tensor select(const Tensors& conditions, const Tensors& choices, const Operand& otherwise = 0);
/// The elements of the choice with the number that `index` has in the same place, from 0 on; all broadcast, and the
/// choices are promoted. Throws ValueError for a number out of range, also for a negative one.
KASSETTE_API Tensor choose(const Operand& index, const Tensors& choices);
/// Functions of the elements of x for which conditions hold, a vector each; where several hold, of the last of them.
/// One function more is for the elements for which none holds, which are 0 else. The result has the dtype of x.
KASSETTE_API Tensor piecewise(const Operand& x, const Tensors& conditions,
                              std::initializer_list<Callable<Tensor(const Tensor&)>> functions);
/// The parts of x along an axis at indices of any shape, which replaces the axis in the shape; None: the elements of
/// the flattened x.
KASSETTE_API Tensor take(const Operand& x, const Operand& indices, const Axes& axis = None);
/// The elements of x at indices along an axis, with the same other axes, which broadcast; None: of the flattened x.
KASSETTE_API Tensor take_along_axis(const Operand& x, const Operand& indices, const Axes& axis = -1);

// How many elements these functions give depends on values: it is known when the values are, and None for placeholders.

/// The indices of the elements that are not zero, in row-major order: int64 (n,) for each axis. Throws ValueError for a
/// scalar.
KASSETTE_API Tensors nonzero(const Operand& x);
/// The same as one tensor: int64 (n, rank).
KASSETTE_API Tensor argwhere(const Operand& x);
/// The positions in the flattened x of the elements that are not zero: int64 (n,).
KASSETTE_API Tensor flatnonzero(const Operand& x);
/// The parts of x along an axis where the condition, a vector that may be shorter than the axis, is true; None: the
/// elements of the flattened x.
KASSETTE_API Tensor compress(const Operand& condition, const Operand& x, const Axes& axis = None);
/// The elements of the flattened x where the flattened condition is true.
KASSETTE_API Tensor extract(const Operand& condition, const Operand& x);

/// Sums of the rows of x that have the same id, in the order of the ids: (n, ...). n is num_segments, or the largest id
/// and 1. An id that is negative or not below n throws ValueError.
KASSETTE_API Tensor segment_sum(const Operand& x, const Operand& segment_ids, const Scalar& num_segments = None);

/// The elements on and below (tril), or on and above (triu) diagonal k of the last two axes, 0 elsewhere. Diagonals
/// above the main one are those with k > 0.
KASSETTE_API Tensor tril(const Operand& x, std::int64_t k = 0);
KASSETTE_API Tensor triu(const Operand& x, std::int64_t k = 0);
/// A matrix of n rows and m columns (None: n) with ones on and below diagonal k; floatx unless a dtype is given.
KASSETTE_API Tensor tri(std::int64_t n, const Scalar& m = None, std::int64_t k = 0, DType dtype = None);
/// Of a vector, the matrix that has it as diagonal k and is 0 elsewhere; of a matrix, diagonal k.
KASSETTE_API Tensor diag(const Operand& v, std::int64_t k = 0);
/// The matrix that has the flattened v as diagonal k.
KASSETTE_API Tensor diagflat(const Operand& v, std::int64_t k = 0);
/// The elements x[..., i, i + offset, ...] of two axes as a new last axis, in place of the two.
KASSETTE_API Tensor diagonal(const Operand& x, std::int64_t offset = 0, int axis1 = 0, int axis2 = 1);

}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_NUMPY_SELECTION_H
