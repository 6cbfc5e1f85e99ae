// nn_backend/comparison.h - comparisons.
#ifndef KASSETTE_BACKEND_COMPARISON_H
#define KASSETTE_BACKEND_COMPARISON_H
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

// Element by element, broadcasting, as bool; exact, and false where NaN takes part, but not_equal is true. Both have
// one dtype, or one is a number or list that takes the other's; else a TypeError. No gradient.

/// x == y.
KASSETTE_API Tensor equal(const Operand& x, const Operand& y);
/// x != y: true where either is NaN.
KASSETTE_API Tensor not_equal(const Operand& x, const Operand& y);
/// x > y; not on bool, as the other orderings.
KASSETTE_API Tensor greater(const Operand& x, const Operand& y);
/// x >= y.
KASSETTE_API Tensor greater_equal(const Operand& x, const Operand& y);
/// x < y.
KASSETTE_API Tensor less(const Operand& x, const Operand& y);
/// x <= y.
KASSETTE_API Tensor less_equal(const Operand& x, const Operand& y);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_COMPARISON_H
