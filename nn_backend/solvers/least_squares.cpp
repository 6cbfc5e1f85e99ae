// nn_backend/solvers/least_squares.cpp - fits and zeros of functions: np::optimize::least_squares and root.
#include <kassette/optimize.h>
#include <kassette/transforms.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/text.h"
#include "nn_backend/numpy/numbers.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/engine/stop.h"
#include "ops/linalg/linalg.h"
#include "ops/product/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace optimize {
namespace {

using OfTensor = Callable<Tensor(const Tensor&)>;

/// f between vectors, and how often it was called.
class Residuals {
 public:
  Residuals(const char* what, const OfTensor& f, const Tensor& x0) : what_(what), f_(f), x0_(x0) {}
  /// f(x) as it is, where x is a vector.
  Tensor shaped(const Tensor& x) {
    ++calls;
    const Tensor y = f_(in_shape(x));
    if (!y.defined()) fail_empty({what_, "the result of f"});
    if (y.symbolic() || !y.dtype().is_float())
      fail<TypeError>({what_, "f"}, "returns ", y.dtype(), y.symbolic() ? " of a placeholder" : "", kExpected,
                      "it must return floats that are known");
    return ops::stop_gradient(y);
  }
  /// Its derivatives at x: a row for each element.
  Tensor jacobian(const Tensor& x) {
    ++jacobians;
    auto flat = [this](const Tensors& list) { return ops::flatten(f_(in_shape(list[0])), 0); };
    return ops::stop_gradient(detail::jacobian_of(detail::OfList(flat), {x}, 0));
  }
  Tensor in_shape(const Tensor& x) const {
    const Shape shape = x0_.shape();
    return ops::reshape(x, Dims(std::vector<std::int64_t>(shape.begin(), shape.end())));
  }
  std::int64_t calls = 0, jacobians = 0;

 private:
  const char* what_;
  const OfTensor& f_;
  const Tensor& x0_;
};

Tensor column(const Tensor& x) { return ops::expand_dims(x, 1); }
/// a x, or a' x.
Tensor times(const Tensor& a, const Tensor& x) { return ops::squeeze(ops::matmul(a, column(x)), 1); }
Tensor transposed_times(const Tensor& a, const Tensor& x) {
  return ops::squeeze(ops::matmul(a, column(x), true, false), 1);
}
double half_of_squares(const Tensor& f) { return dot_of(f, f) / 2; }
void check_start(const char* what, double cost) {
  if (!std::isfinite(cost)) fail<ValueError>({what, "f"}, "is not finite at x0", kExpected, "it must be finite there");
}
std::int64_t calls_of(const At& at, const Scalar& given, std::int64_t otherwise) {
  return given.is_none() ? otherwise : static_cast<std::int64_t>(number_of(at, given));
}

/// The p with the least |J p + f|^2 + |sqrt(mu) d p|^2, for which the factors of J and sqrt(mu) diag(d) in one matrix
/// are used: their product would have the square of its condition.
Tensor damped_step(const Tensor& j, const Tensor& f, const Tensor& d, double mu) {
  const Tensor damping = column(d * std::sqrt(mu)) * ops::identity_like(ops::matmul(j, j, true, false));
  const ops::Qr factors = ops::qr(ops::concatenate({j, damping}, 0));
  const Tensor right = ops::matmul(factors.q, column(ops::concatenate({-f, ops::zeros_of(d)}, 0)), true, false);
  return ops::squeeze(ops::triangular_solve(factors.r, right, {.lower = false}), 1);
}
/// The shortest p with the least |J p + f|.
Tensor newton_step(const Tensor& j, const Tensor& f) {
  const ops::Svd s = ops::svd(j);
  const double cut = largest_of(s.s) * static_cast<double>(f.size()) * unit_of(j.dtype());
  const Tensor counts = ops::greater(s.s, cut), one = ops::number_like(1, s.s);
  const Tensor inverse = ops::where(counts, one / ops::where(counts, s.s, one), ops::number_like(0, s.s));
  return transposed_times(s.vh, inverse * transposed_times(s.u, -f));
}

/// Levenberg's and Marquardt's iteration: More's scaling by the largest norms of the columns so far, Nielsen's rule for
/// the damping.
struct Marquardt {
  Residuals& residuals;
  const LeastSquaresOptions& options;
  std::int64_t max_calls;
  LeastSquaresResult& r;
  Tensor x, flat;  // where it is, and f there
  Tensor scale;    // of the elements of x
  double cost, mu = 1e-3, faster = 2;

