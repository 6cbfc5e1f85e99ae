// include/kassette/optimize.h - minima, fits and zeros of functions: np::optimize.
//
// f is any callable of one tensor, of the shape of x0, that returns a tensor. Its derivatives come from
// <kassette/transforms.h>, so that none are given. x0 is a value, not a placeholder. All is computed in its dtype:
// float64 is recommended, since a list of numbers is float32 (`np::array({1, 2}, np::float64)`), in which the default
// tolerances cannot be reached. Options have SciPy's names and defaults. The results are constants: no gradient flows
// through them to what f depends on.
#ifndef KASSETTE_OPTIMIZE_H
#define KASSETTE_OPTIMIZE_H
#include <cstdint>

#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace numpy {
namespace optimize {

/// What minimize found: x, the value of f there and its gradient, whether a tolerance was reached, what ended the
/// search, and how many iterations, calls of f, gradients and products with the Hessian that took.
struct MinimizeResult {
  Tensor x, fun, jac;
  bool success = false;
  const char* message = "";
  std::int64_t nit = 0, nfev = 0, njev = 0, nhev = 0;
};
/// The arguments of minimize by name. tol stands for all tolerances of the method.
struct MinimizeOptions {
  Named only_by_name{0};
  Name method = "L-BFGS";
  Scalar tol = None;
  // L-BFGS: how many steps it remembers; it ends where f falls by less than ftol in proportion to the larger of its
  // value and 1 (at least ten units of the dtype), or where no element of the gradient is above gtol.
  int maxcor = 10;
  double ftol = 2.220446049250313e-09, gtol = 1e-5;
  // Newton-CG: it ends where the elements of a step are xtol on average.
  double xtol = 1e-5;
  // The most iterations, 15000 for L-BFGS and 200 for each element of x for Newton-CG, calls of f, and calls of f in
  // one search along a line.
  Scalar maxiter = None;
  int maxfun = 15000, maxls = 20;
};
/// A local minimum of f, which returns one number, from x0 on. method: "L-BFGS", which estimates curvatures from the
/// last gradients, or "Newton-CG", which solves for Newton's step by products with the Hessian (Nocedal and Wright,
/// algorithms 7.5 and 7.1). Throws ValueError if f is not finite at x0, or returns more than one number.
KASSETTE_API MinimizeResult minimize(Callable<Tensor(const Tensor&)> f, const Operand& x0,
                                     const MinimizeOptions& options = {});

/// What least_squares found: x, half the sum of the squares there, f(x), its Jacobian, as a matrix with a column for
/// each element of x, and the gradient of the cost; the largest of the gradient's absolute values, and the rest as in
/// MinimizeResult.
struct LeastSquaresResult {
  Tensor x, cost, fun, jac, grad;
  double optimality = 0;
  bool success = false;
  const char* message = "";
  std::int64_t nit = 0, nfev = 0, njev = 0;
};
/// The arguments of least_squares by name: it ends where the cost falls by less than ftol times itself, where a step is
/// shorter than xtol times x, where no element of the gradient is above gtol, or after max_nfev calls of f, 100 for
/// each element of x unless given.
struct LeastSquaresOptions {
  Named only_by_name{0};
  double ftol = 1e-8, xtol = 1e-8, gtol = 1e-8;
  Scalar max_nfev = None;
};
/// The x for which the sum of the squares of f(x), whose shape is any, has a local minimum, from x0 on, by Levenberg's
/// and Marquardt's method. Throws ValueError if f is not finite at x0.
KASSETTE_API LeastSquaresResult least_squares(Callable<Tensor(const Tensor&)> f, const Operand& x0,
                                              const LeastSquaresOptions& options = {});

/// What root found: x, f(x) and its Jacobian as a matrix; the rest as in MinimizeResult.
struct RootResult {
  Tensor x, fun, jac;
  bool success = false;
  const char* message = "";
  std::int64_t nit = 0, nfev = 0, njev = 0;
};
/// The arguments of root by name: it ends where a step is shorter than xtol times x (`tol` is another name of it), or
/// after maxfev calls of f, 100 for each element of x and one more unless given.
struct RootOptions {
  Named only_by_name{0};
  Scalar tol = None;
  double xtol = 1.49012e-08;
  Scalar maxfev = None;
};
/// An x for which f(x), which has as many elements as x, is zero, from x0 on: Newton's method, whose steps are
/// shortened until the sum of the squares falls. A singular Jacobian takes the shortest step of least squares. Throws
/// ValueError if f is not finite at x0, or returns another number of elements.
KASSETTE_API RootResult root(Callable<Tensor(const Tensor&)> f, const Operand& x0, const RootOptions& options = {});

}  // namespace optimize
}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_OPTIMIZE_H
