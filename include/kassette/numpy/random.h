// include/kassette/numpy/random.h - NumPy's random numbers: namespace np::random.
//
// The functions draw from K's global generator, which seed() seeds. A Generator has a series of its own, whose state
// can be saved: a training that restores it goes on with the same bits. Draws are those of K: the same bits for any
// number of threads, and on every device up to the last place of logarithms. A draw that is a part of a function is
// drawn anew at each call.
#ifndef KASSETTE_NUMPY_RANDOM_H
#define KASSETTE_NUMPY_RANDOM_H
#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace numpy {
namespace random {

// Parameters are numbers or tensors that broadcast. `size` is the shape of the result, None that of the parameters.
// Samples are of floatx, or of the parameters' dtype, unless dtype is given. Gradients flow to locations, scales and
// bounds. Numbers that are no parameters of a distribution throw ValueError; in tensors they give NaN.

/// The arguments of integers by name. With endpoint, `high` is among the numbers.
struct IntegersOptions {
  Named only_by_name{0};
  DType dtype = int64;
  bool endpoint = false;
};
/// Those of choice: `p` are probabilities, None equal ones; without `replace` no element is chosen twice.
struct ChoiceOptions {
  Named only_by_name{0};
  bool replace = true;
  KeptOperand p = None;
  int axis = 0;
};

namespace detail {
struct Global {};
}  // namespace detail

/// A series of random numbers. Copies share it.
class KASSETTE_API Generator {
 public:
  /// A series for a seed, which is an integer; with None for one that the global generator yields.
  explicit Generator(Scalar seed = None);
  explicit Generator(detail::Global) {}
  /// Two int64: the seed, and the number of draws so far.
  Tensor state() const;
  /// Goes on from a state. Throws ValueError unless it is one.
  void set_state(const Tensor& state);

  /// Uniform in [0, 1).
  Tensor random(const Dims& size = None, DType dtype = None) const;
  /// Uniform in [low, high).
  Tensor uniform(const Operand& low = 0.0, const Operand& high = 1.0, const Dims& size = None,
                 DType dtype = None) const;
  /// Normal with mean loc and standard deviation scale.
  Tensor normal(const Operand& loc = 0.0, const Operand& scale = 1.0, const Dims& size = None,
                DType dtype = None) const;
  Tensor standard_normal(const Dims& size = None, DType dtype = None) const;
  /// Integers in [low, high), or, for a high of None, in [0, low).
  Tensor integers(const Scalar& low, const Scalar& high = None, const Dims& size = None,
                  const IntegersOptions& options = {}) const;
  /// Exponential with mean scale; Laplace and Gumbel.
  Tensor exponential(const Operand& scale = 1.0, const Dims& size = None, DType dtype = None) const;
  Tensor laplace(const Operand& loc = 0.0, const Operand& scale = 1.0, const Dims& size = None,
                 DType dtype = None) const;
  Tensor gumbel(const Operand& loc = 0.0, const Operand& scale = 1.0, const Dims& size = None,
                DType dtype = None) const;
  /// Normal vectors of mean (..., n) and covariances cov (..., n, n): (size..., n). Throws ValueError unless cov is
  /// positive definite.
  Tensor multivariate_normal(const Operand& mean, const Operand& cov, const Dims& size = None) const;
  /// Gamma; shape gets no gradient.
  Tensor gamma(const Operand& shape, const Operand& scale = 1.0, const Dims& size = None, DType dtype = None) const;
  /// Beta, and Dirichlet with the classes of the last axis of alpha: (size..., classes). No gradient.
  Tensor beta(const Operand& a, const Operand& b, const Dims& size = None, DType dtype = None) const;
  Tensor dirichlet(const Operand& alpha, const Dims& size = None, DType dtype = None) const;
  /// exp of a normal number of that mean and standard deviation.
  Tensor lognormal(const Operand& mean = 0.0, const Operand& sigma = 1.0, const Dims& size = None,
                   DType dtype = None) const;
  /// Logistic, Rayleigh, Weibull of scale 1, Pareto's second kind (of Lomax), and Cauchy.
  Tensor logistic(const Operand& loc = 0.0, const Operand& scale = 1.0, const Dims& size = None,
                  DType dtype = None) const;
  Tensor rayleigh(const Operand& scale = 1.0, const Dims& size = None, DType dtype = None) const;
  Tensor weibull(const Operand& a, const Dims& size = None, DType dtype = None) const;
  Tensor pareto(const Operand& a, const Dims& size = None, DType dtype = None) const;
  Tensor standard_cauchy(const Dims& size = None, DType dtype = None) const;
  /// The sum of the squares of df normal numbers. No gradient.
  Tensor chisquare(const Operand& df, const Dims& size = None, DType dtype = None) const;
  /// int64: the number of trials up to the first success, each with probability p.
  Tensor geometric(const Operand& p, const Dims& size = None) const;
  /// int64 (size..., classes): how often n draws gave each class, of the probabilities pvals, a vector; what they leave
  /// to 1 is that of the last class. Draws n uniform numbers for each sample.
  Tensor multinomial(std::int64_t n, const Operand& pvals, const Dims& size = None) const;
  /// int64: the number of events of which there are lam on average; of successes among n trials with probability p.
  Tensor poisson(const Operand& lam = 1.0, const Dims& size = None) const;
  Tensor binomial(const Operand& n, const Operand& p, const Dims& size = None) const;
  /// bool: true with probability p.
  Tensor bernoulli(const Operand& p = 0.5, const Dims& size = None) const;
  /// int64: classes whose logarithms of probabilities are along the last axis, up to a constant: of the shape `size`,
  /// to which the other axes broadcast.
  Tensor categorical(const Operand& logits, const Dims& size = None) const;
  /// The numbers below an integer x, or the slices of x along its first axis, in random order.
  Tensor permutation(const Operand& x) const;
  /// The slices of x along an axis in random order, as a new tensor.
  Tensor shuffle(const Operand& x, int axis = 0) const;
  /// Elements of x along an axis, or numbers below an integer x. Throws ValueError if there are too few.
  Tensor choice(const Operand& x, const Dims& size = None, const ChoiceOptions& options = {}) const;

