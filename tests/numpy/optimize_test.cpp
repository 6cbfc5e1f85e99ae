// tests/numpy/optimize_test.cpp - np::optimize against what SciPy finds, and at the borders.
#include <kassette/numpy.h>
#include <kassette/optimize.h>

#include <cmath>

#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/numpy/solver_cases.h"
#include "tests/results.h"

namespace K = kassette::backend;
namespace np = kassette::numpy;
using namespace kassette;
using namespace kassette::test;

namespace {

Tensor f64(std::initializer_list<Operand> list) { return np::array(list, float64); }
Tensor rosenbrock(const Tensor& x) {
  const Tensor a = x(slice(None, -1)), b = x(slice(1, None));
  return np::sum(100 * np::square(b - np::square(a)) + np::square(1 - a));
}
Tensor beale(const Tensor& x) {
  const Tensor a = x[0], b = x[1];
  return np::square(1.5 - a + a * b) + np::square(2.25 - a + a * b * b) + np::square(2.625 - a + a * b * b * b);
}
Tensor logistic(const Tensor& w) {
  const Tensor points = f64({{0.5, 1}, {1, -1}, {-1, 0.5}, {2, 1}, {-0.5, -2}, {0, 0.25}});
  const Tensor labels = f64({1, 1, -1, 1, -1, -1});
  return np::sum(K::log1p(np::exp(-labels * np::matmul(points, w)))) + 0.05 * np::sum(np::square(w));
}
const Tensor& start() {
  static const Tensor x = f64({1.3, 0.7, 0.8, 1.9, 1.2});
  return x;
}

}  // namespace

TEST_CASE("minimize finds SciPy's minima by both methods", "[numpy][optimize]") {
  CHECK(distance(np::reshape(rosenbrock(start()), {1}), solver_case("rosenbrock_at_start")) < 1e-12);
  for (const char* method : {"L-BFGS", "Newton-CG"}) {
    INFO(method);
    const auto r = np::optimize::minimize(rosenbrock, start(), {.method = method, .tol = 1e-9});
    CHECK(r.success);
    CHECK(distance(r.x, {1, 1, 1, 1, 1}) < 1e-5);
    CHECK(distance(r.x, solver_case("rosenbrock_minimum")) < 1e-5);
    CHECK(number(r.fun) < 1e-10);
    CHECK(r.fun.shape() == Shape{});
    CHECK(r.nfev < 120);
    CHECK(r.njev == r.nfev);
    CHECK((r.nhev > 0) == (std::string(method) == "Newton-CG"));
    const auto b = np::optimize::minimize(beale, f64({1, 1}), {.method = method, .tol = 1e-10});
    CHECK(b.success);
    CHECK(distance(b.x, solver_case("beale_minimum")) < 1e-5);
    CHECK(distance(b.jac, {0, 0}) < 1e-5);
    const auto l = np::optimize::minimize(logistic, np::zeros(2, float64), {.method = method, .tol = 1e-10});
    CHECK(l.success);
    CHECK(distance(l.x, solver_case("logistic_minimum")) < 1e-4);
    CHECK(distance(np::reshape(l.fun, {1}), solver_case("logistic_value")) < 1e-9);
  }
}

TEST_CASE("minimize keeps the shape and the dtype of x0", "[numpy][optimize]") {
  const Tensor goal = np::array({{1, -2, 3}, {0, 5, -1}}, float32);
  auto bowl = [&](const Tensor& x) { return np::sum(np::square(x - goal) * (1 + np::square(goal))); };
  for (const char* method : {"L-BFGS", "Newton-CG"}) {
    const auto r = np::optimize::minimize(bowl, np::zeros({2, 3}, float32), {.method = method});
    CHECK(r.success);
    CHECK(r.x.shape() == Shape{2, 3});
    CHECK(r.x.dtype() == float32);
    CHECK(r.jac.shape() == Shape{2, 3});
    CHECK(distance(r.x, values(goal)) < 1e-3);
  }
  const auto one =
      np::optimize::minimize([](const Tensor& x) { return np::square(x - 3) + 1; }, np::array(0., float64));
  CHECK(one.success);
  CHECK(one.x.shape() == Shape{});
  CHECK(std::fabs(number(one.x) - 3) < 1e-5);
  CHECK(std::fabs(number(one.fun) - 1) < 1e-10);
}

