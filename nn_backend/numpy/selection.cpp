// nn_backend/numpy/selection.cpp - NumPy's functions that select elements.
#include <kassette/numpy/selection.h>

#include <algorithm>

#include "core/rank.h"
#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "nn_backend/numpy/segments.h"
#include "ops/order/order.h"
#include "ops/reduce/reduce_arg.h"
#include "ops/shape/checked.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace {

using ops::attribute_errors;

/// Throws ValueError if x is known to have fewer than two axes.
void check_matrix(const Tensor& x, const char* what) {
  const TensorDesc& d = Access::desc(x);
  if (d.rank == 0 || d.rank == 1)
    fail<ValueError>({what, "x"}, "has shape ", d, kExpected, "the rank must be at least 2");
}
/// j - i of the elements [i, j] of a matrix, by the positions along its axes.
Tensor diagonal_numbers(const Tensor& rows, const Tensor& columns) {
  return ops::expand_dims(columns, 0) - ops::expand_dims(rows, 1);
}
Tensor diagonal_numbers(const Tensor& x) { return diagonal_numbers(places_along(x, -2), places_along(x, -1)); }
/// The elements [i, j] with j - i on one side of k, 0 elsewhere.
Tensor triangle(const char* what, Tensor (*compare)(const Operand&, const Operand&), const Operand& x, std::int64_t k) {
  return attribute_errors(what, [&] {
    const ArrayArg array(x, {what, "x"});
    check_matrix(array, what);
    const Tensor& t = array.tensor();
    return ops::where(compare(diagonal_numbers(t), k), t, ops::zeros_of(t));
  });
}

/// The matrix with that diagonal k.
Tensor matrix_of(const Tensor& v, std::int64_t k) {
  ops::Pads more;
  more.rank = 1;
  more.after[0] = k < 0 ? -k : k;
  const Tensor padded = ops::pad(v, more), places = places_along(padded, 0);
  // The element that belongs into row i, or for k < 0 into column j.
  const Tensor spread = ops::expand_dims(padded, k < 0 ? 0 : 1);
  return ops::where(ops::equal(diagonal_numbers(places, places), k), spread, ops::zeros_of(spread));
}

/// t, broadcast with `none`, which is false.
Tensor spread(const Tensor& t, const Tensor& none) { return ops::where(none, ops::zeros_of(t), t); }

}  // namespace

Tensor where(const Operand& condition, const Operand& x, const Operand& y) {
  return attribute_errors("where", [&] {
    const ArrayArg mask(condition, {"where", "condition"});
    const Pair both(x, y, "where");
    return ops::where(ops::cast(mask, bool_), both.x(), both.y());
  });
}

Tensor select(const Tensors& conditions, const Tensors& choices, const Operand& otherwise) {
  return attribute_errors("select", [&] {
    if (conditions.empty() || conditions.size() != choices.size())
      fail<ValueError>({"select", "choices"}, "are ", choices.size(), " and there are ", conditions.size(),
                       " conditions", kExpected, "there must be one for each condition");
    for (const Tensors* list : {&conditions, &choices})
      for (const Tensor& t : *list) {
        if (!t.defined()) fail_empty({"select", list == &choices ? "choices" : "conditions"});
        check_device(t, conditions[0], {"select", list == &choices ? "choices" : "conditions"});
      }
    Tensor y;
    for (std::int64_t i = conditions.size(); i-- > 0;)
      y = where(conditions[i], choices[i], y.defined() ? Operand(y) : otherwise);
    return y;
  });
}

Tensor choose(const Operand& index, const Tensors& choices) {
  return attribute_errors("choose", [&] {
    const std::int64_t n = choices.size();
    if (n == 0) fail<ValueError>({"choose", "choices"}, "is an empty list", kExpected, "there must be a choice");
    const ArrayArg given(index, {"choose", "index"}, int64);
    for (const Tensor& t : choices) {
      if (!t.defined()) fail_empty({"choose", "choices"});
      check_device(t, choices[0], {"choose", "choices"});
    }
    const Tensor array = beside(choices[0], index, given, {"choose", "index"});
    // Of the numbers of the choices, so that another one is refused.
    const Tensor numbers = places_below(ops::scalar_tensor(n, int64), array.device());
    const Tensor number = ops::gather(numbers, as_indices(array, "choose", "index"), 0);
    Tensor y = choices[n - 1];
    for (std::int64_t i = 0; i < std::max<std::int64_t>(n - 1, 1); ++i) y = where(ops::equal(number, i), choices[i], y);
    return y;
  });
}

Tensor piecewise(const Operand& x, const Tensors& conditions,
                 std::initializer_list<Callable<Tensor(const Tensor&)>> functions) {
  return of_array("piecewise", x, [&](const Tensor& t) {
    const std::int64_t n = conditions.size(), given = static_cast<std::int64_t>(functions.size());
    if (given != n && given != n + 1)
      fail<ValueError>({"piecewise", "functions"}, "are ", given, " and there are ", n, " conditions", kExpected,
                       "there must be one for each condition, and one more for the others");
    Tensor y = ops::zeros_of(t), none;
    auto f = functions.begin();
    for (std::int64_t i = 0; i < given; ++i) {
      if (i < n) {
        if (!conditions[i].defined()) fail_empty({"piecewise", "conditions"});
        none = i ? ops::logical_or(none, conditions[i]) : conditions[0];
      }
      const Tensor mask = i < n ? conditions[i] : ops::logical_not(none);
      y = y.at(mask).set((*f++)(t(mask)));
    }
    return y;
  });
}

