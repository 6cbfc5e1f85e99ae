// tests/nn_backend/transforms_test.cpp - grad, jacobian, hessian, jvp, vjp, hvp and vmap: against derivatives by hand,
// and in functions and on themselves.
#include <kassette/numpy.h>
#include <kassette/transforms.h>

#include <cmath>

#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
namespace np = kassette::numpy;
using namespace kassette;
using namespace kassette::test;
using Doubles = std::vector<double>;

namespace {

Tensor numbers_of(std::initializer_list<Operand> list) { return np::array(list, float64); }
void check_near(const Tensor& got, const Tensor& expected) {
  CHECK(got.shape() == expected.shape());
  CHECK(number(np::max(np::abs(got - expected))) < 1e-12);
}

}  // namespace

TEST_CASE("grad and value_and_grad give derivatives of any order", "[transforms]") {
  auto cube = [](const Tensor& x) { return np::sum(x * x * x); };
  const Tensor x = numbers_of({1, -2, 0.5});
  check_near(grad(cube)(x), 3 * x * x);
  auto sum_of_grad = [&](const Tensor& t) { return np::sum(grad(cube)(t)); };
  check_near(grad(sum_of_grad)(x), 6 * x);
  auto both = [](const Tensor& a, const Tensor& b) { return np::sum(np::square(a) * b); };
  check_near(grad(both, 1)(x, x), x * x);
  const auto [value, gradient] = value_and_grad(both)(x, x);
  CHECK(number(value) == 1 - 8 + 0.125);
  check_near(gradient, 2 * x * x);
  check_near(grad([](const Tensor&) { return np::array(3.0, float64); })(x), np::zeros(3, float64));
  // A number is its own argument.
  CHECK(std::fabs(number(grad([](const Tensor& t) { return np::sin(t); })(np::array(0.3, float64))) - std::cos(0.3)) <
        1e-15);
}

TEST_CASE("jacobian and hessian have the shapes of the result and of the argument", "[transforms]") {
  const Tensor w = numbers_of({{1, 2}, {3, 4}, {5, 6}}), x = numbers_of({0.5, -1});
  auto f = [&](const Tensor& t) { return np::square(np::matmul(w, t)); };
  check_near(jacobian(f)(x), 2 * np::expand_dims(np::matmul(w, x), 1) * w);
  auto quadratic = [&](const Tensor& t) { return np::sum(np::square(np::matmul(w, t))); };
  check_near(hessian(quadratic)(x), 2 * np::matmul(np::transpose(w), w));
  check_near(jacobian(grad(quadratic))(x), 2 * np::matmul(np::transpose(w), w));
  const Tensor m = numbers_of({{1, 2}, {3, 4}});
  CHECK(jacobian([](const Tensor& t) { return np::matrix_transpose(t); })(m).shape() == Shape{2, 2, 2, 2});
  CHECK(jacobian([](const Tensor& t) { return t[slice(0, 0)]; })(x).shape() == Shape{0, 2});
}

TEST_CASE("jvp, vjp and hvp are products with the Jacobian and the Hessian", "[transforms]") {
  const Tensor x = numbers_of({0.3, -1, 2}), y = numbers_of({1, 2, 3}), v = numbers_of({1, 0.5, -2}),
               u = numbers_of({2, 1, -1});
  auto f = [](const Tensors& t) { return np::sin(t[0]) * t[1]; };
  const auto [value, tangent] = jvp(f, {x, y}, {v, u});
  check_near(value, np::sin(x) * y);
  check_near(tangent, np::cos(x) * y * v + np::sin(x) * u);
  const auto back = vjp(f, {x, y}, u);
  check_near(back.gradients[0], np::cos(x) * y * u);
  check_near(back.gradients[1], np::sin(x) * u);
  auto s = [](const Tensor& t) { return np::sum(np::exp(t)) * np::sum(t); };
  check_near(hvp(s, x, v), np::matmul(hessian(s)(x), v));
}

TEST_CASE("vmap applies a function along the first axis", "[transforms]") {
  const Tensor x = numbers_of({{1, 2}, {3, 4}}), y = numbers_of({10, 20});
  auto f = [](const Tensor& a, const Tensor& b) { return np::sum(np::square(a)) * b; };
  check_near(vmap(f)(x, y), numbers_of({50, 500}));
  check_near(vmap(grad(f))(x, y), 2 * x * np::expand_dims(y, 1));
}

TEST_CASE("transforms work on placeholders and inside functions", "[transforms]") {
  const Tensor p = K::placeholder({3}, None, float64);
  auto cube = [](const Tensor& x) { return np::sum(x * x * x); };
  auto f = K::function({p}, {grad(cube)(p), hessian(cube)(p)});
  const Tensor x = numbers_of({1, -2, 0.5});
  const Tensors got = f({x});
  check_near(got[0], 3 * x * x);
  check_near(got[1], np::eye(3, None, 0, float64) * 6 * x);
}

TEST_CASE("transforms refuse what has no gradient in one line", "[transforms]") {
  auto same = [](const Tensor& x) { return x; };
  CHECK(error_of<ValueError>([&] {
          grad(same)(numbers_of({1, 2}));
        }) == "grad: f returns shape (2,); it must return one number; jacobian takes more");
  CHECK(error_of<TypeError>([&] { grad(same)(np::arange(1)); }) ==
        "grad: x is int64; it must be of floats; cast it first (K::cast)");
  CHECK(error_of<ValueError>([&] { grad(same, 1)(np::ones(1)); }) ==
        "grad: argument is 1; the function is called with 1");
}
