// nn_backend/numpy/quantile.h - quantiles of the last axis of a tensor.
#pragma once
#include <kassette/numpy/statistics.h>

namespace kassette::numpy {

/// How to interpolate between two elements: the methods of NumPy, which are those of Hyndman and Fan (1996) and four
/// others.
enum class QuantileMethod : std::uint8_t {
  inverted_cdf,
  averaged_inverted_cdf,
  closest_observation,
  interpolated_inverted_cdf,
  hazen,
  weibull,
  linear,
  median_unbiased,
  normal_unbiased,
  lower,
  higher,
  midpoint,
  nearest
};
/// The method of that name. Throws ValueError, in the name of `what`, if there is none.
QuantileMethod quantile_method(const Name& text, const char* what);

/// Where to find a quantile in ascending elements: a + (b - a) * weight of the elements a at `below` and b at `above`.
/// The places are int64, the weight float64.
struct QuantilePlaces {
  Tensor below, above, weight;
};
/// The places of quantiles q among n elements. q is float64, n float64 and at least 1; they broadcast.
QuantilePlaces quantile_places(const Tensor& q, const Tensor& n, QuantileMethod method);
/// a + (b - a) * weight; a where both are equal.
Tensor between(const Tensor& a, const Tensor& b, const Tensor& weight);

/// Quantiles of the elements that are not NaN; NaN if all are. q is in [0, most].
Tensor nan_quantiles(const char* what, const Operand& x, const Operand& q, double most, const QuantileOptions& options);

}  // namespace kassette::numpy
