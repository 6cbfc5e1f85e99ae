// include/kassette/numpy/reductions.h - NumPy's reductions and running sums.
#ifndef KASSETTE_NUMPY_REDUCTIONS_H
#define KASSETTE_NUMPY_REDUCTIONS_H
#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace numpy {

// `axis` is one axis, a list, or None for all. With keepdims the reduced axes stay with size 1. An axis that is out of
// range or given twice throws ValueError.

// The overloads without options are templates: g++ also accepts {.axis = 2} for Axes, and of two overloads that match
// it prefers the one that is not a template.

/// The arguments of reductions by name: `np::max(x, {.axis = 0, .keepdims = true})`.
struct ReduceOptions {
  Named only_by_name{0};
  Axes axis = None;
  bool keepdims = false;
};
/// Those of sums and products; elements are cast to `dtype` first.
struct SumOptions {
  Named only_by_name{0};
  Axes axis = None;
  DType dtype = None;
  bool keepdims = false;
};
/// Those of var and std, which divide by n - correction.
struct VarOptions {
  Named only_by_name{0};
  Axes axis = None;
  double correction = 0;
  bool keepdims = false;
};
/// Those of argmax and argmin: one axis, or None for the flattened tensor.
struct ArgOptions {
  Named only_by_name{0};
  Axes axis = None;
  bool keepdims = false;
};
/// Those of running sums and products. With include_initial they begin with 0 or 1 and are one longer.
struct ScanOptions {
  Named only_by_name{0};
  Axes axis = None;
  DType dtype = None;
  bool include_initial = false;
};

/// The sum. Bool and integers are added in int64, unsigned ones in uint64, unless dtype is given. For an empty x: 0.
template <int = 0>
KASSETTE_API Tensor sum(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor sum(const Operand& x, const SumOptions& options);
/// The product. Bool and integers are multiplied in int64, unsigned ones in uint64, unless dtype is given. For an empty
/// x: 1.
template <int = 0>
KASSETTE_API Tensor prod(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor prod(const Operand& x, const SumOptions& options);
/// The largest element; NaN if there is one. For an empty x: -inf, or the lowest integer.
template <int = 0>
KASSETTE_API Tensor max(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor max(const Operand& x, const ReduceOptions& options);
/// The smallest element; NaN if there is one. For an empty x: inf, or the largest integer.
template <int = 0>
KASSETTE_API Tensor min(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor min(const Operand& x, const ReduceOptions& options);
/// The difference between the largest and the smallest element; NaN if there is one.
template <int = 0>
KASSETTE_API Tensor ptp(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor ptp(const Operand& x, const ReduceOptions& options);
/// The arithmetic mean; bool and integers are cast to floatx first unless dtype is given. For an empty x: NaN.
template <int = 0>
KASSETTE_API Tensor mean(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor mean(const Operand& x, const SumOptions& options);
/// The sum of the squared deviations from the mean, divided by n - correction; bool and integers are cast to floatx
/// first. NaN or inf if the divisor is 0 or less.
template <int = 0>
KASSETTE_API Tensor var(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor var(const Operand& x, const VarOptions& options);
/// The square root of var. It and its gradient are 0 where all elements are equal.
template <int = 0>
KASSETTE_API Tensor std(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor std(const Operand& x, const VarOptions& options);
/// bool: whether any element is not zero; NaN is not zero. For an empty x: false.
template <int = 0>
KASSETTE_API Tensor any(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor any(const Operand& x, const ReduceOptions& options);
/// bool: whether no element is zero. For an empty x: true.
template <int = 0>
KASSETTE_API Tensor all(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor all(const Operand& x, const ReduceOptions& options);
/// int64: how many elements are not zero; NaN is not zero.
template <int = 0>
KASSETTE_API Tensor count_nonzero(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor count_nonzero(const Operand& x, const ReduceOptions& options);
/// int64: the index of the first largest element along one axis, or in the flattened tensor. NaN counts as the largest.
/// Throws ValueError if the axis has size 0.
template <int = 0>
KASSETTE_API Tensor argmax(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor argmax(const Operand& x, const ArgOptions& options);
/// int64: the index of the first smallest element; otherwise like argmax.
template <int = 0>
KASSETTE_API Tensor argmin(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor argmin(const Operand& x, const ArgOptions& options);
/// f(x, axis) for one axis after the other; axes that f reduces away stay with size 1.
KASSETTE_API Tensor apply_over_axes(Callable<Tensor(const Tensor&, int)> f, const Operand& x, const Axes& axes);
/// log(sum(exp(x))) of floats, without overflow. For an empty x: -inf.
template <int = 0>
KASSETTE_API Tensor logsumexp(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor logsumexp(const Operand& x, const ReduceOptions& options);
/// The running sum along an axis, or of the flattened tensor. Bool and integers are added in int64, unsigned ones in
/// uint64, unless dtype is given.
template <int = 0>
KASSETTE_API Tensor cumulative_sum(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor cumulative_sum(const Operand& x, const ScanOptions& options);
inline Tensor cumsum(const Operand& x, const Axes& axis = None) { return cumulative_sum(x, axis); }
/// The running product along an axis, or of the flattened tensor. Bool and integers are multiplied in int64, unsigned
/// ones in uint64, unless dtype is given.
template <int = 0>
KASSETTE_API Tensor cumulative_prod(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor cumulative_prod(const Operand& x, const ScanOptions& options);
inline Tensor cumprod(const Operand& x, const Axes& axis = None) { return cumulative_prod(x, axis); }

}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_NUMPY_REDUCTIONS_H
