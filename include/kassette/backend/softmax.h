// include/kassette/backend/softmax.h - softmax.
#ifndef KASSETTE_BACKEND_SOFTMAX_H
#define KASSETTE_BACKEND_SOFTMAX_H
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

/// exp(x) / sum(exp(x)) along an axis, without overflow, of floats of rank 1 or more. Throws ValueError for an axis out
/// of range.
KASSETTE_API Tensor softmax(const Operand& x, int axis = -1);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_SOFTMAX_H
