// include/kassette/numpy/nan_reductions.h - NumPy's reductions that leave out NaN.
#ifndef KASSETTE_NUMPY_NAN_REDUCTIONS_H
#define KASSETTE_NUMPY_NAN_REDUCTIONS_H
#include <kassette/numpy/statistics.h>

namespace kassette {
namespace numpy {

// Each is the function without `nan` of the elements that are not NaN, whose gradients are zeros where x is NaN. Bool
// and integers have no NaN.

/// The sum and the product; 0 and 1 where all elements are NaN.
template <int = 0>
KASSETTE_API Tensor nansum(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor nansum(const Operand& x, const SumOptions& options);
template <int = 0>
KASSETTE_API Tensor nanprod(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor nanprod(const Operand& x, const SumOptions& options);
/// The largest and the smallest element; NaN where all are NaN, or there are none.
template <int = 0>
KASSETTE_API Tensor nanmax(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor nanmax(const Operand& x, const ReduceOptions& options);
template <int = 0>
KASSETTE_API Tensor nanmin(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor nanmin(const Operand& x, const ReduceOptions& options);
/// The mean; NaN where all elements are NaN.
template <int = 0>
KASSETTE_API Tensor nanmean(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor nanmean(const Operand& x, const SumOptions& options);
/// The variance and its square root; NaN where there are no more elements than `correction`.
template <int = 0>
KASSETTE_API Tensor nanvar(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor nanvar(const Operand& x, const VarOptions& options);
template <int = 0>
KASSETTE_API Tensor nanstd(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor nanstd(const Operand& x, const VarOptions& options);
/// int64: the index of the first largest and smallest element; 0 where all are NaN.
template <int = 0>
KASSETTE_API Tensor nanargmax(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor nanargmax(const Operand& x, const ArgOptions& options);
template <int = 0>
KASSETTE_API Tensor nanargmin(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor nanargmin(const Operand& x, const ArgOptions& options);
/// The running sum and product, which a NaN leaves as it is.
template <int = 0>
KASSETTE_API Tensor nancumsum(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor nancumsum(const Operand& x, const ScanOptions& options);
template <int = 0>
KASSETTE_API Tensor nancumprod(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor nancumprod(const Operand& x, const ScanOptions& options);
/// The median and quantiles; NaN where all elements are NaN.
template <int = 0>
KASSETTE_API Tensor nanmedian(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor nanmedian(const Operand& x, const ReduceOptions& options);
template <int = 0>
KASSETTE_API Tensor nanquantile(const Operand& x, const Operand& q, const Axes& axis = None);
KASSETTE_API Tensor nanquantile(const Operand& x, const Operand& q, const QuantileOptions& options);
template <int = 0>
KASSETTE_API Tensor nanpercentile(const Operand& x, const Operand& q, const Axes& axis = None);
KASSETTE_API Tensor nanpercentile(const Operand& x, const Operand& q, const QuantileOptions& options);

}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_NUMPY_NAN_REDUCTIONS_H
