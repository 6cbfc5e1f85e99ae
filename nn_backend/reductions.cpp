// nn_backend/reductions.cpp - reductions over axes.
#include <kassette/backend/reductions.h>

#include "ops/expr.h"
#include "ops/operand.h"

namespace kassette {
namespace backend {

Tensor sum(const Operand& x, const Axes& axis, bool keepdims) { return kassette::sum(Arg(x, DType(), "sum"), axis, keepdims); }
Tensor max(const Operand& x, const Axes& axis, bool keepdims) { return kassette::max(Arg(x, DType(), "max"), axis, keepdims); }
Tensor min(const Operand& x, const Axes& axis, bool keepdims) { return kassette::min(Arg(x, DType(), "min"), axis, keepdims); }
Tensor mean(const Operand& x, const Axes& axis, bool keepdims) { return kassette::mean(Arg(x, DType(), "mean"), axis, keepdims); }

}  // namespace backend
}  // namespace kassette
