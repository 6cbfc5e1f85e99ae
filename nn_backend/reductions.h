// nn_backend/reductions.h - reductions over axes (specification section 2.6).
#ifndef KASSETTE_BACKEND_REDUCTIONS_H
#define KASSETTE_BACKEND_REDUCTIONS_H
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

// `axis` is one axis, a list, or None for all; {} reduces nothing. With keepdims the reduced axes stay with size 1. An axis out of
// range or given twice is a ValueError.

/// The sum over axes, in the dtype of x: integers wrap. Of nothing: 0. Throws TypeError on bool. Specification 2.6.
KASSETTE_API Tensor sum(const Operand& x, const Axes& axis = None, bool keepdims = false);
/// The largest element; NaN where there is one. Of nothing: -inf, or the lowest integer. Throws TypeError on bool.
KASSETTE_API Tensor max(const Operand& x, const Axes& axis = None, bool keepdims = false);
/// The smallest element; NaN where there is one. Of nothing: inf, or the largest integer. Throws TypeError on bool.
KASSETTE_API Tensor min(const Operand& x, const Axes& axis = None, bool keepdims = false);
/// The arithmetic mean; bool and integers are cast to floatx first. Of nothing: NaN. Specification 2.6.
KASSETTE_API Tensor mean(const Operand& x, const Axes& axis = None, bool keepdims = false);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_REDUCTIONS_H
