// nn_backend/numpy/statistics.cpp - medians, quantiles and averages as NumPy has them.
#include <kassette/numpy/statistics.h>

#include <algorithm>
#include <vector>

#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "nn_backend/numpy/quantile.h"
#include "ops/order/order.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/checked.h"
#include "ops/shape/like.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace {

using ops::attribute_errors;

/// The elements along some axes in ascending order, as the last axis.
struct Ascending {
  std::vector<int> axes;
  Tensor sorted;
  Ascending(const Tensor& given, const Axes& axis, const char* what) : axes(front_axes(given, axis, what)) {
    const Tensor x = ops::checked(given, [what, reduced = axes](const TensorSpec& d) {
      for (int i : reduced)
        if (d.rank >= 0 && d.dims[i] == 0)
          fail<ValueError>({what, "x"}, "has shape ", d, kExpected, "there must be elements along axis ", i);
    });
    const TensorDesc& d = Access::desc(x);
    Axes pattern(None);
    pattern.size_ = 0;
    for (int i = 0; i < d.rank; ++i)
      if (!std::binary_search(axes.begin(), axes.end(), i)) pattern.axes_[pattern.size_++] = i;
    const int kept = pattern.size_;
    for (int i : axes) pattern.axes_[pattern.size_++] = i;
    const Tensor moved = std::is_sorted(pattern.axes_, pattern.axes_ + d.rank) ? x : ops::permute(x, pattern);
    sorted = ops::sort(axes.empty() ? ops::expand_dims(moved, -1) : ops::flatten(moved, kept), -1);
  }
  /// y, whose axes from `front` on are those of x that were not reduced, with the others of size 1.
  Tensor with_axes(Tensor y, int front) const {
    for (int i : axes) y = ops::expand_dims(y, front + i);
    return y;
  }
};

/// y with its last n axes first.
Tensor with_last_first(const Tensor& y, int n) {
  const int rank = Access::desc(y).rank;
  if (n == 0 || n == rank) return y;
  Axes pattern(None);
  pattern.size_ = rank;
  for (int i = 0; i < rank; ++i) pattern.axes_[i] = (i + rank - n) % rank;
  return ops::permute(y, pattern);
}

/// Throws ValueError if a quantile that has a value on the host is out of range.
void check_quantiles(const Tensor& q, double most, const char* what) {
  if (q.symbolic() || q.device() != cpu) return;
  for (const auto values = q.to_vector<double>(); double v : values)
    if (v < 0 || v > most) fail<ValueError>({what, "q"}, "has ", v, kExpected, "it must be in [0, ", most, "]");
}

Tensor quantiles(const char* what, const Operand& x, const Operand& q, double most, const QuantileOptions& options) {
  return attribute_errors(what, [&] {
    const ArrayArg array(x, {what, "x"}), parts(q, {what, "q"}, float64);
    const QuantileMethod method = quantile_method(options.method, what);
    check_quantiles(parts, most, what);
    const int front = known_rank(parts, {what, "q"});
    const Ascending a(as_float(array), options.axis, what);
    const Tensor of_one = most == 1 ? ops::cast(parts, float64) : ops::cast(parts, float64) / most;
    const QuantilePlaces at =
        quantile_places(of_one.to(array.tensor().device()), ops::cast(size_along(a.sorted, -1), float64), method);
    const Tensor below = ops::gather(a.sorted, at.below, -1), above = ops::gather(a.sorted, at.above, -1);
    const Tensor last = ops::gather(a.sorted, ops::zeros_of(at.below) - 1, -1, ops::Wrap::negative);
    const Tensor y = ops::where(ops::equal(last, last), between(below, above, at.weight), last);
    const Tensor moved = with_last_first(y, front);
    return options.keepdims ? a.with_axes(moved, front) : moved;
  });
}

}  // namespace

Tensor nan_quantiles(const char* what, const Operand& x, const Operand& q, double most,
                     const QuantileOptions& options) {
  return attribute_errors(what, [&] {
    const ArrayArg array(x, {what, "x"}), parts(q, {what, "q"}, float64);
    const QuantileMethod method = quantile_method(options.method, what);
    check_quantiles(parts, most, what);
    const int front = known_rank(parts, {what, "q"});
    const Ascending a(as_float(array), options.axis, what);
    // NaNs are sorted last, so the first n elements of a group are numbers.
    const Tensor n = ops::sum(ops::cast(ops::equal(a.sorted, a.sorted), float64), -1, /*keepdims=*/true);
    const Tensor of_one = ops::flatten(ops::cast(parts, float64), 0) / most;
    const QuantilePlaces at = quantile_places(of_one.to(array.tensor().device()), n, method);
    const Tensor flat = ops::flatten(a.sorted, 0);
    const Tensor y = between(ops::gather(flat, ops::flat_places(at.below, a.sorted, -1), 0),
                             ops::gather(flat, ops::flat_places(at.above, a.sorted, -1), 0), at.weight);
    Tensor moved = with_last_first(y, 1);
    if (front != 1) {
      SizesOf shape;
      for (int i = 0; i < front; ++i) shape.push_size(parts, i);
      for (int i = 1; i < Access::desc(moved).rank; ++i) shape.push_size(moved, i);
      moved = ops::reshape(moved, shape);
    }
    return options.keepdims ? a.with_axes(moved, front) : moved;
  });
}

