// nn_backend/numpy/indices.cpp - indices of positions, triangles and diagonals.
#include <kassette/numpy/indices.h>
#include <kassette/numpy/selection.h>

#include <algorithm>
#include <vector>

#include "core/rank.h"
#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "ops/shape/positions.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace {

using ops::attribute_errors;

/// The indices themselves, if all are of an axis of n elements. Else throws ValueError.
Tensor checked(const Tensor& indices, std::int64_t n) {
  return ops::gather(places_below(ops::scalar_tensor(n, int64), indices.device()), indices, 0);
}
TensorSpec known_shape(const Dims& shape, const char* what, const char* name) {
  const TensorSpec to = ops::shape_from(ops::dims_tensor(shape, what, name), int64, what, name);
  if (to.rank == 0) fail<ValueError>({what, name}, "is ()", kExpected, "it must have an axis");
  return to;
}

}  // namespace

Tensors unravel_index(const Operand& indices, const Dims& shape) {
  constexpr const char* kWhat = "unravel_index";
  return attribute_errors(kWhat, [&] {
    const ArrayArg array(indices, {kWhat, "indices"}, int64);
    const TensorSpec to = known_shape(shape, kWhat, "shape");
    Tensor rest = ops::cast(as_indices(array, kWhat), int64);
    std::vector<Tensor> at(static_cast<std::size_t>(to.rank));
    for (int axis = to.rank - 1; axis > 0; --axis) {
      const long by = std::max<long>(to.dims[axis], 1);
      at[static_cast<std::size_t>(axis)] = rest % by;
      rest = kassette::floor_divide(rest, by);
    }
    at[0] = checked(rest, to.numel() ? to.dims[0] : 0);
    return Tensors(at);
  });
}
Tensor ravel_multi_index(const Tensors& multi_index, const Dims& dims) {
  constexpr const char* kWhat = "ravel_multi_index";
  return attribute_errors(kWhat, [&] {
    const TensorSpec to = known_shape(dims, kWhat, "dims");
    if (multi_index.size() != to.rank)
      fail<ValueError>({kWhat, "multi_index"}, "lists ", multi_index.size(), " tensors", kExpected, "dims has ",
                       to.rank, to.rank == 1 ? " axis" : " axes");
    for (const Tensor& t : multi_index) {
      if (!t.defined()) fail_empty({kWhat, "multi_index"});
      check_device(t, multi_index[0], {kWhat, "multi_index"});
    }
    Tensor position;
    for (int axis = 0; axis < to.rank; ++axis) {
      const Tensor at = checked(as_indices(multi_index[axis], kWhat, "multi_index"), to.dims[axis]);
      position = axis == 0 ? at : position * static_cast<long>(to.dims[axis]) + at;
    }
    return position;
  });
}
Tensors tril_indices(std::int64_t n, std::int64_t k, const Scalar& m) {
  return attribute_errors("tril_indices", [&] { return ops::nonzero_indices(tri(n, m, k, bool_)); });
}
Tensors triu_indices(std::int64_t n, std::int64_t k, const Scalar& m) {
  return attribute_errors("triu_indices",
                          [&] { return ops::nonzero_indices(ops::logical_not(tri(n, m, k - 1, bool_))); });
}
Tensors diag_indices(std::int64_t n, std::int64_t ndim) {
  return attribute_errors("diag_indices", [&] {
    if (n < 0) fail<ValueError>({"diag_indices", "n"}, "is ", n, kExpected, "it must not be negative");
    if (ndim < 1 || ndim > kMaxRank)
      fail<ValueError>({"diag_indices", "ndim"}, "is ", ndim, kExpected, "it must be in [1, ", kMaxRank, "]");
    const Tensor places = places_below(ops::scalar_tensor(n, int64), context().default_device);
    return Tensors(std::vector<Tensor>(static_cast<std::size_t>(ndim), places));
  });
}

}  // namespace numpy
}  // namespace kassette
