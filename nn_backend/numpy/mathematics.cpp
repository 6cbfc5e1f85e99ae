// nn_backend/numpy/mathematics.cpp - NumPy's elementwise functions.
#include <kassette/numpy/mathematics.h>

#include <limits>

#include "nn_backend/numpy/arguments.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace {

using ops::attribute_errors;

Tensor sum_of(const Operand& x, const Operand& y) { return x + y; }
Tensor difference_of(const Operand& x, const Operand& y) { return x - y; }
Tensor product_of(const Operand& x, const Operand& y) { return x * y; }
Tensor quotient_of(const Operand& x, const Operand& y) { return x / y; }
Tensor rest_of(const Operand& x, const Operand& y) { return x % y; }

/// Calls f with two promoted arguments.
template <class F>
Tensor of_pair(const char* what, const Operand& x, const Operand& y, F&& f) {
  return attribute_errors(what, [&] {
    const Pair both(x, y, what);
    return f(both.x(), both.y());
  });
}
/// Calls f with the argument as a tensor.
template <class F>
Tensor of_array(const char* what, const Operand& x, F&& f) {
  return attribute_errors(what, [&] {
    const ArrayArg array(x, {what, "x"});
    return f(array.tensor());
  });
}
/// A bool tensor of the shape of x that is `value` everywhere.
Tensor everywhere(const Tensor& x, bool value) {
  return value ? ops::equal(ops::zeros_of(x), 0) : ops::not_equal(ops::zeros_of(x), 0);
}
Tensor as_bool(const Tensor& x) { return ops::cast(x, bool_); }

}  // namespace

