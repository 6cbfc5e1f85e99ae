// include/kassette/backend/activations.h - activation functions.
#ifndef KASSETTE_BACKEND_ACTIVATIONS_H
#define KASSETTE_BACKEND_ACTIVATIONS_H
#include <kassette/none.h>
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

// Elementwise functions, which return the dtype of x and throw TypeError unless it is a float dtype.

/// x where x >= threshold, if there is a max_value limited to [0, max_value]; alpha * (x - threshold) elsewhere. The
/// gradient at 0 is alpha (0 by default), and it passes at max_value, even if that is 6. NaN stays NaN; a NaN threshold
/// or max_value makes all elements NaN. Without options, integers are accepted too.
KASSETTE_API Tensor relu(const Operand& x, double alpha = 0.0, Scalar max_value = None, double threshold = 0.0);
/// x where x > 0, alpha * (exp(x) - 1) elsewhere.
KASSETTE_API Tensor elu(const Operand& x, double alpha = 1.0);
/// log(1 + exp(x)).
KASSETTE_API Tensor softplus(const Operand& x);
/// x / (1 + |x|). Throws TypeError unless x has a float dtype.
KASSETTE_API Tensor softsign(const Operand& x);
/// 1 / (1 + exp(-x)).
KASSETTE_API Tensor sigmoid(const Operand& x);
/// 0.2 * x + 0.5, limited to [0, 1]. The gradient is 0.2 from -2.5 to 2.5, both included.
KASSETTE_API Tensor hard_sigmoid(const Operand& x);
/// The hyperbolic tangent.
KASSETTE_API Tensor tanh(const Operand& x);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_ACTIVATIONS_H
