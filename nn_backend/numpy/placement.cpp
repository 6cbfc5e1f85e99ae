// nn_backend/numpy/placement.cpp - tensors with other values at some indices.
#include <kassette/numpy/placement.h>

#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "ops/order/order.h"
#include "ops/reduce/reduce_arg.h"
#include "ops/shape/checked.h"
#include "ops/shape/like.h"
#include "ops/shape/put.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace {

using ops::attribute_errors;

/// x.at(columns of the indices).put(updates)
Tensor scattered(const char* what, const Tensor& x, const Operand& indices, const Operand& updates,
                 Tensor (Indexed::*put)(const Operand&) const) {
  const ArrayArg array(indices, {what, "indices"}, int64);
  const Tensor places = as_indices(beside(x, indices, array, {what, "indices"}), what);
  const int last = known_rank(places, {what, "indices"}) - 1, rank = known_rank(x, {what, "x"});
  if (last < 0)
    fail<ValueError>({what, "indices"}, "is a number", kExpected, "the last axis must hold an integer for each axis");
  const std::int64_t n = known_size(places, last, {what, "indices"});
  if (n < 1 || n > rank)
    fail<ValueError>({what, "indices"}, "has shape ", Access::desc(places), kExpected, "x has ", rank,
                     rank == 1 ? " axis" : " axes");
  const Tensors columns = ops::unstack(places, static_cast<int>(n), last);
  Index i[kMaxRank];
  for (std::int64_t k = 0; k < n; ++k) i[k] = columns[k];
  return (x.at(i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7]).*put)(updates);
}
Tensor scattered(const char* what, const Operand& x, const Operand& indices, const Operand& updates,
                 Tensor (Indexed::*put)(const Operand&) const) {
  return of_array(what, x, [&](const Tensor& t) { return scattered(what, t, indices, updates, put); });
}

}  // namespace

Tensor put_along_axis(const Operand& x, const Operand& indices, const Operand& values, const Axes& axis) {
  constexpr const char* kWhat = "put_along_axis";
  return of_array(kWhat, x, [&](const Tensor& t) {
    const ArrayArg at(indices, {kWhat, "indices"}, int64), given(values, {kWhat, "values"}, t.dtype());
    const Tensor v = beside(t, values, given, {kWhat, "values"});
    Tensor y = t, places = ops::cast(as_indices(beside(t, indices, at, {kWhat, "indices"}), kWhat), int64);
    if (axis.size_ < 0) places = ops::flatten(places, 0);
    const int along = one_axis_of(kWhat, y, axis);
    const TensorDesc &a = Access::desc(y), &b = Access::desc(places);
    if (known_rank(places, {kWhat, "indices"}) != a.rank)
      fail<ValueError>({kWhat, "indices"}, "have shape ", b, " and x ", a, kExpected, "the ranks must be the same");
    bool same = true;
    for (int i = 0; i < a.rank; ++i) same = same && (i == along || (a.dims[i] >= 0 && a.dims[i] == b.dims[i]));
    if (!same)  // zeros that have size 1 along the axis, and the sizes of x along the others
      places = places + ops::cast(ops::zeros_of(ops::any_of(y, along, /*keepdims=*/true)), int64);
    const Tensor flat = ops::flatten(y, 0), positions = ops::flat_places(places, y, along);
    // As many values in another shape are refused too.
    auto fits = [=](const TensorSpec& d, const TensorSpec& places_of) {
      if (!ops::broadcasts_to(d, places_of))
        fail<ValueError>({kWhat, "values"}, "of shape ", d, " do not broadcast to ", places_of,
                         ", the shape of the indices");
    };
    const Tensor fitting =
        Access::desc(v).rank == 0 ? v : ops::broadcast_like(ops::checked(v, positions, fits), positions);
    const ops::GatherAttrs how{0, ops::Wrap::refuse};
    return ops::reshape_like(ops::apply1(ops::index_set_op, how, {flat, positions, fitting}), t);
  });
}
Tensor put(const Operand& x, const Operand& indices, const Operand& values) {
  return of_array("put", x, [&](const Tensor& t) {
    const ArrayArg at(indices, {"put", "indices"}, int64);
    const Tensor flat = ops::flatten(t, 0), places = as_indices(beside(t, indices, at, {"put", "indices"}), "put");
    return ops::reshape_like(flat.at(places).set(values), t);
  });
}

