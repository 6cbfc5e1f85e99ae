// nn_backend/elementwise.cpp - elementwise math.
#include <kassette/backend/elementwise.h>

#include <cmath>
#include <limits>

#include "core/convert.h"
#include "core/sparse.h"
#include "core/text.h"
#include "nn_backend/snapshot.h"
#include "nn_backend/one_op.h"
#include "ops/engine/dispatch.h"
#include "ops/engine/expr.h"
#include "ops/shape/like.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"

namespace kassette {
using namespace ops;
namespace backend {
using namespace detail;
namespace {

bool is_number(const Operand& x) { return Access::kind(x) >= Scalar::kBool && Access::kind(x) <= Scalar::kFloat; }
double number(const Operand& x) {
  if (Access::kind(x) == Scalar::kFloat) return Access::float_value(x);
  std::int64_t i = Access::int_value(x);
  return Access::kind(x) == Scalar::kUint ? static_cast<double>(static_cast<std::uint64_t>(i)) : static_cast<double>(i);
}
/// A bound, which may broadcast to x, whereas x may not broadcast to the bound.
Tensor bound_like(const Tensor& x, const Operand& operand, const char* name, ShapeCheck which) {
  Arg bound(operand, Access::desc(x).dtype, {"clip", name});
  if (!bound.tensor().defined()) fail_empty({"clip", name});
  if (is_sparse(bound.desc())) fail_sparse({"clip", name}, bound.desc());
  return assert_shape_of(which, bound, x);
}

/// Applies one bound after the other, without converting them: for integers and tensors.
Tensor clip_by_tensors(const Tensor& x, const Operand& low, const Operand& high) {
  if (is_sparse(Access::desc(x))) fail_sparse({"clip", "x"}, Access::desc(x));
  if (high.is_none())
    return low.is_none() ? copy_if_variable(x)
                         : ops::maximum(x, bound_like(x, low, "min_value", ShapeCheck::min_of_clip));
  Tensor y = ops::minimum(x, bound_like(x, high, "max_value", ShapeCheck::max_of_clip));
  return low.is_none() ? y : ops::maximum(y, bound_like(x, low, "min_value", ShapeCheck::min_of_clip));
}

}  // namespace

KASSETTE_ONE_OP(square, (const Operand& x))
KASSETTE_ONE_OP(abs, (const Operand& x))
KASSETTE_ONE_OP(sqrt, (const Operand& x))
KASSETTE_ONE_OP(exp, (const Operand& x))
KASSETTE_ONE_OP(log, (const Operand& x))
KASSETTE_ONE_OP(log1p, (const Operand& x))
Tensor round(const Operand& x) {
  KASSETTE_DISPATCH(round, x);
  Arg t(x, DType(), {"round", "x"});
  if (!t.tensor().defined() || !t.tensor().dtype().is_integer()) return ops::round(t);
  return attribute_errors("round", [&] { return copy_if_variable(t); });
}
KASSETTE_ONE_OP(sign, (const Operand& x))
Tensor pow(const Operand& x, const Operand& a) {
  KASSETTE_DISPATCH(pow, x, a);
  // x * x has the bits and the gradients of pow(x, 2), and takes a fraction of its time.
  if (is_number(a) && number(a) == 2 && is_tensor_operand(x))
    return attribute_errors("pow", [&] { return ops::square(tensor_of(x)); });
  return ops::pow(x, a);
}
Tensor clip(const Operand& x, const Operand& min_value, const Operand& max_value) {
  KASSETTE_DISPATCH(clip, x, min_value, max_value);
  constexpr double inf = std::numeric_limits<double>::infinity();
  Arg t(x, DType(), {"clip", "x"});
  if (!t.tensor().defined()) fail_empty({"clip", "x"});
  bool numbers = (is_number(min_value) || min_value.is_none()) && (is_number(max_value) || max_value.is_none());
  if (!numbers || !t.desc().dtype.is_float()) {
    bool crossed = is_number(min_value) && is_number(max_value) && number(max_value) < number(min_value);
    return attribute_errors("clip", [&] { return clip_by_tensors(t, min_value, crossed ? min_value : max_value); });
  }
  const DType dtype = t.desc().dtype;
  double low = min_value.is_none() ? -inf : number_as(dtype, min_value, {"clip", "min_value"}),
         high = max_value.is_none() ? inf : number_as(dtype, max_value, {"clip", "max_value"});
  if (std::isnan(low) || std::isnan(high))  // which no comparison finds
    return attribute_errors("clip", [&] { return clip_by_tensors(t, min_value, max_value); });
  return ops::clip(t, low, high < low ? low : high);
}
KASSETTE_ONE_OP_OF_TWO(maximum)
KASSETTE_ONE_OP_OF_TWO(minimum)
KASSETTE_ONE_OP(sin, (const Operand& x))
KASSETTE_ONE_OP(cos, (const Operand& x))

}  // namespace backend
}  // namespace kassette
