// nn_backend/numpy/mathematics.cpp - NumPy's elementwise functions.
#include <kassette/numpy/mathematics.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>

#include "core/text.h"
#include "nn_backend/numpy/arguments.h"
#include "nn_backend/numpy/axes.h"
#include "ops/reduce/reduce_arg.h"
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
/// A bool tensor of the shape of x that is `value` everywhere.
Tensor everywhere(const Tensor& x, bool value) {
  return value ? ops::equal(ops::zeros_of(x), 0) : ops::not_equal(ops::zeros_of(x), 0);
}
void check_number(const Tensor& x, const At& at) {
  if (x.dtype().is_bool()) fail<TypeError>(at, "is bool", kRemedy, "cast it first (K::cast)");
}
/// Calls f with the argument, a float tensor.
template <class F>
Tensor of_float(const char* what, const Operand& x, F&& f) {
  return of_array(what, x, [&](const Tensor& a) {
    check_float(a, {what, "x"});
    return f(a);
  });
}
/// Whether a float is one infinity; false for other dtypes.
Tensor is_infinity(const char* what, const Operand& x, double infinity) {
  return of_array(
      what, x, [&](const Tensor& a) { return a.dtype().is_float() ? ops::equal(a, infinity) : everywhere(a, false); });
}
Tensor as_bool(const Tensor& x) { return ops::cast(x, bool_); }

/// The largest number of a float dtype.
double largest(DType dtype) {
  return dtype == float16    ? 65504
         : dtype == bfloat16 ? 0x1.fep127
         : dtype == float32  ? static_cast<double>(std::numeric_limits<float>::max())
                             : std::numeric_limits<double>::max();
}
/// Half types in float32, whose range has room for the power of 10.
Tensor rounded_float(const Tensor& x, int decimals) {
  if (decimals == 0) return ops::rint(x);
  const Tensor t = wide(x);
  const double power = std::pow(10.0, std::abs(decimals));
  return ops::cast(decimals > 0 ? ops::rint(t * power) / power : ops::rint(t / power) * power, x.dtype());
}
/// An int64 or uint64 rounded to `digits` zeros, ties to even.
Tensor rounded_integer(const Tensor& x, int digits) {
  if (digits > (x.dtype() == uint64 ? 19 : 18)) return ops::zeros_of(x);
  std::uint64_t power = 1;
  for (int i = 0; i < digits; ++i) power *= 10;
  const Tensor low = kassette::floor_divide(x, power), rest = x - low * power;  // rest is from 0 to power - 1
  const Tensor half = ops::logical_and(ops::equal(rest, power / 2), ops::not_equal(low % 2, 0));
  return (low + ops::cast(ops::logical_or(ops::greater(rest, power / 2), half), x.dtype())) * power;
}
/// nextafter of a half type, in float64, where steps are exact.
Tensor next_half(const Tensor& x, const Tensor& y) {
  const bool small = x.dtype() == float16;
  const double digits = small ? 11 : 8, lowest = small ? -24 : -133;
  const Tensor from = ops::cast(x, float64), to = ops::cast(y, float64);
  const double end = small ? 0x1p16 : 0x1p128;  // an infinity is the power of 2 behind the largest number
  const Tensor at = ops::maximum(ops::minimum(from, end), -end), beside = ops::nextafter(at, to);
  const Tensor step = ops::exp2(ops::maximum(ops::frexp_exponent(beside) - digits, lowest));
  const Tensor next = ops::copysign(at + ops::sign(to - at) * step, ops::where(ops::equal(at, 0.0), to, at));
  return ops::cast(ops::where(ops::equal(from, to), to, next), x.dtype());
}
Tensor both_nan(const Tensor& a, const Tensor& b) {
  return ops::logical_and(ops::not_equal(a, a), ops::not_equal(b, b));
}
/// isclose, in the name of `what`. Integers and bool are compared as float64, half types as float32.
Tensor close(const char* what, const Operand& x, const Operand& y, const CloseOptions& options) {
  const Tensors in = promoted_tensors(what, {{"x", x}, {"y", y}});
  const DType dtype = in[0].dtype(), wide = !dtype.is_float() ? float64 : dtype.size() < 4 ? float32 : dtype;
  const Tensor a = ops::cast(in[0], wide), b = ops::cast(in[1], wide), size = ops::abs(b);
  const Tensor near = ops::less_equal(ops::abs(a - b), size * options.rtol + options.atol);
  const Tensor finite = ops::less(size, std::numeric_limits<double>::infinity());
  Tensor result = ops::logical_or(ops::logical_and(near, finite), ops::equal(a, b));
  if (!options.equal_nan) return result;
  return ops::logical_or(result, both_nan(a, b));
}

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
QuotientAndRemainder divmod(const Operand& x, const Operand& y) {
  QuotientAndRemainder both;
  of_pair("divmod", x, y, [&](const Operand& a, const Operand& b) {
    both.remainder = a % b;
    return both.quotient = kassette::floor_divide(a, b);
  });
  return both;
}
KASSETTE_NUMPY_BINARY(fmod, fmod)
KASSETTE_NUMPY_BINARY(power, pow)
Tensor float_power(const Operand& x, const Operand& y) {
  return attribute_errors("float_power", [&] {
    const Tensors in = tensors_as("float_power", {{"x", x}, {"y", y}}, float64);
    return ops::pow(in[0], in[1]);
  });
}
Tensor reciprocal(const Operand& x) {
  return of_float("reciprocal", x, [](const Tensor& a) { return 1.0 / a; });
}
Tensor lerp(const Operand& x, const Operand& y, const Operand& weight) {
  return attribute_errors("lerp", [&] {
    const Tensors in = promoted_tensors("lerp", {{"x", x}, {"y", y}, {"weight", weight}});
    check_float(in[0], {"lerp", "x"});
    const Tensor step = in[1] - in[0];
    // From the nearer end, so that both ends are met.
    return ops::where(ops::less(in[2], 0.5), in[0] + in[2] * step, in[1] - (1.0 - in[2]) * step);
  });
}
KASSETTE_NUMPY_BINARY(maximum, maximum)
KASSETTE_NUMPY_BINARY(minimum, minimum)
KASSETTE_NUMPY_BINARY(fmax, fmax)
KASSETTE_NUMPY_BINARY(fmin, fmin)