namespace {

[[noreturn]] void fail_weights(const TensorSpec& x, const TensorSpec& weights, const char* what) {
  fail<ValueError>({what, "weights"}, "have shape ", weights, " and x ", x, kExpected,
                   "they must have the shape of x or that of the axes");
}
/// The average by weights for each place along some axes.
WeightedAverage average_along(const Tensor& x, const Tensor& given, const AverageOptions& options, const char* what) {
  const TensorDesc& d = Access::desc(x);
  const std::vector<int> reduced = front_axes(x, options.axis, what);
  if (Access::desc(given).rank != static_cast<int>(reduced.size())) fail_weights(d, Access::desc(given), what);
  std::vector<int> own;  // the axis of x for each of the weights
  for (std::size_t i = 0; i < reduced.size(); ++i) own.push_back(front_axis(x, options.axis.axes_[i], what));
  const Tensor weights = ops::checked(given, x, [what, own](const TensorSpec& w, const TensorSpec& of_x) {
    for (std::size_t i = 0; i < own.size(); ++i)
      if (of_x.rank >= 0 && w.rank >= 0 && differ(of_x.dims[own[i]], w.dims[i])) fail_weights(of_x, w, what);
  });
  Axes pattern(None), last(None);
  pattern.size_ = last.size_ = 0;
  for (int i = 0; i < d.rank; ++i)
    if (!std::binary_search(reduced.begin(), reduced.end(), i)) pattern.axes_[pattern.size_++] = i;
  // Behind the others the axes are in the order of the weights, which then broadcast.
  for (int axis : own) {
    last.axes_[last.size_++] = pattern.size_;
    pattern.axes_[pattern.size_++] = axis;
  }
  const Tensor moved = std::is_sorted(pattern.axes_, pattern.axes_ + d.rank) ? x : ops::permute(x, pattern);
  const Tensor total = ops::sum(weights);
  Tensor average = ops::sum(moved * (weights / total), last);
  for (int i : options.keepdims ? reduced : std::vector<int>()) average = ops::expand_dims(average, i);
  return {average, ops::broadcast_like(total, average)};
}

WeightedAverage averages(const char* what, const Operand& x, const AverageOptions& options) {
  const ArrayArg array(x, {what, "x"});
  if (options.weights.is_none()) {
    const Tensor t = as_float(array);
    return {ops::mean(t, options.axis, options.keepdims),
            ops::sum(ops::zeros_of(t) + 1, options.axis, options.keepdims)};
  }
  const ArrayArg weights(options.weights, {what, "weights"}, as_float(array).dtype());
  const DType of_weights = weights.tensor().dtype(), own = as_float(array).dtype();
  const DType dtype = of_weights.is_float() ? promoted(own, of_weights, what, "x", "weights") : own;
  const Tensor t = ops::cast(array, dtype), given = ops::cast(weights, dtype);
  if (options.axis.size_ >= 0 && known_rank(t, {what, "x"}) != known_rank(given, {what, "weights"}))
    return average_along(t, given, options, what);
  const Tensor w = ops::checked(given, t, [what](const TensorSpec& own_shape, const TensorSpec& of_x) {
    if (!of_x.compatible(own_shape)) fail_weights(of_x, own_shape, what);
  });
  const Tensor total = ops::sum(w, options.axis, options.keepdims);
  return {ops::sum(t * w, options.axis, options.keepdims) / total, total};
}

}  // namespace

Tensor median(const Operand& x, const ReduceOptions& options) {
  return attribute_errors("median", [&] {
    const ArrayArg array(x, {"median", "x"});
    const Ascending a(as_float(array), options.axis, "median");
    const Tensor n = size_along(a.sorted, -1).to(array.tensor().device());
    const Tensor below = ops::gather(a.sorted, kassette::floor_divide(n - 1, 2), -1),
                 above = ops::gather(a.sorted, kassette::floor_divide(n, 2), -1),
                 last = ops::gather(a.sorted, n - 1, -1);
    const Tensor y = ops::where(ops::equal(last, last), below * 0.5 + above * 0.5, last);
    return options.keepdims ? a.with_axes(y, 0) : y;
  });
}
Tensor quantile(const Operand& x, const Operand& q, const QuantileOptions& options) {
  return quantiles("quantile", x, q, 1, options);
}
Tensor percentile(const Operand& x, const Operand& q, const QuantileOptions& options) {
  return quantiles("percentile", x, q, 100, options);
}
Tensor average(const Operand& x, const AverageOptions& options) {
  return attribute_errors("average", [&] {
    if (options.weights.is_none())
      return ops::mean(as_float(ArrayArg(x, {"average", "x"})), options.axis, options.keepdims);
    return averages("average", x, options).average;
  });
}
WeightedAverage average_with_weights(const Operand& x, const AverageOptions& options) {
  return attribute_errors("average_with_weights", [&] { return averages("average_with_weights", x, options); });
}

template <int>
Tensor median(const Operand& x, const Axes& axis) {
  return median(x, ReduceOptions{.axis = axis});
}
template Tensor median<0>(const Operand&, const Axes&);
template <int>
Tensor quantile(const Operand& x, const Operand& q, const Axes& axis) {
  return quantile(x, q, QuantileOptions{.axis = axis});
}
template Tensor quantile<0>(const Operand&, const Operand&, const Axes&);
template <int>
Tensor percentile(const Operand& x, const Operand& q, const Axes& axis) {
  return percentile(x, q, QuantileOptions{.axis = axis});
}
template Tensor percentile<0>(const Operand&, const Operand&, const Axes&);
template <int>
Tensor average(const Operand& x, const Axes& axis) {
  return average(x, AverageOptions{.axis = axis});
}
template Tensor average<0>(const Operand&, const Axes&);

}  // namespace numpy
}  // namespace kassette