Tensor scatter(const Operand& indices, const Operand& values, const Dims& shape) {
  return attribute_errors("scatter", [&] {
    const ArrayArg given(values, {"scatter", "values"});
    const bool list = ops::is_tensor_operand(indices) && !ops::is_tensor_operand(values);
    const Tensor v = list ? given.tensor().to(ops::tensor_of(indices).device()) : given.tensor();
    const Tensor zeros = ops::broadcast_to(ops::number_like(0, v), shape);
    return scattered("scatter", zeros, indices, v, &Indexed::set);
  });
}
Tensor scatter_update(const Operand& x, const Operand& indices, const Operand& updates) {
  return scattered("scatter_update", x, indices, updates, &Indexed::set);
}
Tensor scatter_add(const Operand& x, const Operand& indices, const Operand& updates) {
  return scattered("scatter_add", x, indices, updates, &Indexed::add);
}
Tensor scatter_multiply(const Operand& x, const Operand& indices, const Operand& updates) {
  return scattered("scatter_multiply", x, indices, updates, &Indexed::multiply);
}
Tensor scatter_max(const Operand& x, const Operand& indices, const Operand& updates) {
  return scattered("scatter_max", x, indices, updates, &Indexed::max);
}
Tensor scatter_min(const Operand& x, const Operand& indices, const Operand& updates) {
  return scattered("scatter_min", x, indices, updates, &Indexed::min);
}
Tensor slice_update(const Operand& x, const Operand& start_indices, const Operand& updates) {
  constexpr const char* kWhat = "slice_update";
  return of_array(kWhat, x, [&](const Tensor& t) {
    const ArrayArg starts(start_indices, {kWhat, "start_indices"}, int64),
        given(updates, {kWhat, "updates"}, t.dtype());
    Tensor v = beside(t, updates, given, {kWhat, "updates"});
    const Tensor list = beside(t, start_indices, starts, {kWhat, "start_indices"});
    const int rank = known_rank(t, {kWhat, "x"});
    if (known_rank(v, {kWhat, "updates"}) != rank)
      fail<ValueError>({kWhat, "updates"}, "have shape ", Access::desc(v), " and x ", Access::desc(t), kExpected,
                       "the ranks must be the same");
    auto fits = [=](const TensorSpec& s) {
      if (differ(s.rank, 1) || (s.rank == 1 && differ(s.dims[0], rank)))
        fail<ValueError>({kWhat, "start_indices"}, "have shape ", s, kExpected, "there must be one for each axis of x");
    };
    if (rank == 0)  // the indices are not read
      return ops::checked(v, list, [fits](const TensorSpec&, const TensorSpec& s) { fits(s); });
    const Tensor each = ops::checked(list, fits);
    const Tensor from = ops::cast(as_indices(each, kWhat, "start_indices"), int64);
    const Tensors first = ops::unstack(from, rank, 0);
    Tensor at[kMaxRank];
    Index i[kMaxRank];
    for (int axis = 0; axis < rank; ++axis) {
      const Tensor places = places_along(v, axis) + first[axis];
      // Of the places of x, so that one outside is refused, a negative one too.
      at[axis] = ops::gather(places_along(t, axis), places, 0);
      for (int more = axis + 1; more < rank; ++more) at[axis] = ops::expand_dims(at[axis], -1);
      i[axis] = at[axis];
    }
    return t.at(i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7]).set(v);
  });
}

}  // namespace numpy
}  // namespace kassette
