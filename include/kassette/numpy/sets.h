// include/kassette/numpy/sets.h - NumPy's functions of sets: which elements differ, and which two tensors share.
#ifndef KASSETTE_NUMPY_SETS_H
#define KASSETTE_NUMPY_SETS_H
#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace numpy {

// Values are in ascending order, NaN last. How many there are is known when the values are, and None for placeholders.
// Gradients flow to the elements that are selected: the first ones of those that are equal.

/// The results of unique_all, unique_counts and unique_inverse: where in the flattened x each value is first, the
/// place among the values of each element of x, in the shape of x, and how often each value is there; int64.
struct UniqueAll {
  Tensor values, indices, inverse_indices, counts;
};
struct UniqueCounts {
  Tensor values, counts;
};
struct UniqueInverse {
  Tensor values, inverse_indices;
};

/// The elements of x that differ from each other, as a vector, with one NaN if there are any. With an axis: the slices
/// along it that differ; their size must be known.
KASSETTE_API Tensor unique(const Operand& x, const Axes& axis = None);
/// The elements of x that differ from each other. Each NaN differs from all others.
KASSETTE_API Tensor unique_values(const Operand& x);
KASSETTE_API UniqueAll unique_all(const Operand& x);
KASSETTE_API UniqueCounts unique_counts(const Operand& x);
KASSETTE_API UniqueInverse unique_inverse(const Operand& x);

/// The arguments of isin: whether the result is the opposite.
struct IsinOptions {
  Named only_by_name{0};
  bool invert = false;
};
/// For each element of x, whether it is among the test elements. NaN never is.
KASSETTE_API Tensor isin(const Operand& x, const Operand& test_elements, const IsinOptions& options = {});

/// The values that are in x or in y; in both; in x and not in y; in one of them alone. Each is there once.
KASSETTE_API Tensor union1d(const Operand& x, const Operand& y);
KASSETTE_API Tensor intersect1d(const Operand& x, const Operand& y);
KASSETTE_API Tensor setdiff1d(const Operand& x, const Operand& y);
KASSETTE_API Tensor setxor1d(const Operand& x, const Operand& y);

}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_NUMPY_SETS_H
