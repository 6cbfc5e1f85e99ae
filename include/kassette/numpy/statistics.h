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
  KeptOperand weights = None;
  bool keepdims = false;
};
/// The result of average_with_weights.
struct WeightedAverage {
  Tensor average, sum_of_weights;
};

/// The arguments of cov: more variables, whether each row is one (else each column), whether to divide by n in place of
/// n - 1, or by n - ddof; how often each observation occurs, and its weight.
struct CovarianceOptions {
  Named only_by_name{0};
  KeptOperand y = None;
  bool rowvar = true;
  bool bias = false;
  Scalar ddof = None;
  KeptOperand fweights = None, aweights = None;
};
/// The arguments of corrcoef.
struct CorrelationOptions {
  Named only_by_name{0};
  KeptOperand y = None;
  bool rowvar = true;
};
/// The arguments of histogram: the first and the last edge, those of x by default; whether the results add up to 1 over
/// the range; weights in the shape of x.
struct HistogramOptions {
  Named only_by_name{0};
  KeptOperand range = None;
  bool density = false;
  KeptOperand weights = None;
};
/// The result of histogram.
struct Histogram {
  Tensor counts, bin_edges;
};
/// The result of histogram2d.
struct Histogram2d {
  Tensor counts, x_edges, y_edges;
};
/// The result of histogramdd: the edges along each axis.
struct HistogramDd {
  Tensor counts;
  Tensors edges;
};
/// The arguments of histogram_bin_edges: the first and the last edge, those of x by default.
struct BinEdgesOptions {
  Named only_by_name{0};
  KeptOperand range = None;
};
/// The arguments of bincount: weights in the shape of x, and the least number of results.
struct BincountOptions {
  Named only_by_name{0};
  KeptOperand weights = None;
  std::int64_t minlength = 0;
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

/// The covariances of the rows of x, a matrix; of a vector, its variance as a scalar.
KASSETTE_API Tensor cov(const Operand& x, const CovarianceOptions& options = {});
/// The correlation coefficients of the rows of x, in [-1, 1]; NaN for a row whose elements are all equal.
KASSETTE_API Tensor corrcoef(const Operand& x, const CorrelationOptions& options = {});

/// How many elements of x are in each bin, and the edges. `bins` is a number of equal bins, or a vector of ascending
/// edges, which is not checked. A bin has its left edge, the last one both. NaN and what is outside is in none. Counts
/// are int64, sums of weights have their dtype, int64 for integers.
KASSETTE_API Histogram histogram(const Operand& x, const Operand& bins = 10, const HistogramOptions& options = {});
/// The edges of the bins that histogram counts in.
KASSETTE_API Tensor histogram_bin_edges(const Operand& x, const Operand& bins = 10,
                                        const BinEdgesOptions& options = {});
/// How many points (x, y) are in each bin, (x bins, y bins), and the edges. bins and range are those of histogram: for
/// both axes, or a list of two.
KASSETTE_API Histogram2d histogram2d(const Operand& x, const Operand& y, const Operand& bins = 10,
                                     const HistogramOptions& options = {});
/// The same for points of more coordinates, the rows of sample.
KASSETTE_API HistogramDd histogramdd(const Operand& sample, const Operand& bins = 10,
                                     const HistogramOptions& options = {});
/// How often 0, 1, 2, ... occur in a vector of integers, up to the largest: int64, or sums of weights.
/// A negative integer throws ValueError.
KASSETTE_API Tensor bincount(const Operand& x, const BincountOptions& options = {});

}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_NUMPY_STATISTICS_H
