// nn_backend/comparison.cpp - comparisons.
#include <kassette/backend/comparison.h>

#include "ops/engine/dispatch.h"
#include "ops/engine/expr.h"

namespace kassette {
using namespace ops;
namespace backend {

Tensor equal(const Operand& x, const Operand& y) {
  KASSETTE_DISPATCH(equal, x, y);
  return ops::equal(x, y);
}
Tensor not_equal(const Operand& x, const Operand& y) {
  KASSETTE_DISPATCH(not_equal, x, y);
  return ops::not_equal(x, y);
}
Tensor greater(const Operand& x, const Operand& y) {
  KASSETTE_DISPATCH(greater, x, y);
  return ops::greater(x, y);
}
Tensor greater_equal(const Operand& x, const Operand& y) {
  KASSETTE_DISPATCH(greater_equal, x, y);
  return ops::greater_equal(x, y);
}
Tensor less(const Operand& x, const Operand& y) {
  KASSETTE_DISPATCH(less, x, y);
  return ops::less(x, y);
}
Tensor less_equal(const Operand& x, const Operand& y) {
  KASSETTE_DISPATCH(less_equal, x, y);
  return ops::less_equal(x, y);
}

}  // namespace backend
}  // namespace kassette
