// nn_backend/activations.cpp - activation functions.
#include <kassette/backend/activations.h>

#include <algorithm>

#include "core/convert.h"
#include "core/text.h"
#include "ops/dispatch.h"
#include "ops/expr.h"
#include "ops/operand.h"
#include "ops/unary.h"

namespace kassette {
namespace backend {

Tensor relu(const Operand& operand, double alpha, Scalar max_value, double threshold) {
  KASSETTE_DISPATCH(relu, operand, alpha, max_value, threshold);
  Arg x(operand, DType(), "relu");
  if (alpha == 0 && max_value.is_none() && threshold == 0) return kassette::relu(x);
  if (!x.tensor().defined()) fail<ValueError>("relu: argument 1 is an empty Tensor (an uninitialised variable?)");
  if (!x.body().dtype.is_float())
    fail<TypeError>("relu: ", x.body().dtype, " is not a float dtype; cast it first (K::cast)");
  if (threshold == 0 && max_value.is_none()) return leaky_relu(x, alpha);

  Tensor above = threshold == 0 ? kassette::relu(x) : where(less(x.tensor(), threshold), 0.0, x.tensor());
  if (!max_value.is_none()) {
    double top;
    write_scalar(&top, float64, max_value, "relu");
    above = minimum(above, std::max(top, 0.0));
    if (threshold < 0) above = maximum(above, 0.0);
  }
  if (alpha == 0) return above;
  return above + where(less(x.tensor(), threshold), x.tensor() - threshold, 0.0) * alpha;
}
Tensor elu(const Operand& x, double alpha) {
  KASSETTE_DISPATCH(elu, x, alpha);
  return kassette::elu(Arg(x, DType(), "elu"), alpha);
}
Tensor softplus(const Operand& x) {
  KASSETTE_DISPATCH(softplus, x);
  return kassette::softplus(Arg(x, DType(), "softplus"));
}
Tensor softsign(const Operand& x) {
  KASSETTE_DISPATCH(softsign, x);
  return unary<Softsign>(Arg(x, DType(), "softsign"));
}
Tensor sigmoid(const Operand& x) {
  KASSETTE_DISPATCH(sigmoid, x);
  return kassette::sigmoid(Arg(x, DType(), "sigmoid"));
}
Tensor hard_sigmoid(const Operand& x) {
  KASSETTE_DISPATCH(hard_sigmoid, x);
  return kassette::hard_sigmoid(Arg(x, DType(), "hard_sigmoid"));
}
Tensor tanh(const Operand& x) {
  KASSETTE_DISPATCH(tanh, x);
  return kassette::tanh(Arg(x, DType(), "tanh"));
}

}  // namespace backend
}  // namespace kassette
