// nn_backend/softmax.h - softmax (specification section 2.15).
#ifndef KASSETTE_BACKEND_SOFTMAX_H
#define KASSETTE_BACKEND_SOFTMAX_H
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

/// exp(x) / sum(exp(x)) along an axis, without overflow, of floats of rank 1 or more. Throws ValueError for an axis out of range.
/// Specification 2.15.
KASSETTE_API Tensor softmax(const Operand& x, int axis = -1);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_SOFTMAX_H
