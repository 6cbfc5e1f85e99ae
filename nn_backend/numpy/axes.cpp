// nn_backend/numpy/axes.cpp - axes and sizes of the arguments of np functions.
#include "nn_backend/numpy/axes.h"

#include <algorithm>

#include "core/rank.h"
#include "core/text.h"
#include "ops/engine/operand.h"
#include "ops/shape/shaping.h"

namespace kassette::numpy {

int front_axis(const Tensor& x, std::int64_t axis, const char* what, const char* name) {
  (void)known_rank(x, {what, "x"});
  return place_axis(what, axis, Access::desc(x), /*added=*/0, name);
}

std::vector<int> front_axes(const Tensor& x, const Axes& axes, const char* what) {
  std::vector<int> list = places_of({what, "axis"}, axes, known_rank(x, {what, "x"}));
  std::sort(list.begin(), list.end());
  return list;
}

Tensor places_below(const Tensor& n, Device device) {
  return ops::arange(ops::scalar_tensor(0, int64), n, ops::scalar_tensor(1, int64), int64).to(device);
}

Tensor places_along(const Tensor& x, int axis) { return places_below(size_along(x, axis), x.device()); }

Tensor with_axis_at(const Tensor& x, int from, int to) {
  if (from == to) return x;
  const int rank = Access::desc(x).rank;
  Axes pattern(None);
  pattern.size_ = rank;
  for (int i = 0, next = 0; i < rank; ++i) {
    if (next == from) ++next;
    pattern.axes_[i] = i == to ? from : next++;
  }
  return ops::permute(x, pattern);
}
Tensor with_last(const Tensor& x, int axis) { return with_axis_at(x, axis, Access::desc(x).rank - 1); }
Tensor with_last_at(const Tensor& x, int axis) { return with_axis_at(x, Access::desc(x).rank - 1, axis); }

Tensor diagonal_of(const Tensor& x, int axis1, int axis2, std::int64_t offset) {
  // The first axis, moved to the end, takes one place from those behind it.
  const Tensor last = with_last(with_last(x, axis1), axis2 > axis1 ? axis2 - 1 : axis2);
  const TensorDesc& d = Access::desc(last);
  const std::int64_t below = std::max<std::int64_t>(-offset, 0), above = std::max<std::int64_t>(offset, 0);
  const std::int64_t n = d.dims[d.rank - 2], m = d.dims[d.rank - 1];
  Tensor at;
  if (n >= 0 && m >= 0) {
    const std::int64_t count = std::max<std::int64_t>(std::min(n - below, m - above), 0);
    at = places_below(ops::scalar_tensor(count, int64), x.device()) * (m + 1) + (below * m + above);
  } else {
    const Tensor rows = size_along(last, -2), columns = size_along(last, -1);
    const Tensor count = ops::maximum(ops::minimum(rows - below, columns - above), 0);
    at = places_below(count, x.device()) * (columns + 1) + (columns * below + above);
  }
  return ops::gather(ops::flatten(last, d.rank - 2), at, -1);
}

Tensor as_indices(const Tensor& indices, const char* what, const char* name) {
  const DType dtype = Access::desc(indices).dtype;
  if (!dtype.is_integer())
    fail<TypeError>({what, name}, "are ", dtype.name(), kExpected, "they must be integers", kRemedy,
                    "cast them (K::cast)");
  return dtype == int32 || dtype == int64 ? indices : ops::cast(indices, int64);
}
Tensor take_at(const Tensor& x, const Tensor& indices, int axis, const char* what, const char* name) {
  if (const TensorDesc& d = Access::desc(x); d.rank >= 0) place_axis(what, axis, d);
  return ops::gather(x, as_indices(indices, what, name), axis, ops::Wrap::negative);
}

Tensor as_float(const Tensor& x) { return x.dtype().is_float() ? x : ops::cast(x, ops::default_float()); }

}  // namespace kassette::numpy
