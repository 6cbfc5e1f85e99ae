// include/kassette/numpy/calculus.h - NumPy's differences, integrals, interpolation and convolution.
#ifndef KASSETTE_NUMPY_CALCULUS_H
#define KASSETTE_NUMPY_CALCULUS_H
#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace numpy {

// Where means, slopes or quotients are computed, bool and integers are cast to floatx first.

/// The arguments of diff by name. `prepend` and `append` are put before and behind the elements of the axis first.
struct DiffOptions {
  Named only_by_name{0};
  int n = 1, axis = -1;
  KeptOperand prepend = None, append = None;
};
/// Those of trapezoid: where the values are taken, or at what distance.
struct TrapezoidOptions {
  Named only_by_name{0};
  KeptOperand x = None;
  double dx = 1;
  int axis = -1;
};
/// Those of gradient. `spacing` is the distance of the values or, for one axis, their coordinates; for several axes it
/// may be a list with one such entry for each. At the ends differences are of first or second order.
struct GradientOptions {
  Named only_by_name{0};
  KeptOperand spacing = 1;
  Axes axis = None;
  int edge_order = 1;
};
/// Those of interp: values below the first and above the last coordinate, None for those at the ends; or the period.
struct InterpOptions {
  Named only_by_name{0};
  KeptOperand left = None, right = None;
  Scalar period = None;
};

/// Those of ediff1d: what is put behind and before the differences.
struct Ediff1dOptions {
  Named only_by_name{0};
  KeptOperand to_end = None, to_begin = None;
};
/// Those of unwrap: the distance above which neighbours are brought together, at least half of the period.
struct UnwrapOptions {
  Named only_by_name{0};
  double discont = 0;
  int axis = -1;
  double period = 6.28318530717958647692;
};

/// The differences of neighbours along an axis, n times; of bool, whether they differ.
KASSETTE_API Tensor diff(const Operand& x, const DiffOptions& options);
template <int = 0>
KASSETTE_API Tensor diff(const Operand& x, int n = 1, int axis = -1);
/// The differences of neighbours in the flattened x, of numbers.
KASSETTE_API Tensor ediff1d(const Operand& x, const Ediff1dOptions& options = {});
/// Floats x with periods added, so that neighbours along an axis differ by half of a period at most: angles without
/// jumps.
KASSETTE_API Tensor unwrap(const Operand& x, const UnwrapOptions& options = {});
/// The integral along an axis by the trapezoidal rule.
KASSETTE_API Tensor trapezoid(const Operand& y, const TrapezoidOptions& options);
template <int = 0>
KASSETTE_API Tensor trapezoid(const Operand& y, const Operand& x = None);
/// The slopes along each axis, a tensor of the shape of f for each, by central differences. Throws ValueError if the
/// size of an axis is not above edge_order.
KASSETTE_API Tensors gradient(const Operand& f, const GradientOptions& options);
template <int = 0>
KASSETTE_API Tensors gradient(const Operand& f, const Operand& spacing = 1);
/// Between the points (xp, fp), of ascending xp, the values at x of the straight lines through neighbours.
KASSETTE_API Tensor interp(const Operand& x, const Operand& xp, const Operand& fp, const InterpOptions& options = {});
/// The convolution of two vectors. mode: "full", "same" (of the longer one's size) or "valid" (where they overlap
/// completely).
KASSETTE_API Tensor convolve(const Operand& x, const Operand& y, Name mode = "full");
/// The sums of x[i + k] * y[i] for each shift k, of two vectors.
KASSETTE_API Tensor correlate(const Operand& x, const Operand& y, Name mode = "valid");

}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_NUMPY_CALCULUS_H