TEST_CASE("minimize says why it ended", "[numpy][optimize]") {
  const auto r = np::optimize::minimize(rosenbrock, start(), {.maxiter = 2});
  CHECK_FALSE(r.success);
  CHECK(r.nit == 2);
  CHECK(std::string(r.message) == "maxiter iterations were made");
  const auto few = np::optimize::minimize(rosenbrock, start(), {.maxfun = 3});
  CHECK(std::string(few.message) == "maxfun calls of f were made");
  CHECK(few.nfev == 3);
  // Neither bounded below nor with a minimum.
  CHECK_FALSE(np::optimize::minimize([](const Tensor& x) { return np::sum(x); }, f64({1, 2}), {.maxiter = 20}).success);
  // Not finite beyond x = 2: the search along the line stays on this side.
  auto walled = [](const Tensor& x) { return np::sum(np::square(x - 1.5) - np::log(2 - x)); };
  const auto w = np::optimize::minimize(walled, f64({-30}), {.tol = 1e-9});
  CHECK(w.success);
  CHECK(std::fabs(number(w.x[0]) - (1.75 - std::sqrt(0.5625))) < 1e-5);
}

TEST_CASE("least_squares fits as SciPy does, and from far away", "[numpy][optimize]") {
  const Tensor t = np::linspace(0, 4, 20, {.dtype = float64});
  const Tensor data = 2.5 * np::exp(-1.3 * t) + 0.5 + 0.01 * np::sin(100 * t);
  auto misfit = [&](const Tensor& p) { return p[0] * np::exp(-p[1] * t) + p[2] - data; };
  const auto r = np::optimize::least_squares(misfit, f64({1, 1, 0}));
  CHECK(r.success);
  CHECK(distance(r.x, solver_case("exponential_fit")) < 1e-6);
  CHECK(distance(np::reshape(r.cost, {1}), solver_case("exponential_fit_cost")) < 1e-10);
  CHECK(r.jac.shape() == Shape{20, 3});
  CHECK(r.optimality < 1e-5);
  CHECK(distance(r.grad, values(np::matmul(np::transpose(r.jac), r.fun))) < 1e-12);
  // Rosenbrock's function as squares, more unknowns than equations, and an unknown that nothing depends on.
  auto valley = [](const Tensor& x) { return np::stack({10 * (x[1] - x[0] * x[0]), 1 - x[0]}); };
  const auto v = np::optimize::least_squares(valley, f64({-1.2, 1}));
  CHECK(v.success);
  CHECK(distance(v.x, {1, 1}) < 1e-6);
  const auto wide = np::optimize::least_squares([](const Tensor& x) { return np::reshape(x[0] + 2 * x[1] - 5, {1}); },
                                                f64({0, 0, 7}));
  CHECK(wide.success);
  CHECK(distance(wide.x, {2.5, 1.25, 7}) < 1e-6);  // x[1] counts twice, as f does
  const auto few = np::optimize::least_squares(valley, f64({-1.2, 1}), {.max_nfev = 3});
  CHECK_FALSE(few.success);
  CHECK(few.nfev == 3);
}

