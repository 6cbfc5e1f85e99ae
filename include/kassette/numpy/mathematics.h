// include/kassette/numpy/mathematics.h - NumPy's elementwise functions.
#ifndef KASSETTE_NUMPY_MATHEMATICS_H
#define KASSETTE_NUMPY_MATHEMATICS_H
#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace numpy {

// Functions "of floats" throw TypeError for integers and bool. Two operands broadcast and are promoted; integers wrap
// around. A gradient is the slope, where there is one, and 0 for the functions that round.

/// The arguments of clip by name: `np::clip(x, {.max = 1})`.
struct ClipOptions {
  Named only_by_name{0};
  KeptOperand min = None, max = None;
};
/// What nan_to_num puts in place of infinities; None is the largest or the lowest number of the dtype.
struct NanToNumOptions {
  Named only_by_name{0};
  KeptOperand nan = 0.0, posinf = None, neginf = None;
};
/// How far apart numbers may be that count as close: by atol + rtol * |y|.
struct CloseOptions {
  Named only_by_name{0};
  double rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false;
};
/// The results of divmod, modf and frexp.
struct QuotientAndRemainder {
  Tensor quotient, remainder;
};
struct FractionAndInteger {
  Tensor fraction, integer;
};
struct MantissaAndExponent {
  Tensor mantissa, exponent;
};

/// The sum, the difference and the product.
KASSETTE_API Tensor add(const Operand& x, const Operand& y);
KASSETTE_API Tensor subtract(const Operand& x, const Operand& y);
KASSETTE_API Tensor multiply(const Operand& x, const Operand& y);
/// The quotient. Integers give float64, those of 8 and 16 bits float32.
KASSETTE_API Tensor divide(const Operand& x, const Operand& y);
inline Tensor true_divide(const Operand& x, const Operand& y) { return divide(x, y); }
/// The quotient rounded down, and what is left over, which has the sign of y.
KASSETTE_API Tensor floor_divide(const Operand& x, const Operand& y);
KASSETTE_API Tensor remainder(const Operand& x, const Operand& y);
inline Tensor mod(const Operand& x, const Operand& y) { return remainder(x, y); }
/// The results of floor_divide and remainder: `auto [q, r] = np::divmod(x, y);`.
KASSETTE_API QuotientAndRemainder divmod(const Operand& x, const Operand& y);
/// What x / y, rounded towards 0, leaves over, with the sign of x.
KASSETTE_API Tensor fmod(const Operand& x, const Operand& y);
/// x to the power y. Throws ValueError for a negative number as the power of integers.
KASSETTE_API Tensor power(const Operand& x, const Operand& y);
inline Tensor pow(const Operand& x, const Operand& y) { return power(x, y); }
/// x to the power y in float64, whatever their dtypes.
KASSETTE_API Tensor float_power(const Operand& x, const Operand& y);
/// 1 / x, of floats.
KASSETTE_API Tensor reciprocal(const Operand& x);
/// x + weight * (y - x), of floats: exactly x where weight is 0, and y where it is 1.
KASSETTE_API Tensor lerp(const Operand& x, const Operand& y, const Operand& weight);
/// The larger and the smaller element; NaN if either is NaN. The gradient of a tie goes to x.
KASSETTE_API Tensor maximum(const Operand& x, const Operand& y);
KASSETTE_API Tensor minimum(const Operand& x, const Operand& y);
/// The larger and the smaller element; the other one if one is NaN.
KASSETTE_API Tensor fmax(const Operand& x, const Operand& y);
KASSETTE_API Tensor fmin(const Operand& x, const Operand& y);

/// x, where it is below min that, and where it is above max that; either may be None. NaN stays NaN. The gradient
/// passes at both bounds.
KASSETTE_API Tensor clip(const Operand& x, const Operand& min, const Operand& max);
KASSETTE_API Tensor clip(const Operand& x, const ClipOptions& options);
/// x with numbers in place of NaN and infinities.
KASSETTE_API Tensor nan_to_num(const Operand& x, const NanToNumOptions& options = {});

/// -x and x.
KASSETTE_API Tensor negative(const Operand& x);
KASSETTE_API Tensor positive(const Operand& x);
/// The absolute value; for the lowest integer, that integer itself. Its gradient at 0 is 0.
KASSETTE_API Tensor abs(const Operand& x);
inline Tensor absolute(const Operand& x) { return abs(x); }
/// The absolute value of floats.
KASSETTE_API Tensor fabs(const Operand& x);
/// -1, 0 or 1; NaN stays NaN.
KASSETTE_API Tensor sign(const Operand& x);
/// x * x.
KASSETTE_API Tensor square(const Operand& x);
/// The square root of floats, and 1 divided by it: NaN below 0.
KASSETTE_API Tensor sqrt(const Operand& x);
KASSETTE_API Tensor rsqrt(const Operand& x);
/// The cube root of floats.
KASSETTE_API Tensor cbrt(const Operand& x);