Tensor clip(const Operand& x, const Operand& min, const Operand& max) {
  return attribute_errors("clip", [&] {
    Tensor y = ArrayArg(x, {"clip", "x"}, own_dtype(min).given() ? own_dtype(min) : own_dtype(max));
    check_number(y, {"clip", "x"});
    if (!min.is_none()) {
      const Pair both(y, min, "clip", "x", "min");
      y = ops::maximum(both.x(), both.y());
    }
    if (!max.is_none()) {
      const Pair both(y, max, "clip", "x", "max");
      y = ops::minimum(both.x(), both.y());
    }
    return y;
  });
}
Tensor clip(const Operand& x, const ClipOptions& options) { return clip(x, options.min, options.max); }
Tensor nan_to_num(const Operand& x, const NanToNumOptions& options) {
  return of_array("nan_to_num", x, [&](const Tensor& a) {
    if (!a.dtype().is_float()) return a;
    const double most = largest(a.dtype()), inf = std::numeric_limits<double>::infinity();
    auto replaced = [](const Tensor& y, const Tensor& where, const Operand& by, double instead) {
      return ops::where(where, by.is_none() ? Operand(instead) : by, y);
    };
    Tensor y = replaced(a, ops::not_equal(a, a), options.nan, 0);
    y = replaced(y, ops::equal(a, inf), options.posinf, most);
    return replaced(y, ops::equal(a, -inf), options.neginf, -most);
  });
}