TEST_CASE("root finds SciPy's zeros", "[numpy][optimize]") {
  auto cubics = [](const Tensor& x) {
    const Tensor d = x[0] - x[1], half = 0.5 * d * d * d;
    return np::stack({x[0] + half - 1, x[1] - half});
  };
  const auto r = np::optimize::root(cubics, f64({0, 0}));
  CHECK(r.success);
  CHECK(distance(r.x, solver_case("root_of_cubics")) < 1e-12);
  CHECK(distance(r.fun, {0, 0}) < 1e-12);
  CHECK(r.jac.shape() == Shape{2, 2});
  auto cosine = [](const Tensor& x) { return np::cos(x) - x; };
  const auto c = np::optimize::root(cosine, np::array(0., float64));
  CHECK(c.x.shape() == Shape{});
  CHECK(distance(np::reshape(c.x, {1}), solver_case("root_of_cosine")) < 1e-14);
  // Newton's whole steps diverge from here on.
  const auto far = np::optimize::root([](const Tensor& x) { return np::arctan(x); }, f64({20, -3}));
  CHECK(far.success);
  CHECK(distance(far.x, {0, 0}) < 1e-10);
  // The Jacobian is singular, everywhere or at the zero.
  auto same = [](const Tensor& x) { return np::stack({x[0] + x[1] - 3, 2 * x[0] + 2 * x[1] - 6}); };
  const auto s = np::optimize::root(same, f64({0, 0}));
  CHECK(s.success);
  CHECK(distance(s.x, {1.5, 1.5}) < 1e-12);
  CHECK(std::fabs(number(np::optimize::root([](const Tensor& x) { return x * x; }, f64({1})).x[0])) < 1e-7);
  const auto none = np::optimize::root([](const Tensor& x) { return x * x + 1; }, f64({1}));
  CHECK_FALSE(none.success);
  CHECK(std::string(none.message) == "no step makes f smaller");
}

TEST_CASE("np::optimize refuses what it cannot use in one line", "[numpy][optimize]") {
  auto f = [](const Tensor& x) { return np::sum(x); };
  auto same = [](const Tensor& x) { return x; };
  CHECK(error_of<ValueError>([&] { np::optimize::minimize(f, f64({1}), {.method = "BFGS"}); }) ==
        "minimize: method is \"BFGS\"; it must be \"L-BFGS\" or \"Newton-CG\"");
  CHECK(error_of<ValueError>([&] {
          np::optimize::minimize(same, f64({1, 2}));
        }) == "minimize: f returns shape (2,); it must return one number; jacobian takes more");
  CHECK(error_of<ValueError>([&] { np::optimize::minimize([](const Tensor& x) { return np::log(x); }, f64({-1})); }) ==
        "minimize: f is nan at x0; it must be finite there");
  CHECK(error_of<TypeError>([&] { np::optimize::minimize(f, f64({1}), {.tol = Scalar(true)}); }) ==
        "minimize: tol is no number; it must be a number or None");
  CHECK(error_of<ValueError>([&] { np::optimize::minimize(f, K::placeholder({3})); }) ==
        "minimize: x0 depends on a placeholder; it must be known");
  CHECK(error_of<ValueError>([&] {
          const auto off = K::no_gradient();
          np::optimize::root(same, f64({1}));
        }) == "root: is called while gradients are off; end the scope of K::no_gradient");
  CHECK(error_of<ValueError>([&] {
          np::optimize::root(f, f64({1, 2}));
        }) == "root: f returns shape () for (2,); it must return as many elements");
  CHECK(error_of<ValueError>([&] {
          np::optimize::least_squares([](const Tensor& x) { return 1 / x; }, f64({0, 1}));
        }) == "least_squares: f is not finite at x0; it must be finite there");
  CHECK(error_of<TypeError>([&] {
          np::optimize::least_squares([](const Tensor& x) { return np::argsort(x); }, f64({0, 1}));
        }) == "least_squares: f returns int64; it must return floats that are known");
}

TEST_CASE("np::optimize works on a device", "[numpy][optimize][device]") {
  const std::string device = GENERATE("cpu", "cuda:0");
  if (!has_device(device)) return;
  const Tensor x0 = f64({1.3, 0.7, 0.8}).to(Device(device));
  for (const char* method : {"L-BFGS", "Newton-CG"}) {
    const auto r = np::optimize::minimize(rosenbrock, x0, {.method = method, .tol = 1e-9});
    CHECK(r.success);
    CHECK(r.x.device() == Device(device));
    CHECK(distance(r.x.to(cpu), {1, 1, 1}) < 1e-5);
  }
  auto misfit = [](const Tensor& x) { return np::square(x) - x - 2; };
  const auto fit = np::optimize::least_squares(misfit, x0);
  CHECK(fit.x.device() == Device(device));
  CHECK(distance(fit.x.to(cpu), {2, 2, 2}) < 1e-6);
  const auto zero = np::optimize::root(misfit, x0);
  CHECK(zero.success);
  CHECK(zero.x.device() == Device(device));
  CHECK(distance(zero.x.to(cpu), {2, 2, 2}) < 1e-12);
}
