// include/kassette/backend/normalization.h - normalisation.
#ifndef KASSETTE_BACKEND_NORMALIZATION_H
#define KASSETTE_BACKEND_NORMALIZATION_H
#include <kassette/none.h>
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

/// The result of normalize_batch_in_training: `auto [normalized, mean, variance] = ...`.
struct NormalizedBatch {
  Tensor normalized, mean, variance;
  friend KASSETTE_API std::ostream& operator<<(std::ostream& os, const NormalizedBatch& batch);
};
/// x, floats of any rank, normalised to mean 0 and variance 1 over the axes (None: all), then scaled by gamma and
/// shifted by beta: normalized = (x - mean) / sqrt(variance + epsilon) * gamma + beta. mean and the (biased) variance
/// are returned without the reduced axes; gamma and beta broadcast to their shape, and may be None or an empty Tensor.
/// float16 and bfloat16 accumulate in float32. All is one op; the gradient passes through mean and variance. Throws
/// ValueError for an axis out of range or a gamma or beta that does not fit.
KASSETTE_API NormalizedBatch normalize_batch_in_training(const Operand& x, const Operand& gamma, const Operand& beta,
                                                         const Axes& reduction_axes, double epsilon = 1e-3);
/// (x - mean) / sqrt(var + epsilon) * gamma + beta, with the shape of x. Parameters of rank 1 lie along `axis` of x,
/// others broadcast; beta and gamma may be None or an empty Tensor. Throws ValueError if a parameter does not fit, and
/// if x has an unknown rank and parameters of rank 1 would lie along an axis other than the last.
KASSETTE_API Tensor batch_normalization(const Operand& x, const Operand& mean, const Operand& var, const Operand& beta,
                                        const Operand& gamma, int axis = -1, double epsilon = 1e-3);
/// x / sqrt(max(sum(x^2), 1e-12)) of floats, with the sum over axes (None: all); zeros stay zeros.
KASSETTE_API Tensor l2_normalize(const Operand& x, const Axes& axis = None);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_NORMALIZATION_H
