// tests/numpy/integrate_test.cpp - np::integrate::odeint against SciPy's steps and solutions that are known, and its
// gradients against those of the solutions.
#include <kassette/integrate.h>
#include <kassette/numpy.h>
#include <kassette/testing.h>

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
Tensor van_der_pol(const Tensor&, const Tensor& y) { return np::stack({y[1], 2 * (1 - y[0] * y[0]) * y[1] - y[0]}); }

}  // namespace

TEST_CASE("odeint takes the steps of SciPy's RK45", "[numpy][integrate]") {
  std::int64_t calls = 0;
  auto counted = [&](const Tensor& t, const Tensor& y) { return ++calls, van_der_pol(t, y); };
  const Tensor times = np::linspace(0, 10, 11, {.dtype = float64});
  const Tensor y = np::integrate::odeint(counted, f64({2, 0}), times);
  CHECK(y.shape() == Shape{11, 2});
  CHECK(distance(np::ravel(y), solver_case("van_der_pol_rk45")) < 1e-9);
  CHECK(static_cast<double>(calls) == solver_case("van_der_pol_rk45_nfev")[0]);
  const Tensor back =
      np::integrate::odeint(van_der_pol, f64({1, 1}), f64({3, 2.5, 1.25, 0}), {.rtol = 1e-6, .atol = 1e-8});
  CHECK(distance(np::ravel(back), solver_case("van_der_pol_rk45_backward")) < 1e-9);
  auto driven = [](const Tensor& t, const Tensor& x) { return -0.5 * x + np::sin(3 * t); };
  const Tensor d =
      np::integrate::odeint(driven, f64({1}), f64({0, 0.1, 1.7, 4}), {.first_step = 0.1, .max_step = 0.25});
  CHECK(distance(np::ravel(d), solver_case("driven_rk45")) < 1e-12);
}

TEST_CASE("odeint keeps to its tolerances", "[numpy][integrate]") {
  const Tensor times = np::linspace(0, 10, 11, {.dtype = float64});
  const Tensor y = np::integrate::odeint(van_der_pol, f64({2, 0}), times, {.rtol = 1e-11, .atol = 1e-12});
  CHECK(distance(np::ravel(y), solver_case("van_der_pol_precise")) < 1e-8);
  // A matrix, and float32.
  const Tensor y0 = np::array({{1, 2}, {3, 4}}, float32);
  const Tensor z =
      np::integrate::odeint([](const Tensor&, const Tensor& x) { return -x; }, y0, {0, 1, 2}, {.rtol = 1e-5});
  CHECK(z.dtype() == float32);
  CHECK(z.shape() == Shape{3, 2, 2});
  CHECK(distance(z[2], values(y0 * std::exp(-2))) < 1e-4);
  CHECK(values(z[0]) == values(y0));
  CHECK(np::integrate::odeint(van_der_pol, f64({2, 0}), f64({1})).shape() == Shape{1, 2});
  // Nothing moves, and nothing is there.
  CHECK(values(np::integrate::odeint([](const Tensor&, const Tensor& x) { return 0 * x; }, f64({5}),
                                     f64({0, 9}))[1])[0] == 5);
  CHECK(np::integrate::odeint([](const Tensor&, const Tensor& x) { return x; }, np::zeros({0}, float64), f64({0, 9}))
            .shape() == Shape{2, 0});
}

