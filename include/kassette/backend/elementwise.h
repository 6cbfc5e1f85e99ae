// include/kassette/backend/elementwise.h - elementwise math.
#ifndef KASSETTE_BACKEND_ELEMENTWISE_H
#define KASSETTE_BACKEND_ELEMENTWISE_H
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

// Results have the dtype of x. Functions "of floats" throw TypeError for integers and bool. Integers wrap around. Two
// operands broadcast; they must have the same dtype, or one must be a number or list, which takes the dtype of the
// other; otherwise TypeError is thrown.

/// x * x.
KASSETTE_API Tensor square(const Operand& x);
/// The absolute value; for the lowest integer, that integer itself. Its gradient at 0 is 0.
KASSETTE_API Tensor abs(const Operand& x);
/// The square root of floats; 0 for negative numbers, and no gradient there.
KASSETTE_API Tensor sqrt(const Operand& x);
/// The exponential of floats.
KASSETTE_API Tensor exp(const Operand& x);
/// The natural logarithm of floats: -inf at 0, NaN below.
KASSETTE_API Tensor log(const Operand& x);
/// log(1 + x) of floats, exact near 0, where 1 + x would round: -inf at -1, NaN below.
KASSETTE_API Tensor log1p(const Operand& x);
/// The nearest integer, ties to even; integers are unchanged. No gradient flows through it.
KASSETTE_API Tensor round(const Operand& x);
/// -1, 0 or 1, the sign of x; NaN stays NaN. Its gradient is 0.
KASSETTE_API Tensor sign(const Operand& x);
/// x to the power a; pow(0, 0) is 1. Throws ValueError for a negative power of integers.
KASSETTE_API Tensor pow(const Operand& x, const Operand& a);
/// x between two bounds: numbers, tensors that broadcast to x, or None. If they cross, min_value wins. Throws
/// ValueError if x would have to broadcast to a bound. The gradient passes at the bounds too.
KASSETTE_API Tensor clip(const Operand& x, const Operand& min_value, const Operand& max_value);
/// The larger of two elements; NaN if either is NaN. The gradient of a tie goes to x.
KASSETTE_API Tensor maximum(const Operand& x, const Operand& y);
/// The smaller of two elements; NaN if either is NaN. The gradient of a tie goes to x.
KASSETTE_API Tensor minimum(const Operand& x, const Operand& y);
/// The sine and cosine of floats in radians.
KASSETTE_API Tensor sin(const Operand& x);
KASSETTE_API Tensor cos(const Operand& x);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_ELEMENTWISE_H
