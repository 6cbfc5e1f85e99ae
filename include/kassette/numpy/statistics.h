// include/kassette/numpy/statistics.h - medians, quantiles and averages as NumPy has them.
#ifndef KASSETTE_NUMPY_STATISTICS_H
#define KASSETTE_NUMPY_STATISTICS_H
#include <kassette/numpy/reductions.h>

namespace kassette {
namespace numpy {

// Bool and integers are cast to floatx first. `axis` and keepdims are those of reductions.

/// The arguments of quantiles: how to interpolate between two elements is "linear", "lower", "higher", "midpoint",
/// "nearest", "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen",
/// "weibull", "median_unbiased" or "normal_unbiased".
struct QuantileOptions {
  Named only_by_name{0};
  Axes axis = None;
  Name method = "linear";
  bool keepdims = false;
};
/// The arguments of averages: weights have the shape of x, or that of the axes.
struct AverageOptions {
  Named only_by_name{0};
  Axes axis = None;
  Operand weights = None;
  bool keepdims = false;
};
/// The result of average_with_weights.
struct WeightedAverage {
  Tensor average, sum_of_weights;
};

/// The middle element in ascending order, or the mean of the two in the middle; NaN if there is one. Throws ValueError
/// if there are no elements.
template <int = 0>
KASSETTE_API Tensor median(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor median(const Operand& x, const ReduceOptions& options);
/// The element below which the part q of the elements lies, interpolated; NaN if there is one. The axes of q, numbers
/// in [0, 1], come first in the shape. Throws ValueError if there are no elements, or for a q out of range whose value
/// is known.
template <int = 0>
KASSETTE_API Tensor quantile(const Operand& x, const Operand& q, const Axes& axis = None);
KASSETTE_API Tensor quantile(const Operand& x, const Operand& q, const QuantileOptions& options);
/// quantile(x, q / 100).
template <int = 0>
KASSETTE_API Tensor percentile(const Operand& x, const Operand& q, const Axes& axis = None);
KASSETTE_API Tensor percentile(const Operand& x, const Operand& q, const QuantileOptions& options);
/// The mean, or sum(x * weights) / sum(weights); NaN or infinite if the weights add up to 0.
template <int = 0>
KASSETTE_API Tensor average(const Operand& x, const Axes& axis = None);
KASSETTE_API Tensor average(const Operand& x, const AverageOptions& options);
/// average, and the sum of the weights in the same shape; NumPy's `returned`. Without weights that is the number of
/// elements.
KASSETTE_API WeightedAverage average_with_weights(const Operand& x, const AverageOptions& options);

}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_NUMPY_STATISTICS_H