TEST_CASE("gradients go through the steps of odeint", "[numpy][integrate]") {
  // y = a e^(-k t): dy/da = e^(-k t), dy/dk = -t y, d2y/dk2 = t^2 y.
  const Tensor a = K::variable(f64({2}), float64), k = K::variable(np::array(0.7, float64), float64);
  auto decay = [&](const Tensor&, const Tensor& y) { return -k * y; };
  const Tensor y = np::integrate::odeint(decay, a, f64({0, 0.5, 1.3, 3}), {.rtol = 1e-10, .atol = 1e-12});
  const double times[] = {0, 0.5, 1.3, 3};
  for (int i = 0; i < 4; ++i) {
    const double t = times[i], e = std::exp(-0.7 * t);
    const Tensor at = np::sum(y[i]);
    CHECK(std::fabs(number(at) - 2 * e) < 1e-9);
    if (i == 0) continue;
    const Tensors first = K::gradients(at, {a, k});
    CHECK(std::fabs(number(first[0]) - e) < 1e-8);
    CHECK(std::fabs(number(first[1]) + t * 2 * e) < 1e-8);
    CHECK(std::fabs(number(K::gradients(first[1], {k})[0]) - t * t * 2 * e) < 1e-7);
  }
  // Differences with fixed steps, of values between the steps too.
  auto whole = [](const Tensors& x) {
    auto f = [&](const Tensor& t, const Tensor& z) { return np::sin(z * x[1]) - t * z; };
    return np::integrate::odeint(f, x[0], f64({0, 0.05, 0.3, 1}),
                                 {.rtol = 1, .atol = 10, .first_step = 0.1, .max_step = 0.1});
  };
  CHECK(testing::gradcheck(whole, {f64({0.5, -1}), f64({1.5, 0.25})}));
}

TEST_CASE("odeint refuses what it cannot use in one line", "[numpy][integrate]") {
  auto f = [](const Tensor&, const Tensor& y) { return y; };
  const Tensor y0 = f64({1});
  auto with = [&](const Operand& t, const np::integrate::OdeintOptions& o = {}) {
    return error_of<ValueError>([&] { np::integrate::odeint(f, y0, t, o); });
  };
  CHECK(with(f64({0, 1, 1})) == "odeint: t is 1 at 2; it must rise or fall, and be finite");
  CHECK(with(f64({1, 0, 0.5})) == "odeint: t is 0.5 at 2; it must rise or fall, and be finite");
  CHECK(with(f64({0, NAN})) == "odeint: t is nan at 1; it must rise or fall, and be finite");
  CHECK(with(f64({{0, 1}})) == "odeint: t of shape (1, 2); it must be a vector that is not empty");
  CHECK(with(K::placeholder({2})) == "odeint: t depends on a placeholder; it must be known");
  CHECK(with(f64({0, 1}), {.rtol = -1}) == "odeint: rtol is -1; it must not be negative");
  CHECK(with(f64({0, 1}), {.max_step = 0}) == "odeint: max_step is 0; it must be positive");
  CHECK(with(f64({0, 1}), {.first_step = -1}) == "odeint: first_step is -1; it must be positive");
  CHECK(with(f64({0, 1}), {.max_step = 0.25, .max_steps = 3}).rfind("odeint: max_steps is 3, which led to t = ", 0) ==
        0);
  CHECK(error_of<ValueError>([&] {
          np::integrate::odeint([](const Tensor&, const Tensor& y) { return np::sum(y); }, f64({1, 2}), f64({0, 1}));
        }) == "odeint: f returns float64 of shape () for float64 of shape (2,); both must be equal");
  // y' = y^2 is infinite at t = 1.
  const std::string beyond = error_of<ValueError>([&] {
    np::integrate::odeint([](const Tensor&, const Tensor& y) { return y * y; }, f64({1}), f64({0, 2}));
  });
  CHECK(beyond.rfind("odeint: f needs steps below ", 0) == 0);
  CHECK(beyond.find("the solution must be smooth and finite") != std::string::npos);
}

TEST_CASE("odeint works on a device", "[numpy][integrate][device]") {
  const std::string device = GENERATE("cpu", "cuda:0");
  if (!has_device(device)) return;
  auto driven = [](const Tensor& t, const Tensor& x) { return -0.5 * x + np::sin(3 * t); };
  const Tensor y0 = f64({1}).to(Device(device));
  const Tensor y = np::integrate::odeint(driven, y0, f64({0, 0.1, 1.7, 4}), {.first_step = 0.1, .max_step = 0.25});
  CHECK(y.device() == Device(device));
  CHECK(distance(np::ravel(y.to(cpu)), solver_case("driven_rk45")) < 1e-12);
}
