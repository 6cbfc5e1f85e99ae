// nn_backend/softmax.cpp - softmax.
#include <kassette/backend/softmax.h>

#include "nn_backend/one_op.h"
#include "ops/engine/expr.h"
#include "ops/engine/operand.h"

namespace kassette {
using namespace ops;
namespace backend {

KASSETTE_ONE_OP(softmax, (const Operand& x, int axis), axis)

}  // namespace backend
}  // namespace kassette
