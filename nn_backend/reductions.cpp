// nn_backend/reductions.cpp - reductions over axes.
#include <kassette/backend/reductions.h>

#include "core/half.h"
#include "core/sparse.h"
#include "core/text.h"
#include "ops/engine/axes.h"
#include "ops/elementwise/cast.h"
#include "nn_backend/one_op.h"
#include "ops/engine/dispatch.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/expr.h"
#include "ops/engine/operand.h"

namespace kassette {
using namespace ops;
namespace backend {
namespace {

/// bool and integers as floatx.
Tensor as_floats(const Tensor& x) { return !x.defined() || x.dtype().is_float() ? x : cast(x, default_float()); }
/// The mean without NaN. Halves are widened: their sums may overflow, and they do not count beyond 2048.
Tensor mean_of_numbers(const Tensor& x, const Axes& axis, bool keepdims) {
  const DType dtype = x.defined() ? Access::desc(x).dtype : DType();
  if (!dtype.is_float()) return ops::mean(as_floats(x), axis, keepdims);
  if (is_half(dtype)) return cast(mean_of_numbers(cast(x, float32), axis, keepdims), dtype);
  const Tensor there = apply1(cast_op, CastAttrs{dtype}, {equal(x, x)});
  const AxisSet axes = axis_set("nanmean", x, axis, keepdims);
  return sum_by(where_positive(x, there), axes) / sum_by(there, axes);
}
const Axes& one_axis(const char* what, const Axes& axis) {
  if (axis.size_ >= 0 && axis.size_ != 1)
    fail<ValueError>({what, "axis"}, "lists ", axis.size_, " axes", kExpected, "it must be one, or None");
  return axis;
}

}  // namespace

KASSETTE_ONE_OP(sum, (const Operand& x, const Axes& axis, bool keepdims), axis, keepdims)
KASSETTE_ONE_OP(prod, (const Operand& x, const Axes& axis, bool keepdims), axis, keepdims)
KASSETTE_ONE_OP(max, (const Operand& x, const Axes& axis, bool keepdims), axis, keepdims)
KASSETTE_ONE_OP(min, (const Operand& x, const Axes& axis, bool keepdims), axis, keepdims)
Tensor mean(const Operand& x, const Axes& axis, bool keepdims) {
  KASSETTE_DISPATCH(mean, x, axis, keepdims);
  Arg t(x, DType(), {"mean", "x"});
  const Tensor& numbers = t;
  // The op converts bool and integers block by block, and not as a whole.
  const bool blocks = default_float() == float32 && numbers.defined() && numbers.device() == cpu && !is_sparse(numbers);
  return ops::mean(blocks ? numbers : as_floats(t), axis, keepdims);
}
Tensor nanmean(const Operand& x, const Axes& axis, bool keepdims) {
  KASSETTE_DISPATCH(nanmean, x, axis, keepdims);
  Arg t(x, DType(), {"nanmean", "x"});
  return attribute_errors("nanmean", [&] { return mean_of_numbers(t, axis, keepdims); });
}
Tensor var(const Operand& x, const Axes& axis, bool keepdims) {
  KASSETTE_DISPATCH(var, x, axis, keepdims);
  return ops::var(as_floats(Arg(x, DType(), {"var", "x"})), axis, keepdims);
}
Tensor std(const Operand& x, const Axes& axis, bool keepdims) {
  KASSETTE_DISPATCH(std, x, axis, keepdims);
  return stddev(as_floats(Arg(x, DType(), {"std", "x"})), axis, keepdims);
}
Tensor any(const Operand& x, const Axes& axis, bool keepdims) {
  KASSETTE_DISPATCH(any, x, axis, keepdims);
  return any_of(Arg(x, DType(), {"any", "x"}), axis, keepdims);
}
Tensor all(const Operand& x, const Axes& axis, bool keepdims) {
  KASSETTE_DISPATCH(all, x, axis, keepdims);
  return all_of(Arg(x, DType(), {"all", "x"}), axis, keepdims);
}
Tensor argmax(const Operand& x, const Axes& axis) {
  KASSETTE_DISPATCH(argmax, x, axis);
  return ops::argmax(Arg(x, DType(), {"argmax", "x"}), one_axis("argmax", axis));
}
Tensor argmin(const Operand& x, const Axes& axis) {
  KASSETTE_DISPATCH(argmin, x, axis);
  return ops::argmin(Arg(x, DType(), {"argmin", "x"}), one_axis("argmin", axis));
}
KASSETTE_ONE_OP(logsumexp, (const Operand& x, const Axes& axis, bool keepdims), axis, keepdims)
KASSETTE_ONE_OP(cumsum, (const Operand& x, int axis), axis)
KASSETTE_ONE_OP(cumprod, (const Operand& x, int axis), axis)

}  // namespace backend
}  // namespace kassette
