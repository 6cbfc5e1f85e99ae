// nn_backend/numpy/segments.cpp - sums of rows that belong to one place.
#include "nn_backend/numpy/segments.h"

#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/shaping.h"

namespace kassette::numpy {

Tensor number_of_places(const Tensor& places, const Scalar& given, const char* what) {
  if (given.is_none()) return (ops::maximum(ops::max(ops::cast(places, int64)), -1) + 1).to(cpu);
  Tensor n = ops::scalar_tensor(given, int64, {what, "num_segments"});
  if (n.item<std::int64_t>() < 0)
    fail<ValueError>({what, "num_segments"}, "is ", n.item<std::int64_t>(), kExpected, "it must not be negative");
  return n;
}
Tensor add_at(const Tensor& x, const Tensor& places, const Tensor& n) {
  const Tensor rows = places_below(n, cpu);
  SizesOf shape;
  shape.push_size(rows, 0);
  for (int i = 1; i < Access::desc(x).rank; ++i) shape.push_size(x, i);
  const Tensor like = ops::broadcast_to(ops::scalar_tensor(0, x.dtype()).to(x.device()), shape);
  // As many rows as places: reshape refuses others where the sizes were not known before.
  SizesOf rows_of;
  rows_of.push_size(places, 0);
  for (int i = 1; i < Access::desc(x).rank; ++i) rows_of.push_size(x, i);
  const bool known = Access::desc(x).dims[0] >= 0 && Access::desc(places).dims[0] >= 0;
  const Tensor parts = known ? x : ops::reshape(x, rows_of);
  return ops::apply1(ops::gather_grad_like_op, ops::GatherAttrs{0, ops::Wrap::refuse}, {parts, places, like});
}

}  // namespace kassette::numpy
