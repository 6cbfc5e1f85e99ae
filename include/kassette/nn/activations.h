// include/kassette/nn/activations.h - activation functions as Keras 3 has them, and classes as zeros and ones.
#ifndef KASSETTE_NN_ACTIVATIONS_H
#define KASSETTE_NN_ACTIVATIONS_H
#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace nn {

// Floats of any shape, elementwise unless there is an axis. Other dtypes throw TypeError.

/// max(x, 0). The gradient at 0 is 0.
KASSETTE_API Tensor relu(const Operand& x);
/// x limited to [0, 6].
KASSETTE_API Tensor relu6(const Operand& x);
/// x where x > 0, negative_slope * x elsewhere.
KASSETTE_API Tensor leaky_relu(const Operand& x, double negative_slope = 0.2);
/// x where x > 0, alpha * (exp(x) - 1) elsewhere.
KASSETTE_API Tensor elu(const Operand& x, double alpha = 1.0);
/// elu with alpha = 1.6733, times 1.0507 (Klambauer et al. 2017): it keeps mean 0 and variance 1.
KASSETTE_API Tensor selu(const Operand& x);
/// x where x > 0, alpha * (exp(x / alpha) - 1) elsewhere.
KASSETTE_API Tensor celu(const Operand& x, double alpha = 1.0);
/// x times the probability that a standard normal number is below x; approximately that, with a tanh, as default:
/// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
KASSETTE_API Tensor gelu(const Operand& x, bool approximate = true);
/// x * sigmoid(x).
KASSETTE_API Tensor silu(const Operand& x);
inline Tensor swish(const Operand& x) { return silu(x); }
/// x * tanh(log(1 + exp(x))).
KASSETTE_API Tensor mish(const Operand& x);
/// The first half of x along the axis times the sigmoid of the second. Throws ValueError if the size is odd.
KASSETTE_API Tensor glu(const Operand& x, int axis = -1);

/// 1 / (1 + exp(-x)).
KASSETTE_API Tensor sigmoid(const Operand& x);
/// x / 6 + 1 / 2, limited to [0, 1]. K::hard_sigmoid, as Keras 2 has it, is steeper.
KASSETTE_API Tensor hard_sigmoid(const Operand& x);
/// (x + 1) / 2, limited to [0, 1].
KASSETTE_API Tensor sparse_sigmoid(const Operand& x);
/// log(sigmoid(x)), without underflow.
KASSETTE_API Tensor log_sigmoid(const Operand& x);
/// x * hard_sigmoid(x).
KASSETTE_API Tensor hard_silu(const Operand& x);
inline Tensor hard_swish(const Operand& x) { return hard_silu(x); }

/// log(1 + exp(x)).
KASSETTE_API Tensor softplus(const Operand& x);
/// (x + sqrt(x^2 + b)) / 2, without cancellation or overflow.
KASSETTE_API Tensor squareplus(const Operand& x, double b = 4.0);
/// 0 where x <= -1, x where x >= 1, (x + 1)^2 / 4 between.
KASSETTE_API Tensor sparse_plus(const Operand& x);

/// x / (1 + |x|).
KASSETTE_API Tensor softsign(const Operand& x);
/// The hyperbolic tangent.
KASSETTE_API Tensor tanh(const Operand& x);
/// x limited to [-1, 1].
KASSETTE_API Tensor hard_tanh(const Operand& x);
/// x - tanh(x).
KASSETTE_API Tensor tanh_shrink(const Operand& x);
/// x where |x| > threshold, 0 elsewhere.
KASSETTE_API Tensor hard_shrink(const Operand& x, double threshold = 0.5);
/// x moved towards 0 by threshold, 0 where |x| <= threshold.
KASSETTE_API Tensor soft_shrink(const Operand& x, double threshold = 0.5);
/// x where x > threshold, default_value elsewhere.
KASSETTE_API Tensor threshold(const Operand& x, double threshold, double default_value);

// An axis that is out of range throws ValueError.

/// exp(x) / sum(exp(x)) along an axis, several, or all (None), without overflow.
KASSETTE_API Tensor softmax(const Operand& x, const Axes& axis = -1);
/// log(softmax(x)), without underflow.
KASSETTE_API Tensor log_softmax(const Operand& x, const Axes& axis = -1);
/// The point of the probability simplex that is nearest to x along an axis (Martins and Astudillo 2016): as softmax,
/// but small probabilities are 0.
KASSETTE_API Tensor sparsemax(const Operand& x, int axis = -1);

/// 1 at the place of the class and 0 elsewhere, along a new axis of num_classes elements. x are integers; zeros alone
/// for those that are no class. The dtype is floatx unless given.
KASSETTE_API Tensor one_hot(const Operand& x, int num_classes, int axis = -1, DType dtype = None);
/// 1 at the places of all classes along the last axis of x, which is replaced by `axis`, of num_classes elements.
KASSETTE_API Tensor multi_hot(const Operand& x, int num_classes, int axis = -1, DType dtype = None);

}  // namespace nn
}  // namespace kassette

#endif  // KASSETTE_NN_ACTIVATIONS_H
