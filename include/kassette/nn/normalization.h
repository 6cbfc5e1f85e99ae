// include/kassette/nn/normalization.h - normalisation as Keras 3 has it.
#ifndef KASSETTE_NN_NORMALIZATION_H
#define KASSETTE_NN_NORMALIZATION_H
#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace nn {

// Floats; half types are accumulated in float32. `epsilon` is K::epsilon() where it is None. gamma, beta, scale and
// offset may be None. An axis that is out of range throws ValueError, as do parameters that do not fit.

/// The result of moments: `auto [mean, variance] = ...`.
struct Moments {
  Tensor mean, variance;
};
/// The mean and the variance (divided by n) over axes; None: all.
KASSETTE_API Moments moments(const Operand& x, const Axes& axes, bool keepdims = false);
/// x divided by its norm along the axes, or by epsilon where that is larger. `order` is 1, 2, infinity or another
/// positive order of the norm.
KASSETTE_API Tensor normalize(const Operand& x, const Axes& axis = -1, double order = 2, Scalar epsilon = None);
/// (x - mean) / sqrt(variance + epsilon) * scale + offset, with parameters that lie along the axis: inference with
/// statistics that are known.
KASSETTE_API Tensor batch_normalization(const Operand& x, const Operand& mean, const Operand& variance, int axis,
                                        const Operand& offset = None, const Operand& scale = None,
                                        double epsilon = 1e-3);
/// x with mean 0 and variance 1 along the axes, times gamma plus beta, which have the sizes of these axes in the order
/// of x.
KASSETTE_API Tensor layer_normalization(const Operand& x, const Operand& gamma = None, const Operand& beta = None,
                                        const Axes& axis = -1, Scalar epsilon = None);
/// x / sqrt(mean(x^2) + epsilon) along the axes, times scale, which has the sizes of these axes.
KASSETTE_API Tensor rms_normalization(const Operand& x, const Operand& scale = None, const Axes& axis = -1,
                                      Scalar epsilon = None);
/// The channels, along the axis, in groups of equal size, of which each sample's has mean 0 and variance 1; times gamma
/// plus beta, one for each channel. Throws ValueError unless the groups divide the channels.
KASSETTE_API Tensor group_normalization(const Operand& x, int groups, const Operand& gamma = None,
                                        const Operand& beta = None, int axis = -1, double epsilon = 1e-3);
/// group_normalization with a group for each channel.
KASSETTE_API Tensor instance_normalization(const Operand& x, const Operand& gamma = None, const Operand& beta = None,
                                           int axis = -1, double epsilon = 1e-3);
/// The peak signal-to-noise ratio of two images or batches in decibels: 10 log10(max_val^2 / mean((x1 - x2)^2)).
KASSETTE_API Tensor psnr(const Operand& x1, const Operand& x2, double max_val);

}  // namespace nn
}  // namespace kassette

#endif  // KASSETTE_NN_NORMALIZATION_H
