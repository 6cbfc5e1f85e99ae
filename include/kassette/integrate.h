// include/kassette/integrate.h - ordinary differential equations: np::integrate.
#ifndef KASSETTE_INTEGRATE_H
#define KASSETTE_INTEGRATE_H
#include <cstdint>

#include <kassette/api.h>
#include <kassette/none.h>

namespace kassette {
namespace numpy {
namespace integrate {

/// The arguments of odeint by name, those of SciPy's solve_ivp: the error of a step is kept below atol + rtol |y| (the
/// root of the mean square over the elements), first_step is chosen unless given, and no step is longer than max_step.
/// After max_steps steps, accepted or not, it gives up.
struct OdeintOptions {
  Named only_by_name{0};
  double rtol = 1e-3, atol = 1e-6;
  Scalar first_step = None;
  double max_step = __builtin_inf();
  std::int64_t max_steps = 100000;
};
/// The solution of dy/dt = f(t, y) with y(t[0]) = y0 at the times t, which are host values that rise or fall: (times,
/// ...y0's shape), by Dormand's and Prince's method of order 5 with adaptive steps, and between them by its polynomial
/// of order 4. f gets t as a tensor of one number and y as y0 is, of any shape, and returns the slope of y's shape. All
/// is computed in the dtype of y0: float64 is recommended. Gradients of any order flow to y0, and to what f depends on,
/// through the steps that were taken, whose lengths count as constants. Throws ValueError if t is no such vector, if f
/// returns another shape, or if the solution cannot be continued.
KASSETTE_API Tensor odeint(Callable<Tensor(const Tensor&, const Tensor&)> f, const Operand& y0, const Operand& t,
                           const OdeintOptions& options = {});

}  // namespace integrate
}  // namespace numpy
}  // namespace kassette

#endif  // KASSETTE_INTEGRATE_H