 private:
  Tensor key(const char* what, const Tensors& inputs) const;
  Tensor source_;  // undefined: the global generator
};

/// A generator of its own for a seed.
inline Generator default_rng(const Scalar& seed = None) { return Generator(seed); }
/// Seeds the global generator, from which the functions below draw: those of a Generator, with the same arguments.
KASSETTE_API void seed(Scalar seed);
KASSETTE_API Tensor random(const Dims& size = None, DType dtype = None);
KASSETTE_API Tensor uniform(const Operand& low = 0.0, const Operand& high = 1.0, const Dims& size = None,
                            DType dtype = None);
KASSETTE_API Tensor normal(const Operand& loc = 0.0, const Operand& scale = 1.0, const Dims& size = None,
                           DType dtype = None);
KASSETTE_API Tensor standard_normal(const Dims& size = None, DType dtype = None);
KASSETTE_API Tensor integers(const Scalar& low, const Scalar& high = None, const Dims& size = None,
                             const IntegersOptions& options = {});
KASSETTE_API Tensor exponential(const Operand& scale = 1.0, const Dims& size = None, DType dtype = None);
KASSETTE_API Tensor laplace(const Operand& loc = 0.0, const Operand& scale = 1.0, const Dims& size = None,
                            DType dtype = None);
KASSETTE_API Tensor gumbel(const Operand& loc = 0.0, const Operand& scale = 1.0, const Dims& size = None,
                           DType dtype = None);
KASSETTE_API Tensor multivariate_normal(const Operand& mean, const Operand& cov, const Dims& size = None);
KASSETTE_API Tensor gamma(const Operand& shape, const Operand& scale = 1.0, const Dims& size = None,
                          DType dtype = None);
KASSETTE_API Tensor beta(const Operand& a, const Operand& b, const Dims& size = None, DType dtype = None);
KASSETTE_API Tensor dirichlet(const Operand& alpha, const Dims& size = None, DType dtype = None);
KASSETTE_API Tensor lognormal(const Operand& mean = 0.0, const Operand& sigma = 1.0, const Dims& size = None,
                              DType dtype = None);
KASSETTE_API Tensor logistic(const Operand& loc = 0.0, const Operand& scale = 1.0, const Dims& size = None,
                             DType dtype = None);
KASSETTE_API Tensor rayleigh(const Operand& scale = 1.0, const Dims& size = None, DType dtype = None);
KASSETTE_API Tensor weibull(const Operand& a, const Dims& size = None, DType dtype = None);
KASSETTE_API Tensor pareto(const Operand& a, const Dims& size = None, DType dtype = None);
KASSETTE_API Tensor standard_cauchy(const Dims& size = None, DType dtype = None);
KASSETTE_API Tensor chisquare(const Operand& df, const Dims& size = None, DType dtype = None);
KASSETTE_API Tensor geometric(const Operand& p, const Dims& size = None);
KASSETTE_API Tensor multinomial(std::int64_t n, const Operand& pvals, const Dims& size = None);
KASSETTE_API Tensor poisson(const Operand& lam = 1.0, const Dims& size = None);
KASSETTE_API Tensor binomial(const Operand& n, const Operand& p, const Dims& size = None);
KASSETTE_API Tensor bernoulli(const Operand& p = 0.5, const Dims& size = None);
KASSETTE_API Tensor categorical(const Operand& logits, const Dims& size = None);
KASSETTE_API Tensor permutation(const Operand& x);
KASSETTE_API Tensor shuffle(const Operand& x, int axis = 0);
KASSETTE_API Tensor choice(const Operand& x, const Dims& size = None, const ChoiceOptions& options = {});

}  // namespace random
}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_NUMPY_RANDOM_H
