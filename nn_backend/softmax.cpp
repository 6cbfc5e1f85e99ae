// nn_backend/softmax.cpp - softmax.
#include <kassette/backend/softmax.h>

#include "ops/dispatch.h"
#include "ops/expr.h"
#include "ops/operand.h"

namespace kassette {
using namespace ops;
namespace backend {

Tensor softmax(const Operand& x, int axis) {
  KASSETTE_DISPATCH(softmax, x, axis);
  return ops::softmax(Arg(x, DType(), {"softmax", "x"}), axis);
}

}  // namespace backend
}  // namespace kassette
