// ops/elementwise/arithmetic.h - elementwise ops as functions of tensors, for adjoints and compositions. A number takes
// the dtype of the tensor that it is combined with. The operators + - * / and so on are declared with Tensor.
#pragma once
#include "ops/engine/op.h"

namespace kassette::ops {

Tensor abs(const Tensor& x);
Tensor sign(const Tensor& x);
Tensor square(const Tensor& x);
/// Negative numbers give 0, and their gradient is 0; those of square_root are NaN.
Tensor sqrt(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor expm1(const Tensor& x);
Tensor log(const Tensor& x);
Tensor log1p(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor softplus(const Tensor& x);
Tensor round(const Tensor& x);
Tensor relu(const Tensor& x);
Tensor leaky_relu(const Tensor& x, double alpha);
/// K::relu with all its options: `max_value` is infinity if there is none.
Tensor general_relu(const Tensor& x, double alpha, double max_value, double threshold);
/// log(x / (1 - x))
Tensor logit(const Tensor& x);
/// 1 / sqrt(x + epsilon)
Tensor rsqrt(const Tensor& x, double epsilon);
Tensor elu(const Tensor& x, double alpha);
/// 0.2 * x + 0.5, clipped to [0, 1].
Tensor hard_sigmoid(const Tensor& x);
/// max(min(x, high), low), for float dtypes only.
Tensor clip(const Tensor& x, double low, double high);

// Ops of special_ops.h.
Tensor square_root(const Tensor& x);
Tensor floor(const Tensor& x);
Tensor ceil(const Tensor& x);
Tensor trunc(const Tensor& x);
/// The nearest integer, ties to even; as round, but its gradient is zero and integers are returned as they are.
Tensor rint(const Tensor& x);
Tensor tan(const Tensor& x);
Tensor asin(const Tensor& x);
Tensor acos(const Tensor& x);
Tensor atan(const Tensor& x);
Tensor sinh(const Tensor& x);
Tensor cosh(const Tensor& x);
Tensor asinh(const Tensor& x);
Tensor acosh(const Tensor& x);
Tensor atanh(const Tensor& x);
Tensor exp2(const Tensor& x);
Tensor log2(const Tensor& x);
Tensor log10(const Tensor& x);
Tensor cbrt(const Tensor& x);
Tensor erf(const Tensor& x);
Tensor erfc(const Tensor& x);
Tensor erfinv(const Tensor& x);
/// log |gamma(x)|
Tensor lgamma(const Tensor& x);
/// The derivative of order n + 1 of lgamma: digamma, trigamma, ...
Tensor polygamma(const Tensor& x, int n);
/// The modified Bessel functions of the first kind of orders 0 and 1.
Tensor i0(const Tensor& x);
Tensor i1(const Tensor& x);
/// sin(pi x) / (pi x)
Tensor sinc(const Tensor& x);
/// The angle of the point (b, a).
Tensor atan2(const Operand& a, const Operand& b);
Tensor hypot(const Operand& a, const Operand& b);
Tensor copysign(const Operand& size, const Operand& sign);
/// The remainder with the sign of a; that of % has the sign of b.
Tensor fmod(const Operand& a, const Operand& b);
Tensor logaddexp(const Operand& a, const Operand& b);
Tensor logaddexp2(const Operand& a, const Operand& b);
/// The regularized incomplete gamma functions, lower and upper; a gets no gradient.
Tensor gammainc(const Operand& a, const Operand& x);
Tensor gammaincc(const Operand& a, const Operand& x);
/// The regularized incomplete beta function (betainc.cpp); a and b get no gradient.
Tensor betainc(const Tensor& a, const Tensor& b, const Tensor& x);

// Ops of number_ops.h. Those of bits and divisors are for integers.
Tensor modf_fraction(const Tensor& x);
Tensor frexp_exponent(const Tensor& x);
Tensor bitwise_invert(const Tensor& x);
/// a 2^b, for whole floats b; b gets no gradient.
Tensor ldexp(const Operand& a, const Operand& b);
/// The number of a's dtype that follows a in the direction of b. In float32 and float64 alone: half types are computed
/// in float32.
Tensor nextafter(const Operand& a, const Operand& b);
Tensor heaviside(const Operand& a, const Operand& at_zero);
/// The larger and the smaller operand, or the one that is not NaN.
Tensor fmax(const Operand& a, const Operand& b);
Tensor fmin(const Operand& a, const Operand& b);
Tensor bitwise_and(const Operand& a, const Operand& b);
Tensor bitwise_or(const Operand& a, const Operand& b);
Tensor bitwise_xor(const Operand& a, const Operand& b);
Tensor left_shift(const Operand& a, const Operand& b);
Tensor right_shift(const Operand& a, const Operand& b);
Tensor gcd(const Operand& a, const Operand& b);
Tensor lcm(const Operand& a, const Operand& b);

Tensor pow(const Operand& a, const Operand& b);
Tensor maximum(const Operand& a, const Operand& b);
Tensor minimum(const Operand& a, const Operand& b);
/// a * b and a / b, but 0 wherever a is 0, even if b is inf or nan: a zero cotangent must give a zero gradient.
Tensor mul_no_nan(const Operand& a, const Operand& b);
Tensor div_no_nan(const Operand& a, const Operand& b);
/// a where b > 0, else 0. b gets no gradient.
Tensor where_positive(const Operand& a, const Operand& b);

// Comparisons give bool and have no gradient.
Tensor equal(const Operand& a, const Operand& b);
Tensor not_equal(const Operand& a, const Operand& b);
Tensor less(const Operand& a, const Operand& b);
Tensor less_equal(const Operand& a, const Operand& b);
Tensor greater(const Operand& a, const Operand& b);
Tensor greater_equal(const Operand& a, const Operand& b);
Tensor logical_and(const Operand& a, const Operand& b);
Tensor logical_or(const Operand& a, const Operand& b);
Tensor logical_not(const Tensor& a);

/// a where the bool condition holds, else b; all three broadcast. A nan or inf in the operand that is not selected
/// affects neither the value nor the gradients.
Tensor where(const Tensor& condition, const Operand& a, const Operand& b);
/// x as another dtype; x itself if it has that dtype already. Floats to integers truncate and saturate, NaN gives 0;
/// bool is "not zero". Gradients flow between float dtypes only. Of a sparse tensor, the values are cast.
Tensor cast(const Tensor& x, DType dtype);
/// The concrete value of x as dtype, without history. It is converted on x's device, so that the host does not wait for
/// an accelerator.
Tensor value_cast(const Tensor& x, DType dtype);

}  // namespace kassette::ops
