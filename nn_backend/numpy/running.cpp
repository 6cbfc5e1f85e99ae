// nn_backend/numpy/running.cpp - running extremes and sums of exponentials.
#include <kassette/numpy/running.h>

#include <limits>

#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "ops/engine/stop.h"
#include "ops/reduce/scan.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace {

using ops::attribute_errors;

/// Calls f(x, axis) with one axis of x, or with the flattened x.
template <class F>
auto along(const char* what, const Operand& x, const Axes& axis, F&& f) {
  return attribute_errors(what, [&] {
    const ArrayArg array(x, {what, "x"});
    if (one_axis({what, "axis"}, axis).size_ < 0) return f(ops::flatten(array, 0), 0);
    return f(array.tensor(), axis.axes_[0]);
  });
}

/// The number of elements behind a position of an axis: the distance of its neighbours in memory.
Tensor stride_of(const Tensor& x, int axis) {
  const int rank = Access::desc(x).rank;
  Tensor stride = ops::scalar_tensor(1, int64);
  for (int i = axis + 1; i < rank; ++i) stride = stride * size_along(x, i);
  return stride;
}
RunningExtreme extreme(const char* what, Tensor (*places)(const Tensor&, int), const Operand& x, const Axes& axis) {
  return along(what, x, axis, [&](const Tensor& t, int at) {
    const int front = front_axis(t, at, what);
    const Tensor flat = places(t, front);
    const Device device = t.device();
    const Tensor position = kassette::floor_divide(flat, ops::maximum(stride_of(t, front), 1).to(device));
    return RunningExtreme{ops::gather(ops::flatten(t, 0), flat, 0),
                          position % ops::maximum(size_along(t, front), 1).to(device)};
  });
}

}  // namespace

RunningExtreme cummax(const Operand& x, const Axes& axis) { return extreme("cummax", ops::cummax_places, x, axis); }
RunningExtreme cummin(const Operand& x, const Axes& axis) { return extreme("cummin", ops::cummin_places, x, axis); }

Tensor logcumsumexp(const Operand& x, const Axes& axis) {
  return along("logcumsumexp", x, axis, [&](const Tensor& t, int at) {
    check_float(t, {"logcumsumexp", "x"});
    // sum[i] = sum[i - 1] * exp(most[i - 1] - most[i]) + exp(x[i] - most[i]), where most is the running maximum.
    const Tensor fixed = ops::stop_gradient(t), flat = ops::cummax_places(fixed, at);
    const Tensor largest = ops::gather(ops::flatten(fixed, 0), flat, 0);
    const Tensor most = ops::where(ops::less(ops::abs(largest), std::numeric_limits<double>::infinity()), largest,
                                   ops::zeros_of(largest));
    const Tensor sums = ops::recurrence(ops::exp(ops::shifted(most, at) - most), ops::exp(t - most), at);
    return ops::log(sums) + most;
  });
}

}  // namespace numpy
}  // namespace kassette