Tensor negative(const Operand& x) {
  return of_array("negative", x, [](const Tensor& a) { return -a; });
}
Tensor positive(const Operand& x) {
  return of_array("positive", x, [](const Tensor& a) { return a; });
}
KASSETTE_NUMPY_UNARY(abs, abs)
Tensor fabs(const Operand& x) {
  return of_float("fabs", x, [](const Tensor& a) { return ops::abs(a); });
}
KASSETTE_NUMPY_UNARY(sign, sign)
KASSETTE_NUMPY_UNARY(square, square)
KASSETTE_NUMPY_UNARY(sqrt, square_root)
Tensor rsqrt(const Operand& x) {
  return of_array("rsqrt", x, [](const Tensor& a) { return ops::rsqrt(a, -0.0); });  // x - 0 keeps -0
}
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
Tensor deg2rad(const Operand& x) {
  return of_float("deg2rad", x, [](const Tensor& a) { return a * (std::numbers::pi / 180); });
}
Tensor rad2deg(const Operand& x) {
  return of_float("rad2deg", x, [](const Tensor& a) { return a * (180 / std::numbers::pi); });
}
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
Tensor round(const Operand& x, int decimals) {
  return of_array("round", x, [&](const Tensor& a) {
    check_number(a, {"round", "x"});
    if (a.dtype().is_float()) return rounded_float(a, decimals);
    return decimals < 0 ? ops::cast(rounded_integer(ops::cast(a, widest(a.dtype())), -decimals), a.dtype())
                        : ops::rint(a);
  });
}
FractionAndInteger modf(const Operand& x) {
  FractionAndInteger parts;
  of_array("modf", x, [&](const Tensor& a) {
    parts.fraction = ops::modf_fraction(a);
    return parts.integer = ops::trunc(a);
  });
  return parts;
}
MantissaAndExponent frexp(const Operand& x) {
  MantissaAndExponent parts;
  of_array("frexp", x, [&](const Tensor& a) {
    const Tensor exponent = ops::frexp_exponent(a);
    parts.mantissa = ops::ldexp(a, -exponent);
    return parts.exponent = ops::cast(exponent, int32);
  });
  return parts;
}
KASSETTE_NUMPY_BINARY(copysign, copysign)
KASSETTE_NUMPY_BINARY(ldexp, ldexp)
Tensor nextafter(const Operand& x, const Operand& y) {
  return attribute_errors("nextafter", [&] {
    const Tensors in = promoted_tensors("nextafter", {{"x", x}, {"y", y}});
    return in[0].dtype().is_float() && in[0].dtype().size() < 4 ? next_half(in[0], in[1])
                                                                : ops::nextafter(in[0], in[1]);
  });
}
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
Tensor betainc(const Operand& a, const Operand& b, const Operand& x) {
  return attribute_errors("betainc", [&] {
    const Tensors in = promoted_tensors("betainc", {{"a", a}, {"b", b}, {"x", x}});
    return ops::betainc(in[0], in[1], in[2]);
  });
}
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
Tensor isposinf(const Operand& x) { return is_infinity("isposinf", x, std::numeric_limits<double>::infinity()); }
Tensor isneginf(const Operand& x) { return is_infinity("isneginf", x, -std::numeric_limits<double>::infinity()); }
Tensor isclose(const Operand& x, const Operand& y, const CloseOptions& options) {
  return attribute_errors("isclose", [&] { return close("isclose", x, y, options); });
}
template <int>
Tensor isclose(const Operand& x, const Operand& y, double rtol, double atol) {
  return isclose(x, y, CloseOptions{.rtol = rtol, .atol = atol});
}
template Tensor isclose<0>(const Operand&, const Operand&, double, double);
Tensor allclose(const Operand& x, const Operand& y, const CloseOptions& options) {
  return attribute_errors("allclose", [&] { return ops::all_of(close("allclose", x, y, options), None, false); });
}
template <int>
Tensor allclose(const Operand& x, const Operand& y, double rtol, double atol) {
  return allclose(x, y, CloseOptions{.rtol = rtol, .atol = atol});
}
template Tensor allclose<0>(const Operand&, const Operand&, double, double);
/// Whether all elements are equal.
static Tensor all_equal(const Tensor& x, const Tensor& y, bool equal_nan = false) {
  const Tensor equal = ops::equal(x, y);
  return ops::all_of(equal_nan ? ops::logical_or(equal, both_nan(x, y)) : equal, None, false);
}
/// Whether vectors of any lengths are equal.
static Tensor equal_vectors(const Tensor& x, const Tensor& y, bool equal_nan = false) {
  const Tensor n = size_along(x, 0), m = size_along(y, 0), both = places_below(ops::minimum(n, m), x.device());
  return ops::logical_and(ops::equal(n, m).to(x.device()),
                          all_equal(ops::gather(x, both), ops::gather(y, both), equal_nan));
}
Tensor array_equal(const Operand& x, const Operand& y, bool equal_nan) {
  return attribute_errors("array_equal", [&] {
    const Tensors in = promoted_tensors("array_equal", {{"x", x}, {"y", y}});
    const TensorDesc &a = Access::desc(in[0]), &b = Access::desc(in[1]);
    if (!a.compatible(b)) return ops::scalar_tensor(0, bool_).to(in[0].device());
    if (a.known() && b.known()) return all_equal(in[0], in[1], equal_nan);
    const Tensor shapes = equal_vectors(ops::shape_of(in[0], int64), ops::shape_of(in[1], int64));
    return ops::logical_and(shapes.to(in[0].device()),
                            equal_vectors(ops::flatten(in[0], 0), ops::flatten(in[1], 0), equal_nan));
  });
}
Tensor array_equiv(const Operand& x, const Operand& y) {
  return attribute_errors("array_equiv", [&] {
    const Tensors in = promoted_tensors("array_equiv", {{"x", x}, {"y", y}});
    Tensor u = in[0], v = in[1], fit;
    const int rank_u = known_rank(u, {"array_equiv", "x"}), rank_v = known_rank(v, {"array_equiv", "y"});
    for (int i = 1; i <= std::min(rank_u, rank_v); ++i) {
      const std::int64_t n = Access::desc(u).dims[rank_u - i], m = Access::desc(v).dims[rank_v - i];
      if (n == 1 || m == 1 || (n >= 0 && n == m)) continue;
      if (differ(n, m)) return ops::scalar_tensor(0, bool_).to(u.device());
      // Sizes that do not fit are cut to the smaller one.
      const Tensor a = size_along(u, -i), b = size_along(v, -i), one_a = ops::equal(a, 1), one_b = ops::equal(b, 1);
      const Tensor size = ops::where(one_a, b, ops::where(one_b, a, ops::minimum(a, b)));
      const Tensor places = places_below(size, cpu),
                   ok = ops::logical_or(ops::equal(a, b), ops::logical_or(one_a, one_b));
      u = ops::gather(u, ops::minimum(places, a - 1).to(u.device()), rank_u - i);
      v = ops::gather(v, ops::minimum(places, b - 1).to(v.device()), rank_v - i);
      fit = fit.defined() ? ops::logical_and(fit, ok) : ok;
    }
    const Tensor equal = all_equal(u, v);
    return fit.defined() ? ops::logical_and(fit.to(equal.device()), equal) : equal;
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