#define KASSETTE_NUMPY_OPERATOR(function, f) \
  Tensor function(const Operand& x, const Operand& y) { return of_pair(#function, x, y, f); }
KASSETTE_NUMPY_OPERATOR(add, sum_of)
KASSETTE_NUMPY_OPERATOR(subtract, difference_of)
KASSETTE_NUMPY_OPERATOR(multiply, product_of)
KASSETTE_NUMPY_OPERATOR(divide, quotient_of)
KASSETTE_NUMPY_OPERATOR(remainder, rest_of)
#undef KASSETTE_NUMPY_OPERATOR
Tensor floor_divide(const Operand& x, const Operand& y) {
  return of_pair("floor_divide", x, y, [](const Operand& a, const Operand& b) { return kassette::floor_divide(a, b); });
}
KASSETTE_NUMPY_BINARY(fmod, fmod)
KASSETTE_NUMPY_BINARY(power, pow)
KASSETTE_NUMPY_BINARY(maximum, maximum)
KASSETTE_NUMPY_BINARY(minimum, minimum)
KASSETTE_NUMPY_BINARY(fmax, fmax)
KASSETTE_NUMPY_BINARY(fmin, fmin)

Tensor negative(const Operand& x) {
  return of_array("negative", x, [](const Tensor& a) { return -a; });
}
Tensor positive(const Operand& x) {
  return of_array("positive", x, [](const Tensor& a) { return a; });
}
KASSETTE_NUMPY_UNARY(abs, abs)
KASSETTE_NUMPY_UNARY(sign, sign)
KASSETTE_NUMPY_UNARY(square, square)
KASSETTE_NUMPY_UNARY(cbrt, cbrt)
KASSETTE_NUMPY_UNARY(exp, exp)
KASSETTE_NUMPY_UNARY(exp2, exp2)
KASSETTE_NUMPY_UNARY(expm1, expm1)
KASSETTE_NUMPY_UNARY(log, log)
KASSETTE_NUMPY_UNARY(log2, log2)
KASSETTE_NUMPY_UNARY(log10, log10)
KASSETTE_NUMPY_UNARY(log1p, log1p)
KASSETTE_NUMPY_BINARY(logaddexp, logaddexp)
KASSETTE_NUMPY_BINARY(logaddexp2, logaddexp2)
KASSETTE_NUMPY_UNARY(sin, sin)
KASSETTE_NUMPY_UNARY(cos, cos)
KASSETTE_NUMPY_UNARY(tan, tan)
KASSETTE_NUMPY_UNARY(asin, asin)
KASSETTE_NUMPY_UNARY(acos, acos)
KASSETTE_NUMPY_UNARY(atan, atan)
KASSETTE_NUMPY_BINARY(atan2, atan2)
KASSETTE_NUMPY_BINARY(hypot, hypot)
KASSETTE_NUMPY_UNARY(sinh, sinh)
KASSETTE_NUMPY_UNARY(cosh, cosh)
KASSETTE_NUMPY_UNARY(tanh, tanh)
KASSETTE_NUMPY_UNARY(asinh, asinh)
KASSETTE_NUMPY_UNARY(acosh, acosh)
KASSETTE_NUMPY_UNARY(atanh, atanh)
KASSETTE_NUMPY_UNARY(sinc, sinc)
KASSETTE_NUMPY_UNARY(floor, floor)
KASSETTE_NUMPY_UNARY(ceil, ceil)
KASSETTE_NUMPY_UNARY(trunc, trunc)
KASSETTE_NUMPY_UNARY(rint, rint)
KASSETTE_NUMPY_BINARY(copysign, copysign)
KASSETTE_NUMPY_BINARY(ldexp, ldexp)
KASSETTE_NUMPY_BINARY(heaviside, heaviside)
KASSETTE_NUMPY_UNARY(erf, erf)
KASSETTE_NUMPY_UNARY(erfc, erfc)
KASSETTE_NUMPY_UNARY(erfinv, erfinv)
KASSETTE_NUMPY_UNARY(lgamma, lgamma)
Tensor digamma(const Operand& x) {
  return of_array("digamma", x, [](const Tensor& a) { return ops::polygamma(a, 0); });
}
Tensor polygamma(int n, const Operand& x) {
  return of_array("polygamma", x, [n](const Tensor& a) {
    if (n < 0) fail<ValueError>({"polygamma", "n"}, "is ", n, kExpected, "it must be at least 0");
    return ops::polygamma(a, n);
  });
}
KASSETTE_NUMPY_BINARY(gammainc, gammainc)
KASSETTE_NUMPY_BINARY(gammaincc, gammaincc)
KASSETTE_NUMPY_UNARY(i0, i0)

KASSETTE_NUMPY_BINARY(equal, equal)
KASSETTE_NUMPY_BINARY(not_equal, not_equal)
KASSETTE_NUMPY_BINARY(less, less)
KASSETTE_NUMPY_BINARY(less_equal, less_equal)
KASSETTE_NUMPY_BINARY(greater, greater)
KASSETTE_NUMPY_BINARY(greater_equal, greater_equal)
Tensor isnan(const Operand& x) {
  return of_array("isnan", x, [](const Tensor& a) { return ops::not_equal(a, a); });
}
Tensor isinf(const Operand& x) {
  return of_array("isinf", x, [](const Tensor& a) {
    return a.dtype().is_float() ? ops::equal(ops::abs(a), std::numeric_limits<double>::infinity())
                                : everywhere(a, false);
  });
}
Tensor isfinite(const Operand& x) {
  return of_array("isfinite", x, [](const Tensor& a) {
    return a.dtype().is_float() ? ops::less(ops::abs(a), std::numeric_limits<double>::infinity()) : everywhere(a, true);
  });
}
Tensor signbit(const Operand& x) {
  return of_array("signbit", x, [](const Tensor& a) {
    if (a.dtype().is_float()) return ops::less(ops::copysign(1.0, a), 0);
    return a.dtype().is_bool() ? everywhere(a, false) : ops::less(a, 0);
  });
}
Tensor logical_and(const Operand& x, const Operand& y) {
  return attribute_errors("logical_and", [&] {
    return ops::logical_and(as_bool(ArrayArg(x, {"logical_and", "x"})), as_bool(ArrayArg(y, {"logical_and", "y"})));
  });
}
Tensor logical_or(const Operand& x, const Operand& y) {
  return attribute_errors("logical_or", [&] {
    return ops::logical_or(as_bool(ArrayArg(x, {"logical_or", "x"})), as_bool(ArrayArg(y, {"logical_or", "y"})));
  });
}
Tensor logical_xor(const Operand& x, const Operand& y) {
  return attribute_errors("logical_xor", [&] {
    return ops::not_equal(as_bool(ArrayArg(x, {"logical_xor", "x"})), as_bool(ArrayArg(y, {"logical_xor", "y"})));
  });
}
Tensor logical_not(const Operand& x) {
  return of_array("logical_not", x, [](const Tensor& a) { return ops::logical_not(as_bool(a)); });
}

/// An operation on bits: of bool, the one on truth values.
#define KASSETTE_NUMPY_BITS(function, of_bool) \
  Tensor function(const Operand& x, const Operand& y) { \
    return of_pair(#function, x, y, [](const Operand& a, const Operand& b) { \
      return own_dtype(a) == bool_ || own_dtype(b) == bool_ ? of_bool(a, b) : ops::function(a, b); \
    }); \
  }
KASSETTE_NUMPY_BITS(bitwise_and, ops::logical_and)
KASSETTE_NUMPY_BITS(bitwise_or, ops::logical_or)
KASSETTE_NUMPY_BITS(bitwise_xor, ops::not_equal)
#undef KASSETTE_NUMPY_BITS
Tensor bitwise_invert(const Operand& x) {
  return of_array("bitwise_invert", x,
                  [](const Tensor& a) { return a.dtype().is_bool() ? ops::logical_not(a) : ops::bitwise_invert(a); });
}
KASSETTE_NUMPY_BINARY(bitwise_left_shift, left_shift)
KASSETTE_NUMPY_BINARY(bitwise_right_shift, right_shift)
KASSETTE_NUMPY_BINARY(gcd, gcd)
KASSETTE_NUMPY_BINARY(lcm, lcm)

}  // namespace numpy
}  // namespace kassette
