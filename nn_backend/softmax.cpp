// nn_backend/softmax.cpp - softmax.
#include <kassette/backend/softmax.h>

#include "ops/engine/dispatch.h"
#include "ops/engine/expr.h"
#include "ops/engine/operand.h"

namespace kassette {
using namespace ops;
namespace backend {

Tensor softmax(const Operand& x, int axis) {
  KASSETTE_DISPATCH(softmax, x, axis);
  return ops::softmax(Arg(x, DType(), {"softmax", "x"}), axis);
}

}  // namespace backend
}  // namespace kassette