/// The exponentials e^x, 2^x and e^x - 1 of floats; expm1 is exact near 0.
KASSETTE_API Tensor exp(const Operand& x);
KASSETTE_API Tensor exp2(const Operand& x);
KASSETTE_API Tensor expm1(const Operand& x);
/// The logarithms of floats, to the bases e, 2 and 10: -inf at 0, NaN below. log1p(x) is log(1 + x), exact near 0.
KASSETTE_API Tensor log(const Operand& x);
KASSETTE_API Tensor log2(const Operand& x);
KASSETTE_API Tensor log10(const Operand& x);
KASSETTE_API Tensor log1p(const Operand& x);
/// log(e^x + e^y) and log2(2^x + 2^y) of floats, without overflow.
KASSETTE_API Tensor logaddexp(const Operand& x, const Operand& y);
KASSETTE_API Tensor logaddexp2(const Operand& x, const Operand& y);

/// Sine, cosine and tangent of floats in radians.
KASSETTE_API Tensor sin(const Operand& x);
KASSETTE_API Tensor cos(const Operand& x);
KASSETTE_API Tensor tan(const Operand& x);
/// Their inverses, in radians; NaN where |x| > 1 has none.
KASSETTE_API Tensor asin(const Operand& x);
KASSETTE_API Tensor acos(const Operand& x);
KASSETTE_API Tensor atan(const Operand& x);
inline Tensor arcsin(const Operand& x) { return asin(x); }
inline Tensor arccos(const Operand& x) { return acos(x); }
inline Tensor arctan(const Operand& x) { return atan(x); }
/// Degrees as radians and radians as degrees, of floats.
KASSETTE_API Tensor deg2rad(const Operand& x);
KASSETTE_API Tensor rad2deg(const Operand& x);
inline Tensor radians(const Operand& x) { return deg2rad(x); }
inline Tensor degrees(const Operand& x) { return rad2deg(x); }
/// The angle, in [-pi, pi], of the point whose ordinate is x and whose abscissa is y, of floats.
KASSETTE_API Tensor atan2(const Operand& x, const Operand& y);
inline Tensor arctan2(const Operand& x, const Operand& y) { return atan2(x, y); }
/// sqrt(x^2 + y^2) of floats, without overflow.
KASSETTE_API Tensor hypot(const Operand& x, const Operand& y);
/// The hyperbolic functions of floats.
KASSETTE_API Tensor sinh(const Operand& x);
KASSETTE_API Tensor cosh(const Operand& x);
KASSETTE_API Tensor tanh(const Operand& x);
/// Their inverses; NaN where there is none.
KASSETTE_API Tensor asinh(const Operand& x);
KASSETTE_API Tensor acosh(const Operand& x);
KASSETTE_API Tensor atanh(const Operand& x);
inline Tensor arcsinh(const Operand& x) { return asinh(x); }
inline Tensor arccosh(const Operand& x) { return acosh(x); }
inline Tensor arctanh(const Operand& x) { return atanh(x); }
/// sin(pi x) / (pi x) of floats; 1 at 0.
KASSETTE_API Tensor sinc(const Operand& x);

/// The integer below, above, and towards 0; integers are unchanged.
KASSETTE_API Tensor floor(const Operand& x);
KASSETTE_API Tensor ceil(const Operand& x);
KASSETTE_API Tensor trunc(const Operand& x);
inline Tensor fix(const Operand& x) { return trunc(x); }
/// The nearest integer, ties to even; integers are unchanged.
KASSETTE_API Tensor rint(const Operand& x);
/// The nearest multiple of 10^-decimals, ties to even; integers change for negative decimals alone.
KASSETTE_API Tensor round(const Operand& x, int decimals = 0);
inline Tensor around(const Operand& x, int decimals = 0) { return round(x, decimals); }
/// The part of a float behind the point and the one before it, both with its sign.
KASSETTE_API FractionAndInteger modf(const Operand& x);
/// The m and the int32 e with x = m * 2^e and 1/2 <= |m| < 1, of floats; 0, infinities and NaN have e = 0.
KASSETTE_API MantissaAndExponent frexp(const Operand& x);

/// The size of x with the sign of y, of floats.
KASSETTE_API Tensor copysign(const Operand& x, const Operand& y);
/// x * 2^y, of floats, for whole numbers y.
KASSETTE_API Tensor ldexp(const Operand& x, const Operand& y);
/// The number next to x in the direction of y, of floats.
KASSETTE_API Tensor nextafter(const Operand& x, const Operand& y);
/// The distance from x to the number next to it that is further from 0, with the sign of x, of floats.
KASSETTE_API Tensor spacing(const Operand& x);
/// 0 where x < 0, 1 where x > 0, and y where x is 0; of floats.
KASSETTE_API Tensor heaviside(const Operand& x, const Operand& y);

