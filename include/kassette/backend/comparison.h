// include/kassette/backend/comparison.h - comparisons.
#ifndef KASSETTE_BACKEND_COMPARISON_H
#define KASSETTE_BACKEND_COMPARISON_H
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

// Element-by-element comparisons, which broadcast and return bool. They are exact. Comparing with NaN gives false,
// except that not_equal gives true. Both operands must have the same dtype, or one must be a number or list, which
// takes the dtype of the other; otherwise TypeError is thrown. No gradient.

/// x == y.
KASSETTE_API Tensor equal(const Operand& x, const Operand& y);
/// x != y: true where either is NaN.
KASSETTE_API Tensor not_equal(const Operand& x, const Operand& y);
/// x > y; like the other orderings, not defined for bool.
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
