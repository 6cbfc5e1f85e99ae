// nn_backend/numpy/axes.h - axes and sizes of the arguments of np functions.
#pragma once
#include <vector>

#include "nn_backend/numpy/arguments.h"
#include "ops/engine/dims.h"

namespace kassette::numpy {

/// The axis of x, counted from the front. Throws ValueError if there is none such, or the rank is unknown.
int front_axis(const Tensor& x, std::int64_t axis, const char* what, const char* name = "axis");
/// The axes of x, counted from the front, in ascending order; all for None. Throws ValueError like front_axis(), and if
/// an axis is given twice.
std::vector<int> front_axes(const Tensor& x, const Axes& axes, const char* what);

/// int64 0, 1, ... along an axis of x, on its device.
Tensor places_along(const Tensor& x, int axis);
/// int64 0, 1, ... up to `n`, an int64 scalar on the host, on a device.
Tensor places_below(const Tensor& n, Device device);

/// x with axis `from`, counted from the front, at `to`, and the others in their order.
Tensor with_axis_at(const Tensor& x, int from, int to);
/// x with that axis of a known rank last.
Tensor with_last(const Tensor& x, int axis);
/// x with its last axis at `axis`.
Tensor with_last_at(const Tensor& x, int axis);

/// The diagonal of two axes, counted from the front, as the last axis: `offset` above the main one.
Tensor diagonal_of(const Tensor& x, int axis1, int axis2, std::int64_t offset);

/// The parts of x along an axis at integers of any dtype, which count from the end if they are negative. Throws
/// TypeError in the name of `what`, of its argument `name`, if they are no integers.
Tensor take_at(const Tensor& x, const Tensor& indices, int axis, const char* what, const char* name = "indices");
/// Integers as int32 or int64. Throws TypeError like take_at().
Tensor as_indices(const Tensor& indices, const char* what, const char* name = "indices");
/// Bool and integers as floatx.
Tensor as_float(const Tensor& x);

}  // namespace kassette::numpy
