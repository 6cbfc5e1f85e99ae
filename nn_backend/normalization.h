// nn_backend/normalization.h - normalisation (specification section 2.9).
#ifndef KASSETTE_BACKEND_NORMALIZATION_H
#define KASSETTE_BACKEND_NORMALIZATION_H
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

/// x / sqrt(max(sum(x^2), 1e-12)), the sum over axes (None: all), of floats; zeros stay zeros. Specification 2.9.
KASSETTE_API Tensor l2_normalize(const Operand& x, const Axes& axis = None);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_NORMALIZATION_H
