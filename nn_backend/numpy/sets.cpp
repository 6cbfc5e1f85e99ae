// nn_backend/numpy/sets.cpp - which elements differ, and which two tensors share.
#include <kassette/numpy/order.h>
#include <kassette/numpy/sets.h>

#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "ops/order/order.h"
#include "ops/reduce/reduce_arg.h"
#include "ops/reduce/scan.h"
#include "ops/shape/like.h"
#include "ops/shape/positions.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace {

using ops::attribute_errors;

/// Whether NaN is equal to NaN.
enum class Nans : std::uint8_t { differ, equal };

/// The elements of a vector, or the rows of a matrix, in ascending order: in groups of those that are equal.
struct Groups {
  Tensor order;   // the positions of the sorted elements
  Tensor sorted;  // the elements
  Tensor first;   // bool: whether the element is the first of its group
  Tensor starts;  // the positions of these in `order`

  Groups(const Tensor& x, Tensor positions, Nans nans) : order(std::move(positions)) {
    sorted = ops::gather(x, order, 0);
    const Tensor before = slice_along(sorted, 0, None, -1), behind = slice_along(sorted, 0, 1, None);
    Tensor differs = ops::not_equal(before, behind);
    // NaNs are last: behind one there are others only.
    if (nans == Nans::equal && x.dtype().is_float()) differs = ops::logical_and(differs, ops::equal(before, before));
    if (Access::desc(x).rank == 2) differs = ops::any_of(differs, 1);
    const Tensor of_none = slice_along(order, 0, 0, 1);
    first = ops::concatenate({ops::equal(of_none, of_none), differs}, 0);
    starts = ops::nonzero_positions(first);
  }
  Groups(const Tensor& flat, Nans nans) : Groups(flat, ops::argsort(flat, 0), nans) {}

  Tensor values() const { return ops::gather(sorted, starts, 0); }
  Tensor indices() const { return ops::gather(order, starts, 0); }
  Tensor counts() const {
    const Tensor n = ops::expand_dims(size_along(order, 0).to(order.device()), 0);
    return ops::concatenate({slice_along(starts, 0, 1, None), n}, 0) - starts;
  }
  /// The number of the group of each element, in the shape of x.
  Tensor inverse(const Tensor& x) const {
    const Tensor number = ops::cumsum(ops::cast(first, int64), 0) - 1;
    return ops::reshape_like(ops::put_places_like(number, order, number, 0), x);
  }
};

Tensor values_of(const Tensor& x) { return Groups(ops::flatten(x, 0), Nans::equal).values(); }

/// Calls f with the values of both, in one dtype.
template <class F>
Tensor of_values(const char* what, const Operand& x, const Operand& y, F&& f) {
  return attribute_errors(what, [&] {
    const Tensors both = promoted_tensors(what, {{"x", x}, {"y", y}});
    return f(values_of(both[0]), values_of(both[1]));
  });
}
Tensor is_among(const Tensor& x, const Tensor& elements) {
  const Tensor sorted = ops::sort(ops::flatten(elements, 0), 0);
  const Tensor found = ops::greater(ops::searchsorted(sorted, x, ops::Side::right), ops::searchsorted(sorted, x));
  return x.dtype().is_float() ? ops::logical_and(found, ops::equal(x, x)) : found;
}
Tensor only_where(const Tensor& mask, const Tensor& x) { return ops::gather(x, ops::nonzero_positions(mask), 0); }
Tensor without(const Tensor& x, const Tensor& y) { return only_where(ops::logical_not(is_among(x, y)), x); }

}  // namespace

Tensor unique(const Operand& x, const Axes& axis) {
  return of_array("unique", x, [&](const Tensor& t) {
    if (one_axis({"unique", "axis"}, axis).size_ < 0) return values_of(t);
    const int along = front_axis(t, axis.axes_[0], "unique");
    if (Access::desc(t).rank == 1) return values_of(t);
    const Tensor slices = with_axis_at(t, along, 0), rows = ops::flatten(slices, 1);
    const int n = static_cast<int>(known_size(rows, 1, {"unique", "x"}));
    Tensors keys = ops::unstack(rows, n, 1), last_first;
    for (std::int64_t i = keys.size(); i-- > 0;) last_first.push_back(keys[i]);
    const Groups groups(rows, n ? lexsort(last_first, 0) : places_along(rows, 0), Nans::equal);
    return with_axis_at(ops::gather(slices, groups.indices(), 0), 0, along);
  });
}
Tensor unique_values(const Operand& x) {
  return of_array("unique_values", x,
                  [](const Tensor& t) { return Groups(ops::flatten(t, 0), Nans::differ).values(); });
}
UniqueAll unique_all(const Operand& x) {
  return of_array("unique_all", x, [](const Tensor& t) {
    const Groups groups(ops::flatten(t, 0), Nans::differ);
    return UniqueAll{groups.values(), groups.indices(), groups.inverse(t), groups.counts()};
  });
}
UniqueCounts unique_counts(const Operand& x) {
  return of_array("unique_counts", x, [](const Tensor& t) {
    const Groups groups(ops::flatten(t, 0), Nans::differ);
    return UniqueCounts{groups.values(), groups.counts()};
  });
}
UniqueInverse unique_inverse(const Operand& x) {
  return of_array("unique_inverse", x, [](const Tensor& t) {
    const Groups groups(ops::flatten(t, 0), Nans::differ);
    return UniqueInverse{groups.values(), groups.inverse(t)};
  });
}

Tensor isin(const Operand& x, const Operand& test_elements, const IsinOptions& options) {
  return attribute_errors("isin", [&] {
    const Tensors both = promoted_tensors("isin", {{"x", x}, {"test_elements", test_elements}});
    const Tensor found = is_among(both[0], both[1]);
    return options.invert ? ops::logical_not(found) : found;
  });
}

Tensor union1d(const Operand& x, const Operand& y) {
  return of_values("union1d", x, y, [](const Tensor& a, const Tensor& b) {
    return values_of(ops::concatenate({a, b}, 0));
  });
}
Tensor intersect1d(const Operand& x, const Operand& y) {
  return of_values("intersect1d", x, y, [](const Tensor& a, const Tensor& b) { return only_where(is_among(a, b), a); });
}
Tensor setdiff1d(const Operand& x, const Operand& y) { return of_values("setdiff1d", x, y, without); }
Tensor setxor1d(const Operand& x, const Operand& y) {
  return of_values("setxor1d", x, y, [](const Tensor& a, const Tensor& b) {
    return ops::sort(ops::concatenate({without(a, b), without(b, a)}, 0), 0);
  });
}

}  // namespace numpy
}  // namespace kassette