Tensor take(const Operand& x, const Operand& indices, const Axes& axis) {
  return attribute_errors("take", [&] {
    const ArrayArg array(x, {"take", "x"}), at(indices, {"take", "indices"}, int64);
    one_axis({"take", "axis"}, axis);
    return take_at(axis.size_ < 0 ? ops::flatten(array, 0) : array.tensor(), at, axis.size_ < 0 ? 0 : axis.axes_[0],
                   "take");
  });
}

Tensor take_along_axis(const Operand& x, const Operand& indices, const Axes& axis) {
  constexpr const char* kWhat = "take_along_axis";
  return attribute_errors(kWhat, [&] {
    const ArrayArg array(x, {kWhat, "x"}), at(indices, {kWhat, "indices"}, int64);
    Tensor t = array, places = ops::cast(as_indices(at, kWhat), int64);
    if (one_axis({kWhat, "axis"}, axis).size_ < 0) {
      t = ops::flatten(t, 0);
      places = ops::flatten(places, 0);
    }
    const int along = front_axis(t, axis.size_ < 0 ? 0 : axis.axes_[0], kWhat);
    const TensorDesc &a = Access::desc(t), &b = Access::desc(places);
    if (known_rank(places, {kWhat, "indices"}) != a.rank)
      fail<ValueError>({kWhat, "indices"}, "have shape ", b, " and x ", a, kExpected, "the ranks must be the same");
    bool same = true;
    for (int i = 0; i < a.rank; ++i) same = same && (i == along || (a.dims[i] >= 0 && a.dims[i] == b.dims[i]));
    if (!same) {  // zeros that have size 1 along the axis, and the other's shape along the others
      const Tensor of_x = ops::zeros_of(ops::any_of(t, along, /*keepdims=*/true)),
                   of_places = ops::zeros_of(ops::any_of(places, along, /*keepdims=*/true));
      places = places + ops::cast(of_x, int64);
      t = spread(t, of_places);
    }
    return ops::gather(ops::flatten(t, 0), ops::flat_places(places, t, along), 0);
  });
}

Tensor segment_sum(const Operand& x, const Operand& segment_ids, const Scalar& num_segments) {
  constexpr const char* kWhat = "segment_sum";
  return attribute_errors(kWhat, [&] {
    const ArrayArg array(x, {kWhat, "x"}), ids(segment_ids, {kWhat, "segment_ids"}, int64);
    (void)known_rank(ids, {kWhat, "segment_ids"});
    (void)known_rank(array, {kWhat, "x"});
    const Tensor given = beside(array, segment_ids, ids, {kWhat, "segment_ids"});
    const Tensor fitting = ops::checked(given, array, [=](const TensorSpec& b, const TensorSpec& a) {
      if (b.rank != 1 || a.rank == 0 || differ(a.dims[0], b.dims[0]))
        fail<ValueError>({kWhat, "segment_ids"}, "have shape ", b, " and x ", a, kExpected,
                         "there must be one for each row");
    });
    const Tensor places = as_indices(fitting, kWhat, "segment_ids");
    const Tensor t = array.tensor().dtype().is_bool() ? ops::cast(array, int64) : array.tensor();
    return add_at(t, places, number_of_places(places, num_segments, kWhat));
  });
}

Tensor tril(const Operand& x, std::int64_t k) { return triangle("tril", ops::less_equal, x, k); }
Tensor triu(const Operand& x, std::int64_t k) { return triangle("triu", ops::greater_equal, x, k); }
Tensor tri(std::int64_t n, const Scalar& m, std::int64_t k, DType dtype) {
  return attribute_errors("tri", [&] {
    if (n < 0) fail<ValueError>({"tri", "n"}, "is ", n, kExpected, "it must not be negative");
    const Tensor rows = ops::scalar_tensor(n, int64),
                 columns = m.is_none() ? rows : ops::scalar_tensor(m, int64, {"tri", "m"});
    if (columns.item<std::int64_t>() < 0)
      fail<ValueError>({"tri", "m"}, "is ", columns.item<std::int64_t>(), kExpected, "it must not be negative");
    const Device device = context().default_device;
    const Tensor ones = ops::less_equal(diagonal_numbers(places_below(rows, device), places_below(columns, device)), k);
    return ops::cast(ones, dtype.given() ? dtype : ops::default_float());
  });
}

Tensor diag(const Operand& v, std::int64_t k) {
  return attribute_errors("diag", [&] {
    const ArrayArg array(v, {"diag", "v"});
    const int rank = known_rank(array, {"diag", "v"});
    if (rank == 1) return matrix_of(array, k);
    if (rank == 2) return diagonal_of(array, 0, 1, k);
    fail<ValueError>({"diag", "v"}, "has shape ", array.desc(), kExpected, "the rank must be 1 or 2");
  });
}
Tensor diagflat(const Operand& v, std::int64_t k) {
  return attribute_errors("diagflat", [&] { return matrix_of(ops::flatten(ArrayArg(v, {"diagflat", "v"}), 0), k); });
}
Tensor diagonal(const Operand& x, std::int64_t offset, int axis1, int axis2) {
  return attribute_errors("diagonal", [&] {
    const ArrayArg array(x, {"diagonal", "x"});
    check_matrix(array, "diagonal");
    const int first = front_axis(array, axis1, "diagonal", "axis1"),
              second = front_axis(array, axis2, "diagonal", "axis2");
    if (first == second) fail<ValueError>({"diagonal", "axis2"}, "is ", axis2, kExpected, "it must not be axis1");
    return diagonal_of(array, first, second, offset);
  });
}

}  // namespace numpy
}  // namespace kassette
