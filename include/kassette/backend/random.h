// include/kassette/backend/random.h - random tensors and dropout.
//
// Without a seed, draws follow the global generator (set_random_seed). With a seed, an op starts a sequence of its own:
// making the op again repeats the sequence. A recorded draw, and one inside a function, gives new numbers at each call.
#ifndef KASSETTE_BACKEND_RANDOM_H
#define KASSETTE_BACKEND_RANDOM_H
#include <kassette/none.h>
#include <kassette/tensor.h>

namespace kassette {
namespace backend {

/// Makes all later draws without a seed of their own reproducible, also those of functions that exist already. Throws
/// TypeError if the seed is not an integer.
KASSETTE_API void set_random_seed(Scalar seed);

/// Normal samples of that shape: floatx unless dtype is given, which must be a float. mean and stddev may be tensors
/// that broadcast; gradients flow to them. Throws ValueError if stddev is a negative number.
KASSETTE_API Tensor random_normal(const Dims& shape, const Operand& mean = 0.0, const Operand& stddev = 1.0,
                                  DType dtype = None, Scalar seed = None);
/// Uniformly distributed samples from [minval, maxval). Integer dtypes take integer bounds and need maxval. Bounds may
/// be tensors that broadcast, or, if they are integers, scalar tensors; gradients flow to float bounds.
KASSETTE_API Tensor random_uniform(const Dims& shape, const Operand& minval = 0.0, const Operand& maxval = 1.0,
                                   DType dtype = None, Scalar seed = None);
/// Samples that are 1 with probability p, else 0. Throws ValueError if p is a number outside [0, 1].
KASSETTE_API Tensor random_binomial(const Dims& shape, const Operand& p = 0.0, DType dtype = None, Scalar seed = None);
/// Samples as from random_normal, without those that lie two standard deviations or more from the mean: the standard
/// deviation of the rest is 0.87962566 * stddev.
KASSETTE_API Tensor truncated_normal(const Dims& shape, const Operand& mean = 0.0, const Operand& stddev = 1.0,
                                     DType dtype = None, Scalar seed = None);

/// Keeps each element of x with probability 1 - level, divides it by that, and sets the others to 0, whether in
/// training or not. The mask has the shape noise_shape, in which None stands for x's size, and broadcasts to x. Throws
/// ValueError unless 0 <= level < 1 and x is of a float dtype.
KASSETTE_API Tensor dropout(const Operand& x, double level, const Dims& noise_shape = None, Scalar seed = None);

/// A variable with uniformly distributed samples from [low, high), drawn once.
KASSETTE_API Tensor random_uniform_variable(const Dims& shape, double low, double high, DType dtype = None,
                                            Name name = None, Scalar seed = None);
/// A variable with normal samples, drawn once. Throws ValueError if scale is negative.
KASSETTE_API Tensor random_normal_variable(const Dims& shape, double mean, double scale, DType dtype = None,
                                           Name name = None, Scalar seed = None);

}  // namespace backend
}  // namespace kassette

#endif  // KASSETTE_BACKEND_RANDOM_H
