// include/kassette/numpy/products.h - NumPy's products of matrices, vectors and tensors.
#ifndef KASSETTE_NUMPY_PRODUCTS_H
#define KASSETTE_NUMPY_PRODUCTS_H
#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace numpy {

// The operands are promoted; integers wrap around. Sums of products are made by matrix products where they can be. The
// functions throw ValueError if sizes do not fit, TypeError for bool, and need to know the ranks.

/// The product of matrices: of the last two axes; leading axes are batches and broadcast. A vector as x is a row, as y
/// a column, without its axis in the result.
KASSETTE_API Tensor matmul(const Operand& x, const Operand& y);
/// The sum over the last axis of x and the last but one of y, or their product if one is a number.
KASSETTE_API Tensor dot(const Operand& x, const Operand& y);
/// The sum of x * y over all elements, both flattened, and over one axis.
KASSETTE_API Tensor vdot(const Operand& x, const Operand& y);
KASSETTE_API Tensor vecdot(const Operand& x, const Operand& y, int axis = -1);
/// The sum over the last axis of both, or their product if one is a number.
KASSETTE_API Tensor inner(const Operand& x, const Operand& y);
/// Each element of x times each of y, both flattened: (n, m).
KASSETTE_API Tensor outer(const Operand& x, const Operand& y);
/// The sum over the last `axes` axes of x and the first ones of y, or over the axes that are listed.
KASSETTE_API Tensor tensordot(const Operand& x, const Operand& y, int axes = 2);
KASSETTE_API Tensor tensordot(const Operand& x, const Operand& y, const Axes& x_axes, const Axes& y_axes);
/// The sum of products that the labels of the axes say: `np::einsum("bij,bjk->bik", {x, y})`. Labels that are not
/// behind the arrow are summed over; without an arrow these are the ones that occur twice. "..." stands for axes that
/// broadcast. Several operands are multiplied two by two, in the cheapest order.
KASSETTE_API Tensor einsum(Name subscripts, const Tensors& operands);
/// Each element of x times all of y: blocks of y, scaled.
KASSETTE_API Tensor kron(const Operand& x, const Operand& y);
/// The vector product of vectors of three elements along an axis.
KASSETTE_API Tensor cross(const Operand& x, const Operand& y, int axis = -1);
/// The distance of each row of x (..., m, width) to each row of y (..., n, width), whose leading axes are the same:
/// (..., m, n). p is the norm: 2 that of Euclid, 1 the sum of the absolute differences, inf the largest one, any other
/// Minkowski's. It is computed from differences; for another p than 2 all of them are in memory at once. Where rows are
/// equal the gradient is 0. (SciPy's and PyTorch's function.)
KASSETTE_API Tensor cdist(const Operand& x, const Operand& y, double p = 2);
/// The sum along a diagonal of two axes, `offset` above the main one.
KASSETTE_API Tensor trace(const Operand& x, int offset = 0, int axis1 = 0, int axis2 = 1);

}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_NUMPY_PRODUCTS_H
