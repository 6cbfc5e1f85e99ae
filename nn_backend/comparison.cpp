// nn_backend/comparison.cpp - comparisons.
#include <kassette/backend/comparison.h>

#include "nn_backend/one_op.h"
#include "ops/engine/expr.h"

namespace kassette {
using namespace ops;
namespace backend {

KASSETTE_ONE_OP_OF_TWO(equal)
KASSETTE_ONE_OP_OF_TWO(not_equal)
KASSETTE_ONE_OP_OF_TWO(greater)
KASSETTE_ONE_OP_OF_TWO(greater_equal)
KASSETTE_ONE_OP_OF_TWO(less)
KASSETTE_ONE_OP_OF_TWO(less_equal)

}  // namespace backend
}  // namespace kassette
