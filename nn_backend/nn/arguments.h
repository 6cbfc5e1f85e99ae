// nn_backend/nn/arguments.h - the arguments of nn functions.
#pragma once
#include <kassette/backend/config.h>

#include "core/convert.h"
#include "core/impl.h"
#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "ops/engine/refusals.h"

namespace kassette::nn {

using numpy::ArrayArg;
using numpy::wide;
using ops::attribute_errors;

/// Throws TypeError unless x has a float dtype.
inline void check_floats(const Tensor& x, const At& at) {
  if (!Access::desc(x).dtype.is_float()) fail_not_float(at, Access::desc(x).dtype);
}
/// f of the argument x, which has to have a float dtype.
template <class F>
auto of_floats(const char* what, const Operand& x, F&& f) {
  return attribute_errors(what, [&] {
    const ArrayArg array(x, {what, "x"});
    check_floats(array, {what, "x"});
    return f(array.tensor());
  });
}
/// f of the argument, in float32 if that is of a half type; the result has the dtype of x.
template <class F>
Tensor of_wide_floats(const char* what, const Operand& x, F&& f) {
  return of_floats(what, x, [&](const Tensor& t) { return ops::cast(f(wide(t)), t.dtype()); });
}
/// An epsilon that is K::epsilon() if it is None.
inline double epsilon_of(const char* what, const Scalar& epsilon) {
  return epsilon.is_none() ? backend::epsilon() : number_as(float64, epsilon, {what, "epsilon"});
}

}  // namespace kassette::nn
