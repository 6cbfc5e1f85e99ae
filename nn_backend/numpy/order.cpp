// nn_backend/numpy/order.cpp - sorting, and search in what is sorted, as NumPy has them.
#include <kassette/numpy/order.h>

#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "ops/order/order.h"
#include "ops/reduce/reduce_arg.h"
#include "ops/shape/checked.h"
#include "ops/shape/like.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace {

using ops::attribute_errors;

/// Calls op(x, axis) with one axis of x, or with the flattened x.
template <class F>
Tensor along(const char* what, const Operand& x, const Axes& axis, F&& op) {
  return attribute_errors(what, [&] {
    const ArrayArg array(x, {what, "x"});
    if (one_axis({what, "axis"}, axis).size_ < 0) return op(ops::flatten(array, 0), 0);
    return op(array, axis.axes_[0]);
  });
}

/// x, whose axis must have these positions.
Tensor with_places(const Tensor& x, int axis, const Axes& places, const char* what) {
  if (places.size_ < 0) fail<ValueError>({what, "kth"}, "is None", kExpected, "it must be an integer or a list");
  check_length({what, "kth"}, places);
  return ops::checked(x, [=](const TensorSpec& d) {
    if (d.rank < 0) return;
    const std::int64_t n = d.dims[place_axis(what, axis, d)];
    for (int i = 0; n >= 0 && i < places.size_; ++i)
      if (places.axes_[i] < -n || places.axes_[i] >= n)
        fail<ValueError>({what, "kth"}, "is ", places.axes_[i], ", the axis has ", n, " elements");
  });
}

ops::Side side_of(const Name& side) {
  const std::string text = Access::text(side);
  if (text != "left" && text != "right")
    fail<ValueError>({"searchsorted", "side"}, "is '", text, "'", kExpected, "there are 'left' and 'right'");
  return text == "left" ? ops::Side::left : ops::Side::right;
}

}  // namespace

Tensor sort(const Operand& x, const SortOptions& options) {
  return along("sort", x, options.axis,
               [&](const Tensor& t, int axis) { return ops::sort(t, axis, options.descending); });
}
Tensor argsort(const Operand& x, const SortOptions& options) {
  return along("argsort", x, options.axis,
               [&](const Tensor& t, int axis) { return ops::argsort(t, axis, options.descending); });
}
Tensor lexsort(const Tensors& keys, int axis) {
  return attribute_errors("lexsort", [&] {
    if (keys.empty()) fail<ValueError>({"lexsort", "keys"}, "is an empty list", kExpected, "there must be a key");
    for (const Tensor& key : keys)
      if (!key.defined()) fail_empty({"lexsort", "keys"});
    Tensor order = ops::argsort(keys[0], axis);
    for (std::int64_t i = 1; i < keys.size(); ++i) {
      const Tensor key = ops::assert_shape_of(ops::ShapeCheck::keys, keys[i], keys[0]);
      order = ops::take_places(order, ops::argsort(ops::take_places(key, order, axis), axis), axis);
    }
    return order;
  });
}
Tensor partition(const Operand& x, const Axes& kth, const Axes& axis) {
  return along("partition", x, axis,
               [&](const Tensor& t, int at) { return ops::sort(with_places(t, at, kth, "partition"), at); });
}
Tensor argpartition(const Operand& x, const Axes& kth, const Axes& axis) {
  return along("argpartition", x, axis,
               [&](const Tensor& t, int at) { return ops::argsort(with_places(t, at, kth, "argpartition"), at); });
}
TopK top_k(const Operand& x, std::int64_t k, int axis) {
  return attribute_errors("top_k", [&] {
    ops::TopK top = ops::top_k(ArrayArg(x, {"top_k", "x"}), k, axis);
    return TopK{std::move(top.values), std::move(top.indices)};
  });
}

Tensor searchsorted(const Operand& a, const Operand& v, const SearchOptions& options) {
  return attribute_errors("searchsorted", [&] {
    const ops::Side side = side_of(options.side);
    const Tensors both = promoted_tensors("searchsorted", {{"a", a}, {"v", v}});
    const Tensor sorted =
        options.sorter.defined() ? take_at(both[0], options.sorter, -1, "searchsorted", "sorter") : both[0];
    return ops::searchsorted(sorted, both[1], side);
  });
}
Tensor digitize(const Operand& x, const Operand& bins, const DigitizeOptions& options) {
  return attribute_errors("digitize", [&] {
    const Tensors both = promoted_tensors("digitize", {{"x", x}, {"bins", bins}});
    const Tensor edges = ops::checked(both[1], [](const TensorSpec& d) {
      if (differ(d.rank, 1)) fail<ValueError>({"digitize", "bins"}, "has shape ", d, kExpected, "the rank must be 1");
    });
    const Tensor order = ops::argsort(edges), ascending = ops::take_places(edges, order, 0);
    const Tensor falls = ops::any_of(ops::not_equal(order, places_along(edges, 0)));
    const Tensor below = ops::searchsorted(ascending, both[0], options.right ? ops::Side::left : ops::Side::right);
    return ops::where(falls, size_along(edges, 0) - below, below);
  });
}

template <int>
Tensor sort(const Operand& x, const Axes& axis) {
  return sort(x, SortOptions{.axis = axis});
}
template Tensor sort<0>(const Operand&, const Axes&);
template <int>
Tensor argsort(const Operand& x, const Axes& axis) {
  return argsort(x, SortOptions{.axis = axis});
}
template Tensor argsort<0>(const Operand&, const Axes&);
template <int>
Tensor searchsorted(const Operand& a, const Operand& v, Name side) {
  return searchsorted(a, v, SearchOptions{.side = side});
}
template Tensor searchsorted<0>(const Operand&, const Operand&, Name);

}  // namespace numpy
}  // namespace kassette
