// nn_backend/solvers/minimize.cpp - local minima of functions: np::optimize::minimize.
#include <kassette/backend/creation.h>
#include <kassette/backend/graph.h>
#include <kassette/optimize.h>
#include <kassette/transforms.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <string_view>

#include "core/text.h"
#include "nn_backend/numpy/numbers.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/engine/stop.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/shaping.h"

namespace kassette {
namespace numpy {
namespace optimize {
namespace {

/// x, and f and its gradient there, without a history; and x as a variable and the gradient with its history, which
/// leads to that.
struct Point {
  Tensor x, fun, g, variable, slope;
  double f = 0;
};
/// A step between two points, the change of the gradient, and 1 over their product.
struct Curvature {
  Tensor s, y;
  double rho;
};
/// f along a line: where, its value and its slope.
struct OnLine {
  double at, f, slope;
};

/// Where the cubic through two points of a line is lowest, kept away from both.
double between(const OnLine& a, const OnLine& b) {
  const double width = b.at - a.at, middle = a.at + width / 2;
  if (!std::isfinite(b.f) || !std::isfinite(b.slope)) return a.at + width / 8;
  const double d1 = a.slope + b.slope - 3 * (a.f - b.f) / (a.at - b.at);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return middle;
  const double d2 = std::sqrt(square);
  const double lowest = b.at - width * (b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2);
  if (!std::isfinite(lowest)) return middle;
  return std::clamp(lowest, a.at + 0.1 * width, b.at - 0.1 * width);
}

class Minimizer {
 public:
  Minimizer(const Callable<Tensor(const Tensor&)>& f, const Tensor& x0, const MinimizeOptions& options)
      : f_(f), options_(options), unit_(unit_of(x0.dtype())) {
    p_ = at(x0);
    if (!std::isfinite(p_.f))
      fail<ValueError>({"minimize", "f"}, "is ", p_.f, " at x0", kExpected, "it must be finite there");
  }
  void lbfgs(double ftol, double gtol, double maxiter);
  void newton_cg(double xtol, double maxiter);
  MinimizeResult result() {
    r_.x = p_.x, r_.fun = p_.fun, r_.jac = p_.g;
    return r_;
  }

 private:
  Point at(const Tensor& x) {
    ++r_.nfev, ++r_.njev;
    Point p;
    p.x = x;
    p.variable = backend::variable(x, x.dtype());
    auto of_list = [this](const Tensors& list) { return f_(list[0]); };
    const ValueAndGrad both = detail::value_and_grad_of(detail::OfList(of_list), {p.variable}, 0, "minimize");
    p.slope = both.gradient;
    p.fun = ops::reshape(ops::stop_gradient(both.value), Dims(std::initializer_list<Dim>{}));
    p.g = ops::stop_gradient(both.gradient);
    p.f = p.fun.item<double>();
    return p;
  }
  void end(bool success, const char* message) { r_.success = success, r_.message = message; }
  /// Whether iterations or calls are used up, which ends the search.
  bool used_up(double maxiter) {
    if (static_cast<double>(r_.nit) >= maxiter) end(false, "maxiter iterations were made");
    else if (r_.nfev >= options_.maxfun) end(false, "maxfun calls of f were made");
    else return false;
    return true;
  }
  bool step(const Tensor& d, double slope, double alpha, Point& to);
  Tensor direction(const std::deque<Curvature>& past) const;
  Tensor newton_direction(double size);

