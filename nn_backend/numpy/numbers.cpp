// nn_backend/numpy/numbers.cpp - numbers of options and of tensors.
#include "nn_backend/numpy/numbers.h"

#include <cmath>

#include "nn_backend/numpy/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "ops/engine/stop.h"
#include "ops/reduce/reduce.h"

namespace kassette::numpy {

Tensor float_value_of(const At& at, const Operand& x) {
  Tensor t = as_float(ArrayArg(x, at));
  if (t.symbolic()) fail<ValueError>(at, "depends on a placeholder", kExpected, "it must be known");
  return t;
}
Tensor start_of(const At& at, const Operand& x) {
  if (!context().recording)
    fail<ValueError>({at.function}, "is called while gradients are off", kRemedy, "end the scope of K::no_gradient");
  return ops::stop_gradient(float_value_of(at, x));
}
double unit_of(DType dtype) {
  return dtype == float64 ? 0x1p-52 : dtype == float32 ? 0x1p-23 : dtype == float16 ? 0x1p-10 : 0x1p-7;
}
double number_of(const At& at, const Scalar& x) {
  if (Access::kind(x) == Scalar::kFloat) return Access::float_value(x);
  if (Access::kind(x) == Scalar::kInt) return static_cast<double>(Access::int_value(x));
  fail<TypeError>(at, "is no number", kExpected, "it must be a number or None");
}
double dot_of(const Tensor& x, const Tensor& y) { return ops::sum(x * y).item<double>(); }
double norm_of(const Tensor& x) { return std::sqrt(dot_of(x, x)); }
double largest_of(const Tensor& x) { return x.size() == 0 ? 0 : ops::max(ops::abs(x)).item<double>(); }

}  // namespace kassette::numpy