  bool end(bool success, const char* message) {
    r.success = success, r.message = message;
    return true;
  }
  void derive() {
    r.jac = residuals.jacobian(x);
    r.grad = transposed_times(r.jac, flat);
    r.optimality = largest_of(r.grad);
    const Tensor norms = ops::sqrt(ops::sum(ops::square(r.jac), 0));
    scale = scale.defined() ? ops::maximum(scale, norms) : norms;
  }
  /// One step, taken or not. True at the end.
  bool step() {
    if (r.optimality <= options.gtol) return end(true, "no element of the gradient is above gtol");
    if (residuals.calls >= max_calls) return end(false, "max_nfev calls of f were made");
    const Tensor d = ops::where(ops::equal(scale, 0), ops::number_like(1, scale), scale);
    const Tensor p = damped_step(r.jac, flat, d, mu);
    const Tensor there = x + p, shaped = residuals.shaped(there), f = ops::flatten(shaped, 0);
    const double now = half_of_squares(f), predicted = cost - half_of_squares(flat + times(r.jac, p));
    const double fall = cost - now, ratio = predicted > 0 ? fall / predicted : 0;
    const bool short_step = norm_of(p) < options.xtol * (options.xtol + norm_of(x));
    const bool small_fall = predicted < options.ftol * cost && std::fabs(fall) < options.ftol * cost;
    if (std::isfinite(now) && fall > 0) {
      ++r.nit;
      x = there, flat = f, cost = now, r.fun = shaped;
      derive();
      mu = std::max(mu * std::max(1.0 / 3, 1 - std::pow(2 * ratio - 1, 3)), unit_of(x.dtype()));
      faster = 2;
    } else {
      mu *= faster;
      faster *= 2;
    }
    if (small_fall) return end(true, "the cost falls by less than ftol");
    return short_step && end(true, "the step is below xtol");
  }
};

}  // namespace

LeastSquaresResult least_squares(OfTensor f, const Operand& x0, const LeastSquaresOptions& options) {
  const Tensor start = start_of({"least_squares", "x0"}, x0);
  Residuals residuals("least_squares", f, start);
  LeastSquaresResult r;
  const std::int64_t max_calls =
      calls_of({"least_squares", "max_nfev"}, options.max_nfev, 100 * std::max<std::int64_t>(1, start.size()));
  Marquardt m{residuals, options, max_calls, r, ops::flatten(start, 0), {}, {}, 0};
  r.fun = residuals.shaped(m.x);
  m.flat = ops::flatten(r.fun, 0);
  m.cost = half_of_squares(m.flat);
  check_start("least_squares", m.cost);
  m.derive();
  while (!m.step()) {
  }
  r.x = residuals.in_shape(m.x);
  r.cost = ops::sum(ops::square(r.fun)) * 0.5;
  r.nfev = residuals.calls, r.njev = residuals.jacobians;
  return r;
}

// One piece: the loops of Newton's iteration and of the search along its step share what they know of the point.
RootResult root(OfTensor f, const Operand& x0, const RootOptions& options) {
  const Tensor start = start_of({"root", "x0"}, x0);
  const double xtol = options.tol.is_none() ? options.xtol : number_of({"root", "tol"}, options.tol);
  const std::int64_t max_calls = calls_of({"root", "maxfev"}, options.maxfev, 100 * (start.size() + 1));
  Residuals residuals("root", f, start);
  RootResult r;
  Tensor x = ops::flatten(start, 0);
  r.fun = residuals.shaped(x);
  if (r.fun.size() != x.size())
    fail<ValueError>({"root", "f"}, "returns shape ", r.fun.shape(), " for ", start.shape(), kExpected,
                     "it must return as many elements");
  Tensor flat = ops::flatten(r.fun, 0);
  double cost = half_of_squares(flat);
  check_start("root", cost);
  for (bool moving = true; moving && !r.success;) {
    r.jac = residuals.jacobian(x);
    if (cost == 0) {
      r.success = true, r.message = "f is zero";
      break;
    }
    const Tensor p = newton_step(r.jac, flat);
    const double slope = dot_of(transposed_times(r.jac, flat), p);
    const double length = norm_of(p);
    // A zero is near where the step leads to one of the linear function.
    const bool solves = norm_of(times(r.jac, p) + flat) <= 0.1 * norm_of(flat);
    double alpha = 1;
    for (moving = false; !moving && residuals.calls < max_calls && alpha > 1e-10; alpha /= 2) {
      const Tensor there = x + p * alpha, shaped = residuals.shaped(there);
      const double now = half_of_squares(ops::flatten(shaped, 0));
      moving = now <= cost + 1e-4 * alpha * slope && now < cost;
      if (!moving) continue;
      r.success = solves && alpha == 1 && length <= xtol * norm_of(there);
      x = there, r.fun = shaped, flat = ops::flatten(shaped, 0), cost = now;
    }
    if (moving) ++r.nit;
    else r.success = solves && length <= xtol * norm_of(x);  // f cannot be smaller
    if (r.success) r.message = "the step is below xtol";
  }
  if (!r.success) r.message = residuals.calls >= max_calls ? "maxfev calls of f were made" : "no step makes f smaller";
  if (r.nit > 0 && cost != 0) r.jac = residuals.jacobian(x);
  r.x = residuals.in_shape(x);
  r.nfev = residuals.calls, r.njev = residuals.jacobians;
  return r;
}

}  // namespace optimize
}  // namespace numpy
}  // namespace kassette