/// The error function, its complement 1 - erf(x) and its inverse, of floats.
KASSETTE_API Tensor erf(const Operand& x);
KASSETTE_API Tensor erfc(const Operand& x);
KASSETTE_API Tensor erfinv(const Operand& x);
/// The logarithm of the absolute value of the gamma function, and its derivative, of floats.
KASSETTE_API Tensor lgamma(const Operand& x);
KASSETTE_API Tensor digamma(const Operand& x);
/// The derivative of order n of digamma.
KASSETTE_API Tensor polygamma(int n, const Operand& x);
/// The regularized incomplete gamma functions of floats, from 0 to y and from y on. x gets no gradient.
KASSETTE_API Tensor gammainc(const Operand& x, const Operand& y);
KASSETTE_API Tensor gammaincc(const Operand& x, const Operand& y);
/// The regularized incomplete beta function of floats, from 0 to x. a and b get no gradient.
KASSETTE_API Tensor betainc(const Operand& a, const Operand& b, const Operand& x);
/// The modified Bessel function of the first kind of order 0, of floats.
KASSETTE_API Tensor i0(const Operand& x);

/// Comparisons, which give bool.
KASSETTE_API Tensor equal(const Operand& x, const Operand& y);
KASSETTE_API Tensor not_equal(const Operand& x, const Operand& y);
KASSETTE_API Tensor less(const Operand& x, const Operand& y);
KASSETTE_API Tensor less_equal(const Operand& x, const Operand& y);
KASSETTE_API Tensor greater(const Operand& x, const Operand& y);
KASSETTE_API Tensor greater_equal(const Operand& x, const Operand& y);
/// Whether a float is NaN, infinite, or neither; of other dtypes false, false and true.
KASSETTE_API Tensor isnan(const Operand& x);
KASSETTE_API Tensor isinf(const Operand& x);
KASSETTE_API Tensor isfinite(const Operand& x);
/// Whether it is inf, and whether it is -inf.
KASSETTE_API Tensor isposinf(const Operand& x);
KASSETTE_API Tensor isneginf(const Operand& x);
/// Whether |x - y| <= atol + rtol * |y|. Infinities are close to equal ones alone, NaN to NaN if equal_nan says so.
KASSETTE_API Tensor isclose(const Operand& x, const Operand& y, const CloseOptions& options);
template <int = 0>
KASSETTE_API Tensor isclose(const Operand& x, const Operand& y, double rtol = 1e-5, double atol = 1e-8);
/// Whether all elements are close.
KASSETTE_API Tensor allclose(const Operand& x, const Operand& y, const CloseOptions& options);
template <int = 0>
KASSETTE_API Tensor allclose(const Operand& x, const Operand& y, double rtol = 1e-5, double atol = 1e-8);
/// Whether both have one shape and equal elements; and whether they broadcast and are equal then. NaN is equal to NaN
/// if equal_nan says so. Sizes that are not known must fit when a function is called, or it throws ValueError.
KASSETTE_API Tensor array_equal(const Operand& x, const Operand& y, bool equal_nan = false);
KASSETTE_API Tensor array_equiv(const Operand& x, const Operand& y);
/// Whether the sign is that of a negative number, also of -0.0 and of NaN.
KASSETTE_API Tensor signbit(const Operand& x);
/// Logic; numbers are true unless they are 0.
KASSETTE_API Tensor logical_and(const Operand& x, const Operand& y);
KASSETTE_API Tensor logical_or(const Operand& x, const Operand& y);
KASSETTE_API Tensor logical_xor(const Operand& x, const Operand& y);
KASSETTE_API Tensor logical_not(const Operand& x);

/// Operations on the bits of integers and of bool. A shift by less than 0 or by more than the bits gives 0, or -1 where
/// a negative number is shifted to the right.
KASSETTE_API Tensor bitwise_and(const Operand& x, const Operand& y);
KASSETTE_API Tensor bitwise_or(const Operand& x, const Operand& y);
KASSETTE_API Tensor bitwise_xor(const Operand& x, const Operand& y);
KASSETTE_API Tensor bitwise_invert(const Operand& x);
inline Tensor bitwise_not(const Operand& x) { return bitwise_invert(x); }
inline Tensor invert(const Operand& x) { return bitwise_invert(x); }
KASSETTE_API Tensor bitwise_left_shift(const Operand& x, const Operand& y);
KASSETTE_API Tensor bitwise_right_shift(const Operand& x, const Operand& y);
inline Tensor left_shift(const Operand& x, const Operand& y) { return bitwise_left_shift(x, y); }
inline Tensor right_shift(const Operand& x, const Operand& y) { return bitwise_right_shift(x, y); }
/// How many bits of the absolute value of an integer are set: uint8.
KASSETTE_API Tensor bitwise_count(const Operand& x);
/// Eight elements along an axis as the bits of one uint8: bool, or integers that are not 0; None flattens x. Zeros
/// follow the last ones. The first is the largest bit of a byte, or, for the order "little", the smallest.
KASSETTE_API Tensor packbits(const Operand& x, const Axes& axis = None, Name bitorder = "big");
/// The bits of uint8 as elements along an axis; count: how many of them, with zeros behind; a negative one counts from
/// the end.
KASSETTE_API Tensor unpackbits(const Operand& x, const Axes& axis = None, const Scalar& count = None,
                               Name bitorder = "big");
/// The greatest common divisor and the least common multiple of integers.
KASSETTE_API Tensor gcd(const Operand& x, const Operand& y);
KASSETTE_API Tensor lcm(const Operand& x, const Operand& y);

}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_NUMPY_MATHEMATICS_H
