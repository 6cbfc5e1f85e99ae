// nn_backend/activations.h - activation functions.
#ifndef KASSETTE_BACKEND_ACTIVATIONS_H
#define KASSETTE_BACKEND_ACTIVATIONS_H
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

// Elementwise, in the dtype of x, a float dtype; else a TypeError.

/// x where x >= threshold, but at most max_value and then at least 0; alpha * (x - threshold) below. The gradient is 0
/// at 0 without alpha, alpha with it, and passes at max_value (6 too). NaN stays. Without options integers are taken.
KASSETTE_API Tensor relu(const Operand& x, double alpha = 0.0, Scalar max_value = None, double threshold = 0.0);
/// x above 0, alpha * (exp(x) - 1) below.
KASSETTE_API Tensor elu(const Operand& x, double alpha = 1.0);
/// log(1 + exp(x)).
KASSETTE_API Tensor softplus(const Operand& x);
/// x / (1 + |x|). Floats only (TypeError).
KASSETTE_API Tensor softsign(const Operand& x);
/// 1 / (1 + exp(-x)).
KASSETTE_API Tensor sigmoid(const Operand& x);
/// 0.2 * x + 0.5 between 0 and 1. The gradient is 0.2 from -2.5 to 2.5, both included.
KASSETTE_API Tensor hard_sigmoid(const Operand& x);
/// The hyperbolic tangent.
KASSETTE_API Tensor tanh(const Operand& x);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_ACTIVATIONS_H
