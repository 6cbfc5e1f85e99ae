// include/kassette/numpy/placement.h - tensors with other values at some indices, as NumPy and keras.ops have them.
#ifndef KASSETTE_NUMPY_PLACEMENT_H
#define KASSETTE_NUMPY_PLACEMENT_H
#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace numpy {

// x stays as it is: each function gives another tensor, of its dtype, as x.at(i, j).set(v) does for indices of any
// kind. A negative index counts from the end, one that is out of range throws ValueError. Of several values for one
// element the last one stays. Gradients flow to x and to the values.

/// x with other values at indices along an axis, which broadcast to the other axes of x; None: of the flattened x. The
/// values broadcast to the indices.
KASSETTE_API Tensor put_along_axis(const Operand& x, const Operand& indices, const Operand& values, const Axes& axis);
/// x with other values at these positions of the flattened x. The values broadcast to the indices.
KASSETTE_API Tensor put(const Operand& x, const Operand& indices, const Operand& values);

/// Zeros of a shape, with values at indices (..., n), each a place in the first n axes; the values have the shape
/// (..., the other axes).
KASSETTE_API Tensor scatter(const Operand& indices, const Operand& values, const Dims& shape);
/// x with values at indices as those of scatter, or with the sum, the product, the larger or the smaller of the element
/// and all its values.
KASSETTE_API Tensor scatter_update(const Operand& x, const Operand& indices, const Operand& updates);
KASSETTE_API Tensor scatter_add(const Operand& x, const Operand& indices, const Operand& updates);
KASSETTE_API Tensor scatter_multiply(const Operand& x, const Operand& indices, const Operand& updates);
KASSETTE_API Tensor scatter_max(const Operand& x, const Operand& indices, const Operand& updates);
KASSETTE_API Tensor scatter_min(const Operand& x, const Operand& indices, const Operand& updates);
/// x with the block `updates`, of its rank, from the place start_indices on, which has an integer for each axis.
/// Throws ValueError if a part of the block would be outside.
KASSETTE_API Tensor slice_update(const Operand& x, const Operand& start_indices, const Operand& updates);

}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_NUMPY_PLACEMENT_H
