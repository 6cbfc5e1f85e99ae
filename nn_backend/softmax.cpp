// nn_backend/softmax.cpp - softmax.
#include <kassette/backend/softmax.h>

#include "ops/expr.h"
#include "ops/operand.h"

namespace kassette {
namespace backend {

Tensor softmax(const Operand& x, int axis) { return kassette::softmax(Arg(x, DType(), "softmax"), axis); }

}  // namespace backend
}  // namespace kassette
