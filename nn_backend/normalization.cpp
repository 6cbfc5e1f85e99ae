// nn_backend/normalization.cpp - normalisation.
#include <kassette/backend/normalization.h>

#include "core/text.h"
#include "ops/axes.h"
#include "ops/expr.h"
#include "ops/operand.h"

namespace kassette {
namespace backend {

Tensor l2_normalize(const Operand& operand, const Axes& axis) {
  Arg arg(operand, DType(), "l2_normalize");
  const Tensor& x = arg;
  if (!x.defined()) fail<ValueError>("l2_normalize: an empty Tensor (an uninitialised variable?)");
  std::int64_t code = checked_axes("l2_normalize", x, axis, /*keepdims=*/true);
  DType dtype = x.dtype();
  if (!dtype.is_float()) fail<TypeError>("l2_normalize: ", dtype, " is not a float dtype; cast it first (K::cast)");
  // 1e-12 is 0 in float16.
  Tensor wide = dtype.size() < 4 ? cast(x, float32) : x;
  return cast(wide / sqrt(maximum(sum_by(square(wide), code), 1e-12)), dtype);
}

}  // namespace backend
}  // namespace kassette