  const Callable<Tensor(const Tensor&)>& f_;
  const MinimizeOptions& options_;
  double unit_;
  Point p_;
  MinimizeResult r_;
};

/// A point along d at which f is lower and its slope flatter (the weak conditions of Wolfe), from the length alpha on:
/// an interval that holds such points is made smaller (Lewis and Overton, 2013). False if there is no lower point.
bool Minimizer::step(const Tensor& d, double slope, double alpha, Point& to) {
  constexpr double kDecrease = 1e-4, kFlatter = 0.9;
  const double rounding = unit_ * std::fabs(p_.f);
  OnLine low{0, p_.f, slope}, high{std::numeric_limits<double>::infinity(), 0, 0};
  bool found = false;
  for (int i = 0; i < options_.maxls && r_.nfev < options_.maxfun; ++i) {
    const Point q = at(p_.x + d * alpha);
    const OnLine here{alpha, q.f, dot_of(q.g, d)};
    if (std::isfinite(q.f) && std::isfinite(here.slope) && q.f <= p_.f + kDecrease * alpha * slope + rounding) {
      to = q;
      found = true;
      if (here.slope >= kFlatter * slope) return true;
      low = here;
    } else {
      high = here;
    }
    alpha = std::isinf(high.at) ? 3 * alpha : between(low, high);
  }
  return found;
}

/// The negative gradient times the inverse Hessian that the last steps suggest, by two loops over them.
Tensor Minimizer::direction(const std::deque<Curvature>& past) const {
  Tensor d = -p_.g;
  std::deque<double> alpha;
  for (auto c = past.rbegin(); c != past.rend(); ++c) {
    alpha.push_front(c->rho * dot_of(c->s, d));
    d = d - c->y * alpha.front();
  }
  if (!past.empty()) d = d * (1 / (past.back().rho * dot_of(past.back().y, past.back().y)));
  for (std::size_t i = 0; i < past.size(); ++i) d = d + past[i].s * (alpha[i] - past[i].rho * dot_of(past[i].y, d));
  return d;
}

void Minimizer::lbfgs(double ftol, double gtol, double maxiter) {
  std::deque<Curvature> past;
  ftol = std::max(ftol, 10 * unit_);
  while (true) {
    if (largest_of(p_.g) <= gtol) return end(true, "no element of the gradient is above gtol");
    if (used_up(maxiter)) return;
    Tensor d = direction(past);
    double slope = dot_of(d, p_.g);
    if (!(slope < 0)) {
      past.clear();
      d = -p_.g;
      slope = dot_of(d, p_.g);
    }
    Point q;
    const double length = past.empty() ? std::min(1.0, 1 / std::sqrt(-slope)) : 1.0;
    if (!step(d, slope, length, q)) {
      if (!past.empty()) {
        past.clear();  // and try again along the gradient
        continue;
      }
      const bool flat = -slope * length <= ftol * std::max(std::fabs(p_.f), 1.0);
      return end(flat, flat ? "f falls by less than ftol" : "no lower value was found along the gradient");
    }
    ++r_.nit;
    const Tensor s = q.x - p_.x, y = q.g - p_.g;
    if (const double sy = dot_of(s, y); sy > unit_ * dot_of(y, y)) past.push_back({s, y, 1 / sy});
    if (static_cast<int>(past.size()) > options_.maxcor) past.pop_front();
    const double before = p_.f;
    p_ = q;
    if (before - p_.f <= ftol * std::max({std::fabs(before), std::fabs(p_.f), 1.0}) && largest_of(p_.g) > gtol)
      return end(true, "f falls by less than ftol");
  }
}

/// Newton's direction, as far as conjugate gradients find it before a curvature that is not positive, or before what is
/// left is small beside the gradient, whose absolute values sum to `size`.
Tensor Minimizer::newton_direction(double size) {
  const double enough = std::min(0.5, std::sqrt(size)) * size;
  Tensor d = ops::zeros_of(p_.x), left = p_.g, along = -left;
  double squares = dot_of(left, left);
  for (std::int64_t i = 0; i < 20 * p_.x.size(); ++i) {
    if (ops::sum(ops::abs(left)).item<double>() <= enough) break;
    ++r_.nhev;
    const Tensor product = backend::gradients(ops::sum(p_.slope * along), {p_.variable})[0];
    const Tensor h = product.defined() ? ops::stop_gradient(product) : ops::zeros_of(p_.x);
    const double curvature = dot_of(along, h);
    if (!(curvature > 3 * unit_ * dot_of(along, along))) return i > 0 ? d : along;
    const double alpha = squares / curvature;
    d = d + along * alpha;
    left = left + h * alpha;
    const double now = dot_of(left, left);
    along = along * (now / squares) - left;
    squares = now;
  }
  return d;
}

void Minimizer::newton_cg(double xtol, double maxiter) {
  const auto n = static_cast<double>(p_.x.size());
  while (true) {
    const double size = ops::sum(ops::abs(p_.g)).item<double>();
    if (size == 0) return end(true, "the gradient is zero");
    if (used_up(maxiter)) return;
    const Tensor d = newton_direction(size);
    const double slope = dot_of(d, p_.g);
    Point q;
    if (!(slope < 0) || !step(d, slope, 1, q)) {
      const bool flat = -slope <= 10 * unit_ * std::max(std::fabs(p_.f), 1.0);
      return end(flat, flat ? "f does not fall within its rounding" : "no lower value was found along the direction");
    }
    ++r_.nit;
    const double moved = ops::sum(ops::abs(q.x - p_.x)).item<double>();
    p_ = q;
    if (moved <= n * xtol) return end(true, "the step is below xtol");
  }
}

}  // namespace

MinimizeResult minimize(Callable<Tensor(const Tensor&)> f, const Operand& x0, const MinimizeOptions& options) {
  const std::string_view method(options.method.data() ? options.method.data() : "", options.method.size());
  if (method != "L-BFGS" && method != "Newton-CG")
    fail<ValueError>({"minimize", "method"}, "is \"", method, '"', kExpected, "it must be \"L-BFGS\" or \"Newton-CG\"");
  const At tol{"minimize", "tol"}, maxiter{"minimize", "maxiter"};
  auto tolerance = [&](double own) { return options.tol.is_none() ? own : number_of(tol, options.tol); };
  auto iterations = [&](double own) { return options.maxiter.is_none() ? own : number_of(maxiter, options.maxiter); };
  if (options.maxcor < 1)
    fail<ValueError>({"minimize", "maxcor"}, "is ", options.maxcor, kExpected, "it must be at least 1");
  const Tensor start = start_of({"minimize", "x0"}, x0);
  Minimizer search(f, start, options);
  if (method == "L-BFGS") search.lbfgs(tolerance(options.ftol), tolerance(options.gtol), iterations(15000));
  else search.newton_cg(tolerance(options.xtol), iterations(200 * static_cast<double>(start.size())));
  return search.result();
}

}  // namespace optimize
}  // namespace numpy
}  // namespace kassette
