// nn_backend/numpy/selection.cpp - NumPy's functions that select elements.
#include <kassette/numpy/selection.h>

#include "core/rank.h"
#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace {

using ops::attribute_errors;

/// Throws ValueError if x is known to have fewer than two axes.
void check_matrix(const Tensor& x, const char* what) {
  const TensorDesc& d = Access::desc(x);
  if (d.rank == 0 || d.rank == 1)
    fail<ValueError>({what, "x"}, "has shape ", d, kExpected, "the rank must be at least 2");
}
/// j - i of the elements [i, j] of a matrix, by the positions along its axes.
Tensor diagonal_numbers(const Tensor& rows, const Tensor& columns) {
  return ops::expand_dims(columns, 0) - ops::expand_dims(rows, 1);
}
Tensor diagonal_numbers(const Tensor& x) { return diagonal_numbers(places_along(x, -2), places_along(x, -1)); }
/// The elements [i, j] with j - i on one side of k, 0 elsewhere.
Tensor triangle(const char* what, Tensor (*compare)(const Operand&, const Operand&), const Operand& x, std::int64_t k) {
  return attribute_errors(what, [&] {
    const ArrayArg array(x, {what, "x"});
    check_matrix(array, what);
    const Tensor& t = array.tensor();
    return ops::where(compare(diagonal_numbers(t), k), t, ops::zeros_of(t));
  });
}

/// The matrix with that diagonal k.
Tensor matrix_of(const Tensor& v, std::int64_t k) {
  ops::Pads more;
  more.rank = 1;
  more.after[0] = k < 0 ? -k : k;
  const Tensor padded = ops::pad(v, more), places = places_along(padded, 0);
  // The element that belongs into row i, or for k < 0 into column j.
  const Tensor spread = ops::expand_dims(padded, k < 0 ? 0 : 1);
  return ops::where(ops::equal(diagonal_numbers(places, places), k), spread, ops::zeros_of(spread));
}

}  // namespace

Tensor where(const Operand& condition, const Operand& x, const Operand& y) {
  return attribute_errors("where", [&] {
    const ArrayArg mask(condition, {"where", "condition"});
    const Pair both(x, y, "where");
    return ops::where(ops::cast(mask, bool_), both.x(), both.y());
  });
}

Tensor take(const Operand& x, const Operand& indices, const Axes& axis) {
  return attribute_errors("take", [&] {
    const ArrayArg array(x, {"take", "x"}), at(indices, {"take", "indices"}, int64);
    one_axis({"take", "axis"}, axis);
    return take_at(axis.size_ < 0 ? ops::flatten(array, 0) : array.tensor(), at, axis.size_ < 0 ? 0 : axis.axes_[0],
                   "take");
  });
}

Tensor tril(const Operand& x, std::int64_t k) { return triangle("tril", ops::less_equal, x, k); }
Tensor triu(const Operand& x, std::int64_t k) { return triangle("triu", ops::greater_equal, x, k); }
Tensor tri(std::int64_t n, const Scalar& m, std::int64_t k, DType dtype) {
  return attribute_errors("tri", [&] {
    if (n < 0) fail<ValueError>({"tri", "n"}, "is ", n, kExpected, "it must not be negative");
    const Tensor rows = ops::scalar_tensor(n, int64),
                 columns = m.is_none() ? rows : ops::scalar_tensor(m, int64, {"tri", "m"});
    if (columns.item<std::int64_t>() < 0)
      fail<ValueError>({"tri", "m"}, "is ", columns.item<std::int64_t>(), kExpected, "it must not be negative");
    const Device device = context().default_device;
    const Tensor ones = ops::less_equal(diagonal_numbers(places_below(rows, device), places_below(columns, device)), k);
    return ops::cast(ones, dtype.given() ? dtype : ops::default_float());
  });
}

Tensor diag(const Operand& v, std::int64_t k) {
  return attribute_errors("diag", [&] {
    const ArrayArg array(v, {"diag", "v"});
    const int rank = known_rank(array, {"diag", "v"});
    if (rank == 1) return matrix_of(array, k);
    if (rank == 2) return diagonal_of(array, 0, 1, k);
    fail<ValueError>({"diag", "v"}, "has shape ", array.desc(), kExpected, "the rank must be 1 or 2");
  });
}
Tensor diagflat(const Operand& v, std::int64_t k) {
  return attribute_errors("diagflat", [&] { return matrix_of(ops::flatten(ArrayArg(v, {"diagflat", "v"}), 0), k); });
}
Tensor diagonal(const Operand& x, std::int64_t offset, int axis1, int axis2) {
  return attribute_errors("diagonal", [&] {
    const ArrayArg array(x, {"diagonal", "x"});
    check_matrix(array, "diagonal");
    const int first = front_axis(array, axis1, "diagonal", "axis1"),
              second = front_axis(array, axis2, "diagonal", "axis2");
    if (first == second) fail<ValueError>({"diagonal", "axis2"}, "is ", axis2, kExpected, "it must not be axis1");
    return diagonal_of(array, first, second, offset);
  });
}

}  // namespace numpy
}  // namespace kassette
