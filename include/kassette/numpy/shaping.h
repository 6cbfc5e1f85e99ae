// include/kassette/numpy/shaping.h - NumPy's functions on shapes: joining, splitting, moving, repeating, padding.
#ifndef KASSETTE_NUMPY_SHAPING_H
#define KASSETTE_NUMPY_SHAPING_H
#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace numpy {

// Axes may be negative. What needs to know a rank or a size throws ValueError for a placeholder of which it is unknown.

/// The elements in row-major order with another shape; one size may be -1 and is inferred. Shares memory.
KASSETTE_API Tensor reshape(const Operand& x, const Dims& shape);
/// All elements along one axis. Shares memory.
KASSETTE_API Tensor ravel(const Operand& x);
/// Output axis i is input axis axes[i]; None reverses their order.
KASSETTE_API Tensor permute_dims(const Operand& x, const Axes& axes = None);
inline Tensor transpose(const Operand& x, const Axes& axes = None) { return permute_dims(x, axes); }
/// The last two axes exchanged.
KASSETTE_API Tensor matrix_transpose(const Operand& x);
/// Two axes exchanged.
KASSETTE_API Tensor swapaxes(const Operand& x, int axis1, int axis2);
/// The axes `source` brought to the places `destination`; the others keep their order.
KASSETTE_API Tensor moveaxis(const Operand& x, const Axes& source, const Axes& destination);
/// x without axes of size 1: those listed, or all.
KASSETTE_API Tensor squeeze(const Operand& x, const Axes& axis = None);
/// New axes of size 1, at these places of the result.
KASSETTE_API Tensor expand_dims(const Operand& x, const Axes& axis);
/// x with at least one, two or three axes; those of NumPy.
KASSETTE_API Tensor atleast_1d(const Operand& x);
KASSETTE_API Tensor atleast_2d(const Operand& x);
KASSETTE_API Tensor atleast_3d(const Operand& x);

/// Tensors joined along an axis, or, for None, flattened and joined. Their dtypes are promoted.
KASSETTE_API Tensor concatenate(const Tensors& x, const Axes& axis = 0);
inline Tensor concat(const Tensors& x, const Axes& axis = 0) { return concatenate(x, axis); }
/// Tensors of one shape joined along a new axis.
KASSETTE_API Tensor stack(const Tensors& x, int axis = 0);
/// Tensors joined along the second axis (vectors along the first), the first and the third axis, and vectors as the
/// columns of a matrix.
KASSETTE_API Tensor hstack(const Tensors& x);
KASSETTE_API Tensor vstack(const Tensors& x);
KASSETTE_API Tensor dstack(const Tensors& x);
KASSETTE_API Tensor column_stack(const Tensors& x);
/// A matrix of blocks, given by rows: `np::block({{a, b}, {c, d}})`.
KASSETTE_API Tensor block(std::initializer_list<Tensors> rows);
/// x and, behind it, values along an axis; None flattens both.
KASSETTE_API Tensor append(const Operand& x, const Operand& values, const Axes& axis = None);
/// values put before the elements at `index`, a number or a list, along an axis; None flattens x.
KASSETTE_API Tensor insert(const Operand& x, const Operand& index, const Operand& values, const Axes& axis = None);
/// x without the elements at `index`, a number or a list, along an axis; None flattens x.
KASSETTE_API Tensor delete_(const Operand& x, const Operand& index, const Axes& axis = None);

/// x in parts along an axis: between the places that are listed, or `sections` parts of equal size. Throws ValueError
/// if the size is no multiple of them.
KASSETTE_API Tensors split(const Operand& x, const Operand& indices, int axis = 0);
KASSETTE_API Tensors split(const Operand& x, int sections, int axis = 0);
/// As split, but the first parts may have one element more than the others.
KASSETTE_API Tensors array_split(const Operand& x, const Operand& indices, int axis = 0);
KASSETTE_API Tensors array_split(const Operand& x, int sections, int axis = 0);
/// split along the second axis (of vectors the first), the first, and the third axis.
KASSETTE_API Tensors hsplit(const Operand& x, int sections);
KASSETTE_API Tensors vsplit(const Operand& x, int sections);
KASSETTE_API Tensors dsplit(const Operand& x, int sections);
/// The slices along an axis, without it.
KASSETTE_API Tensors unstack(const Operand& x, int axis = 0);

/// x repeated as a whole along each axis as often as `times` says: [a, b] gives [a, b, a, b].
KASSETTE_API Tensor tile(const Operand& x, const Dims& times);
/// Each element `times` times in a row, a number or one for each along the axis: [a, b] gives [a, a, b, b]. None
/// flattens x.
KASSETTE_API Tensor repeat(const Operand& x, const Operand& times, const Axes& axis = None);
/// x broadcast to that shape.
KASSETTE_API Tensor broadcast_to(const Operand& x, const Dims& shape);
/// The shape that tensors of these shapes broadcast to.
KASSETTE_API Shape broadcast_shapes(std::initializer_list<Shape> shapes);
/// All of them broadcast to one shape.
KASSETTE_API Tensors broadcast_arrays(const Tensors& x);

/// The elements backwards along the axes, None: along all; the columns of a matrix backwards; its rows.
KASSETTE_API Tensor flip(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor fliplr(const Operand& x);
KASSETTE_API Tensor flipud(const Operand& x);
/// The elements moved on by `shift` places; those that leave at the end come in at the front. None: of the flattened x.
KASSETTE_API Tensor roll(const Operand& x, const Dims& shift, const Axes& axis = None);
/// x turned by 90 degrees k times, from the first towards the second axis.
KASSETTE_API Tensor rot90(const Operand& x, int k = 1, const Axes& axes = {0, 1});

/// The arguments of pad by name: numbers, or for each axis one before and one behind. `stat_length` is how many
/// elements at the edge the mean and the like are taken of; None: all.
struct PadOptions {
  Named only_by_name{0};
  KeptOperand constant_values = 0;
  KeptOperand end_values = 0;
  Scalar stat_length = None;
};
/// x with elements added before and behind along each axis: `width` is one number, {before, behind}, or such a pair for
/// each axis. mode: "constant", "edge", "reflect", "symmetric", "wrap", "linear_ramp", "mean", "median", "maximum" or
/// "minimum".
KASSETTE_API Tensor pad(const Operand& x, const Operand& width, Name mode = "constant", const PadOptions& options = {});
/// All windows of that size, in the last axes: (n - window + 1, ..., window...).
KASSETTE_API Tensor sliding_window_view(const Operand& x, const Dims& window, const Axes& axis = None);
/// A vector without the zeros at its front, if there is an f in `trim`, and at its end, if there is a b. How many
/// elements are left is None for placeholders.
KASSETTE_API Tensor trim_zeros(const Operand& x, Name trim = "fb");
/// The elements in row-major order, repeated as often as the shape needs.
KASSETTE_API Tensor resize(const Operand& x, const Dims& shape);

}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_NUMPY_SHAPING_H
