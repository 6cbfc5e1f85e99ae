// nn_backend/activations.cpp - activation functions.
#include <kassette/backend/activations.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstddef>

#include "core/convert.h"
#include "core/text.h"
#include "nn_backend/one_op.h"
#include "ops/engine/dispatch.h"
#include "ops/engine/expr.h"
#include "ops/engine/error_attribution.h"
#include "ops/engine/operand.h"
#include "ops/elementwise/unary.h"

namespace kassette {
using namespace ops;
namespace backend {

namespace {

bool is_nan(const Scalar& x) { return Access::kind(x) == Scalar::kFloat && std::isnan(Access::float_value(x)); }

}  // namespace

Tensor relu(const Operand& operand, double alpha, Scalar max_value, double threshold) {
  KASSETTE_DISPATCH(relu, operand, alpha, max_value, threshold);
  Arg x(operand, DType(), {"relu", "x"});
  if (alpha == 0 && max_value.is_none() && threshold == 0) return ops::relu(x);
  if (!x.tensor().defined()) fail_empty({"relu", "x"});
  if (!x.desc().dtype.is_float()) fail_not_float({"relu", "x"}, x.desc().dtype);
  // NaN, as in the documents' formula: no element can be compared with it.
  if (std::isnan(threshold) || is_nan(max_value)) return attribute_errors("relu", [&] { return x.tensor() * NAN; });
  if (threshold == 0 && max_value.is_none()) return attribute_errors("relu", [&] { return leaky_relu(x, alpha); });

  DType dtype = x.desc().dtype;  // numbers are rounded to it, for comparisons with x
  double top = HUGE_VAL;
  if (!max_value.is_none()) {
    // at most DBL_MAX: float16 may round to infinity, which would mean that there is no top
    top = std::min(std::max(number_as(dtype, max_value, {"relu", "max_value"}), 0.0), DBL_MAX);
  }
  return attribute_errors("relu", [&] { return general_relu(x, alpha, top, rounded_to(threshold, dtype)); });
}
KASSETTE_ONE_OP(elu, (const Operand& x, double alpha), alpha)
KASSETTE_ONE_OP(softplus, (const Operand& x))
Tensor softsign(const Operand& x) {
  KASSETTE_DISPATCH(softsign, x);
  return unary<Softsign>(Arg(x, DType(), {"softsign", "x"}));
}
KASSETTE_ONE_OP(sigmoid, (const Operand& x))
KASSETTE_ONE_OP(hard_sigmoid, (const Operand& x))
KASSETTE_ONE_OP(tanh, (const Operand& x))

}  // namespace backend
}  // namespace kassette
