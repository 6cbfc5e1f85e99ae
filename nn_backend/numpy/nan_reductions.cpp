// nn_backend/numpy/nan_reductions.cpp - NumPy's reductions that leave out NaN.
#include <kassette/numpy/nan_reductions.h>

#include <limits>

#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "nn_backend/numpy/quantile.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/reduce_arg.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace {

using ops::attribute_errors;

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

/// x with `number` in place of NaN.
Tensor filled(const Tensor& x, double number) {
  return x.dtype().is_float() ? ops::where(ops::equal(x, x), x, number) : x;
}
/// Calls f with the argument in which NaN is `number`.
template <class F>
Tensor of_filled(const char* what, const Operand& x, double number, F&& f) {
  return attribute_errors(what, [&] { return f(filled(ArrayArg(x, {what, "x"}), number)); });
}

/// y where a group has an element that is not NaN, else NaN.
Tensor or_nan(const Tensor& y, const Tensor& x, const Axes& axis, bool keepdims) {
  if (!x.dtype().is_float()) return y;
  return ops::where(ops::any_of(ops::equal(x, x), axis, keepdims), y, kNan);
}
/// The number of elements that are not NaN, in the dtype of x.
Tensor count(const Tensor& x, const Axes& axis, bool keepdims) {
  return ops::sum(ops::cast(ops::equal(x, x), x.dtype()), axis, keepdims);
}

/// The variance of floats. The second step takes out what the rounding of the mean has left: Note [The rounding of a
/// mean].
Tensor variance(const Tensor& x, const VarOptions& options) {
  const Tensor there = ops::equal(x, x), present = count(x, options.axis, /*keepdims=*/true);
  auto mean_of = [&](const Tensor& v) { return ops::sum(v, options.axis, /*keepdims=*/true) / present; };
  auto without = [&](const Tensor& v, const Tensor& mean) { return ops::where(there, v - mean, ops::zeros_of(x)); };
  const Tensor near = without(x, mean_of(filled(x, 0))), apart = without(near, mean_of(near));
  const Tensor squares = ops::sum(ops::square(apart), options.axis, options.keepdims);
  const Tensor n = count(x, options.axis, options.keepdims) - options.correction;
  return squares / ops::where(ops::greater(n, 0), n, kNan);
}
/// Calls f with the argument as floats, half types in float32: they do not count beyond 2048.
template <class F>
Tensor of_wide(const char* what, const Operand& x, DType dtype, F&& f) {
  return attribute_errors(what, [&] {
    const ArrayArg array(x, {what, "x"});
    const Tensor t = dtype.given() ? ops::cast(array, dtype) : as_float(array);
    return t.dtype().is_float() ? ops::cast(f(wide(t)), t.dtype()) : f(t);
  });
}

}  // namespace

Tensor nansum(const Operand& x, const SumOptions& options) {
  return of_filled("nansum", x, 0, [&](const Tensor& t) { return sum(t, options); });
}
Tensor nanprod(const Operand& x, const SumOptions& options) {
  return of_filled("nanprod", x, 1, [&](const Tensor& t) { return prod(t, options); });
}
Tensor nanmax(const Operand& x, const ReduceOptions& options) {
  return attribute_errors("nanmax", [&] {
    const ArrayArg array(x, {"nanmax", "x"});
    return or_nan(max(filled(array, -kInfinity), options), array, options.axis, options.keepdims);
  });
}
Tensor nanmin(const Operand& x, const ReduceOptions& options) {
  return attribute_errors("nanmin", [&] {
    const ArrayArg array(x, {"nanmin", "x"});
    return or_nan(min(filled(array, kInfinity), options), array, options.axis, options.keepdims);
  });
}
Tensor nanmean(const Operand& x, const SumOptions& options) {
  return of_wide("nanmean", x, options.dtype, [&](const Tensor& t) {
    return ops::sum(filled(t, 0), options.axis, options.keepdims) / count(t, options.axis, options.keepdims);
  });
}
Tensor nanvar(const Operand& x, const VarOptions& options) {
  return of_wide("nanvar", x, None, [&](const Tensor& t) { return variance(t, options); });
}
Tensor nanstd(const Operand& x, const VarOptions& options) {
  return of_wide("nanstd", x, None, [&](const Tensor& t) {
    // The gradient is 0 where all elements are equal, as that of std.
    const Tensor v = variance(t, options), apart = ops::greater(v, 0);
    return ops::where(apart, ops::sqrt(ops::where(apart, v, ops::zeros_of(v) + 1)), v);
  });
}
Tensor nanargmax(const Operand& x, const ArgOptions& options) {
  return of_filled("nanargmax", x, -kInfinity, [&](const Tensor& t) { return argmax(t, options); });
}
Tensor nanargmin(const Operand& x, const ArgOptions& options) {
  return of_filled("nanargmin", x, kInfinity, [&](const Tensor& t) { return argmin(t, options); });
}
Tensor nancumsum(const Operand& x, const ScanOptions& options) {
  return of_filled("nancumsum", x, 0, [&](const Tensor& t) { return cumulative_sum(t, options); });
}
Tensor nancumprod(const Operand& x, const ScanOptions& options) {
  return of_filled("nancumprod", x, 1, [&](const Tensor& t) { return cumulative_prod(t, options); });
}
Tensor nanmedian(const Operand& x, const ReduceOptions& options) {
  return nan_quantiles("nanmedian", x, 0.5, /*most=*/1, {.axis = options.axis, .keepdims = options.keepdims});
}
Tensor nanquantile(const Operand& x, const Operand& q, const QuantileOptions& options) {
  return nan_quantiles("nanquantile", x, q, /*most=*/1, options);
}
Tensor nanpercentile(const Operand& x, const Operand& q, const QuantileOptions& options) {
  return nan_quantiles("nanpercentile", x, q, /*most=*/100, options);
}

/// The overload without options.
#define KASSETTE_NUMPY_ALONG(function, Options) \
  template <int> \
  Tensor function(const Operand& x, const Axes& axis) { \
    return function(x, Options{.axis = axis}); \
  } \
  template Tensor function<0>(const Operand&, const Axes&);
KASSETTE_NUMPY_ALONG(nansum, SumOptions)
KASSETTE_NUMPY_ALONG(nanprod, SumOptions)
KASSETTE_NUMPY_ALONG(nanmax, ReduceOptions)
KASSETTE_NUMPY_ALONG(nanmin, ReduceOptions)
KASSETTE_NUMPY_ALONG(nanmean, SumOptions)
KASSETTE_NUMPY_ALONG(nanvar, VarOptions)
KASSETTE_NUMPY_ALONG(nanstd, VarOptions)
KASSETTE_NUMPY_ALONG(nanargmax, ArgOptions)
KASSETTE_NUMPY_ALONG(nanargmin, ArgOptions)
KASSETTE_NUMPY_ALONG(nancumsum, ScanOptions)
KASSETTE_NUMPY_ALONG(nancumprod, ScanOptions)
KASSETTE_NUMPY_ALONG(nanmedian, ReduceOptions)
#undef KASSETTE_NUMPY_ALONG
template <int>
Tensor nanquantile(const Operand& x, const Operand& q, const Axes& axis) {
  return nanquantile(x, q, QuantileOptions{.axis = axis});
}
template Tensor nanquantile<0>(const Operand&, const Operand&, const Axes&);
template <int>
Tensor nanpercentile(const Operand& x, const Operand& q, const Axes& axis) {
  return nanpercentile(x, q, QuantileOptions{.axis = axis});
}
template Tensor nanpercentile<0>(const Operand&, const Operand&, const Axes&);

}  // namespace numpy
}  // namespace kassette
