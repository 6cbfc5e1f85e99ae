// nn_backend/comparison.cpp - comparisons.
#include <kassette/backend/comparison.h>

#include "ops/dispatch.h"
#include "ops/expr.h"

namespace kassette {
namespace backend {

Tensor equal(const Operand& x, const Operand& y) {
  KASSETTE_DISPATCH(equal, x, y);
  return kassette::equal(x, y);
}
Tensor not_equal(const Operand& x, const Operand& y) {
  KASSETTE_DISPATCH(not_equal, x, y);
  return kassette::not_equal(x, y);
}
Tensor greater(const Operand& x, const Operand& y) {
  KASSETTE_DISPATCH(greater, x, y);
  return kassette::greater(x, y);
}
Tensor greater_equal(const Operand& x, const Operand& y) {
  KASSETTE_DISPATCH(greater_equal, x, y);
  return kassette::greater_equal(x, y);
}
Tensor less(const Operand& x, const Operand& y) {
  KASSETTE_DISPATCH(less, x, y);
  return kassette::less(x, y);
}
Tensor less_equal(const Operand& x, const Operand& y) {
  KASSETTE_DISPATCH(less_equal, x, y);
  return kassette::less_equal(x, y);
}

}  // namespace backend
}  // namespace kassette
