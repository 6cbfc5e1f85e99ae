// ops/ctc/ctc_log.h - the CTC loss of one sample in log space: slower than ops/ctc/ctc_simd.cpp, but correct for every
// input.
#pragma once
#include "ops/ctc/ctc_loops.h"
#include "ops/math/math.h"

namespace kassette::ops {

/// The log of a probability and its directional derivative: a dual number. Used by CUDA too. product() and sum() below
/// return the log of the product and of the sum of the probabilities.
struct CtcLog {
  double value = -std::numeric_limits<double>::infinity(), slope = 0;
};
KASSETTE_FN CtcLog product(CtcLog x, CtcLog y) { return {x.value + y.value, x.slope + y.slope}; }
KASSETTE_FN CtcLog sum(CtcLog x, CtcLog y, CtcLog z) {
  double most = x.value;
  most = y.value <= most ? most : y.value;  // NaN stays
  most = z.value <= most ? most : z.value;
  if (most == -std::numeric_limits<double>::infinity()) return {};
  const double a = m::exp(x.value - most), b = m::exp(y.value - most), c = m::exp(z.value - most), total = a + b + c;
  const double slope = (a != 0 ? a * x.slope : 0) + (b != 0 ? b * y.slope : 0) + (c != 0 ? c * z.slope : 0);
  return {most + m::log(total), slope / total};
}

/// Returns the loss and, unless g is null, sets g to its gradient with respect to y.
template <class T>
double ctc_in_log_space(const CtcSample<T>& s, T* g);
/// Sets `out` to the Hessian-vector product, the derivative of the gradient along v. v and out are (steps, classes).
template <class T>
void ctc_second_derivative(const CtcSample<T>& s, const T* v, T* out);

}  // namespace kassette::ops
