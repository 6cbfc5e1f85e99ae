// include/kassette/numpy/mathematics.h - NumPy's elementwise functions.
#ifndef KASSETTE_NUMPY_MATHEMATICS_H
#define KASSETTE_NUMPY_MATHEMATICS_H
#include <kassette/none.h>
#include <kassette/tensor.h>

namespace kassette {
namespace numpy {

// Functions "of floats" throw TypeError for integers and bool. Two operands broadcast and are promoted; integers wrap
// around. A gradient is the slope, where there is one, and 0 for the functions that round.

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
/// What x / y, rounded towards 0, leaves over, with the sign of x.
KASSETTE_API Tensor fmod(const Operand& x, const Operand& y);
/// x to the power y. Throws ValueError for a negative number as the power of integers.
KASSETTE_API Tensor power(const Operand& x, const Operand& y);
inline Tensor pow(const Operand& x, const Operand& y) { return power(x, y); }
/// The larger and the smaller element; NaN if either is NaN. The gradient of a tie goes to x.
KASSETTE_API Tensor maximum(const Operand& x, const Operand& y);
KASSETTE_API Tensor minimum(const Operand& x, const Operand& y);
/// The larger and the smaller element; the other one if one is NaN.
KASSETTE_API Tensor fmax(const Operand& x, const Operand& y);
KASSETTE_API Tensor fmin(const Operand& x, const Operand& y);

/// -x and x.
KASSETTE_API Tensor negative(const Operand& x);
KASSETTE_API Tensor positive(const Operand& x);
/// The absolute value; for the lowest integer, that integer itself. Its gradient at 0 is 0.
KASSETTE_API Tensor abs(const Operand& x);
inline Tensor absolute(const Operand& x) { return abs(x); }
/// -1, 0 or 1; NaN stays NaN.
KASSETTE_API Tensor sign(const Operand& x);
/// x * x.
KASSETTE_API Tensor square(const Operand& x);
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
/// The angle of the point (y, x), in [-pi, pi], of floats: the ordinate comes first.
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

/// The size of x with the sign of y, of floats.
KASSETTE_API Tensor copysign(const Operand& x, const Operand& y);
/// x * 2^y, of floats, for whole numbers y.
KASSETTE_API Tensor ldexp(const Operand& x, const Operand& y);
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
/// The greatest common divisor and the least common multiple of integers.
KASSETTE_API Tensor gcd(const Operand& x, const Operand& y);
KASSETTE_API Tensor lcm(const Operand& x, const Operand& y);

}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_NUMPY_MATHEMATICS_H
