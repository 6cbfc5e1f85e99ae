// tests/nn_backend/transforms_test.cpp - the functions of <kassette/transforms.h> against derivatives by hand, in
// functions and on themselves.
#include <kassette/numpy.h>
#include <kassette/runtime.h>
#include <kassette/testing.h>
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
  const Tensor drawn = K::random_uniform({3}, 0, 1, float64);
  check_near(grad(cube)(drawn), 3 * drawn * drawn);
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

TEST_CASE("Jacobians of many rows or columns are computed by one program, and have derivatives", "[transforms]") {
  // J[i, k, j] = 3 x_i^2 w_k where i = j: 60 rows of 20.
  const Tensor x = K::cast(np::linspace(0, 1, 20), "float64"), w = numbers_of({1, 2, 3});
  auto cubes = [](const Tensor& t, const Tensor& u) { return np::expand_dims(t * t * t, 1) * u; };
  auto by_hand = [](const Tensor& t, const Tensor& u) {
    return np::expand_dims(np::diag(3 * t * t), 1) * np::expand_dims(u, 1);
  };
  // With respect to w: 60 rows of 3, computed by columns. J[i, k, l] = x_i^3 where k = l.
  const Tensor by_w = np::reshape(x * x * x, {20, 1, 1}) * K::cast(np::eye(3), "float64");
  check_near(jacobian(cubes)(x, w), by_hand(x, w));
  check_near(jacobian(cubes, 1)(x, w), by_w);
  auto squares = [&](const Tensor& t, const Tensor& u) { return np::sum(np::square(jacobian(cubes)(t, u))); };
  auto squares_by_w = [&](const Tensor& t, const Tensor& u) { return np::sum(np::square(jacobian(cubes, 1)(t, u))); };
  const Tensor vx = K::variable(x, "float64"), vw = K::variable(w, "float64"),
               px = K::placeholder({20}, None, "float64"), pw = K::placeholder({3}, None, "float64");
  for (bool placeholders : {false, true}) {
    const Tensor &a = placeholders ? px : vx, &b = placeholders ? pw : vw;
    Tensors all{jacobian(cubes)(a, b), jacobian(cubes, 1)(a, b)};
    for (const Tensor& g : K::gradients(squares(a, b), {a, b})) all.push_back(g);
    for (const Tensor& g : K::gradients(squares_by_w(a, b), {a})) all.push_back(g);
    if (placeholders) all = K::function({px, pw}, all)({x, w});
    check_near(all[0], by_hand(x, w));
    check_near(all[1], by_w);
    check_near(all[2], 36 * x * x * x * np::sum(w * w));
    check_near(all[3], 2 * w * np::sum(9 * x * x * x * x));
    check_near(all[4], 3 * 6 * np::power(x, 5));
  }
  // Where nothing leads from x it is zeros: from tensors on the tape and from others, of few rows and of many.
  for (const Tensor& other : {vx, x})
    for (const Tensor& of : {x, w, x[slice(0, 2)]})
      for (const Tensor& at : {other, other[slice(0, 4)]}) {
        check_near(jacobian([&](const Tensor&) { return at * at; })(of), np::zeros({at.size(), of.size()}, float64));
        const Tensor p = K::placeholder({of.size()}, None, "float64");
        const auto f = K::function({p}, {jacobian([&](const Tensor&) { return at * at; })(p)});
        check_near(f({of})[0], np::zeros({at.size(), of.size()}, float64));
      }
  // What f captures has a derivative too.
  auto captured = [&](const Tensor& t) { return cubes(t, vw); };
  check_near(K::gradients(np::sum(jacobian(captured)(x)), {vw})[0], np::zeros(3, float64) + np::sum(3 * x * x));
  auto product = [](const Tensor& t) { return np::sum(np::outer(t, t)); };
  check_near(hessian(product)(x), np::full({20, 20}, 2.0, float64));
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

TEST_CASE("vmap of constants, other dtypes, nothing, and itself", "[transforms]") {
  const Tensor x = numbers_of({{1, 5, 2}, {9, 4, 3}});
  auto first = [](const Tensor& a) { return a; };
  check_near(vmap(first)(x), x);
  auto seven = [](const Tensor&) { return K::constant({7, 8}, "float64"); };
  check_near(vmap(seven)(x), numbers_of({{7, 8}, {7, 8}}));
  auto place = [](const Tensor& a) { return np::argmax(a); };
  CHECK(values(vmap(place)(x)) == Doubles{1, 0});
  auto total = [](const Tensor& a) { return np::sum(a * a); };
  CHECK(vmap(total)(K::zeros({0, 3})).shape() == Shape{0});
  CHECK(vmap(grad(total))(K::zeros({0, 3})).shape() == (Shape{0, 3}));
  auto each = [](const Tensor& row) { return vmap([](const Tensor& v) { return v * v; })(row); };
  check_near(vmap(each)(x), x * x);
  auto picked = [](const Tensor& row, const Tensor& i) { return row(i); };  // without a rule
  check_near(vmap(picked)(x, K::constant({2, 0}, "int32")), numbers_of({2, 9}));
}

TEST_CASE("vmap runs row by row what reads values or changes variables", "[transforms]") {
  const Tensor x = numbers_of({1, -2, 3}), count = K::variable(0, "float64");
  auto positive = [](const Tensor& a) { return a.item<double>() > 0 ? a * 10 : a; };
  check_near(vmap(positive)(x), numbers_of({10, -2, 30}));
  auto counted = [&](const Tensor& a) {
    K::update(count, count + 1);
    return a * 2;
  };
  check_near(vmap(counted)(x), numbers_of({2, -4, 6}));
  CHECK(count.item<double>() == 3);
  auto wrong = [](const Tensor& a) { return np::matmul(a, numbers_of({1, 2})); };
  CHECK_THROWS_AS(vmap(wrong)(K::zeros({2, 3}, "float64")), ValueError);
}

TEST_CASE("vmap is differentiated, and draws for each element", "[transforms]") {
  const Tensor x = numbers_of({{1, 2}, {3, 4}, {5, 6}}), w = K::variable({{1, 2}, {3, 4}}, "float64");
  auto f = [&](const Tensor& a) { return np::sum(np::tanh(np::matmul(w, a))); };
  const Tensor by_rows = np::tanh(np::matmul(x, np::matrix_transpose(w)));
  check_near(K::gradients(K::sum(vmap(f)(x)), {w})[0], K::gradients(K::sum(by_rows), {w})[0]);
  const Tensor p = K::placeholder({3, 2}, None, float64), q = K::placeholder({None, 2}, None, float64);
  check_near(K::function(p, vmap(f)(p))(x)[0], np::sum(by_rows, 1));
  check_near(K::function(q, vmap(f)(q))(x)[0], np::sum(by_rows, 1));  // element by element
  auto noisy = [](const Tensor& a) { return a + K::random_uniform({2}, 0, 1, "float64"); };
  const Tensor noise = vmap(noisy)(x) - x;
  CHECK(values(np::unique(noise)).size() == 6);
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

TEST_CASE("jacobian runs one recorded program for the rows or the columns", "[transforms]") {
  const Tensor w = numbers_of({{1, 2}, {3, 4}, {5, 6}}), few = numbers_of({0.5, -1}), many = numbers_of({0.5, -1, 2});
  auto tall = [&](const Tensor& t) { return np::tanh(np::matmul(w, t)); };  // (2) -> (3): columns
  auto wide = [&](const Tensor& t) { return np::tanh(np::matmul(t, w)); };  // (3) -> (2): rows
  const Tensor y = tall(few), z = wide(many);
  check_near(jacobian(tall)(few), np::expand_dims(1 - y * y, 1) * w);
  check_near(jacobian(wide)(many), np::expand_dims(1 - z * z, 1) * np::transpose(w));
  // It has derivatives itself, both ways.
  auto of_tall = [&](const Tensors& t) { return Tensors{jacobian(tall)(t[0])}; };
  auto of_wide = [&](const Tensors& t) { return Tensors{jacobian(wide)(t[0])}; };
  CHECK(testing::gradcheck(of_tall, {few}));
  CHECK(testing::gradcheck(of_wide, {many}));
  CHECK(jacobian(jacobian(tall))(few).shape() == Shape{3, 2, 2});
  check_near(jacobian([&](const Tensor&) { return w; })(few), np::zeros({3, 2, 2}, float64));
}

TEST_CASE("custom_gradient takes the place of the gradient of the ops", "[transforms]") {
  // sqrt whose gradient is that of x^2, times the result.
  auto f = custom_gradient([](const Tensor& x) { return np::sqrt(x); },
                           [](const Tensor& x, const Tensor& y, const Tensor& dy) { return 2 * x * y * dy; });
  const Tensor x = numbers_of({1, 4, 9});
  auto total = [&](const Tensor& t) { return np::sum(f(t)); };
  check_near(f(x), np::sqrt(x));
  check_near(grad(total)(x), 2 * x * np::sqrt(x));
  // The adjoint is differentiated like any function, the y in it by f_vjp again: d(2 x y)/dx = 2 y + 2 x 2 x y.
  check_near(grad([&](const Tensor& t) { return np::sum(grad(total)(t)); })(x),
             2 * np::sqrt(x) + 4 * x * x * np::sqrt(x));
  const Tensor p = K::placeholder({None}, None, float64);
  check_near(K::function({p}, {grad(total)(p)})({x})[0], 2 * x * np::sqrt(x));
  check_near(vmap(grad(total))(np::expand_dims(x, 1)), np::expand_dims(2 * x * np::sqrt(x), 1));
  // Two arguments, one of them without a cotangent.
  auto first = custom_gradient([](const Tensor& a, const Tensor& b) { return a * b; },
                               [](const Tensor&, const Tensor& b, const Tensor&, const Tensor& dy) {
                                 return Tensors{b * dy, Tensor()};
                               });
  auto sum_of = [&](const Tensor& a, const Tensor& b) { return np::sum(first(a, b)); };
  check_near(grad(sum_of)(x, 2 * x), 2 * x);
  check_near(grad(sum_of, 1)(x, 2 * x), np::zeros(3, float64));
  auto wrong = custom_gradient([](const Tensor& a) { return np::sum(a); },
                               [](const Tensor&, const Tensor&, const Tensor&) { return np::ones(2, float64); });
  CHECK(error_of<ValueError>([&] { grad(wrong)(x); }) ==
        "custom_gradient: f_vjp returned float64 of shape (2,) for argument 0; it is float64 of shape (3,)");
  auto none = custom_gradient([](const Tensor& a) { return np::sum(a); },
                              [](const Tensor&, const Tensor&, const Tensor&) { return Tensors(); });
  CHECK(error_of<ValueError>([&] { grad(none)(x); }) ==
        "custom_gradient: f_vjp returned 0 tensors; it must return one for each of the 1 arguments");
}

TEST_CASE("checkpoint runs a function again in the backward pass", "[transforms]") {
  int runs = 0;
  auto counted = host_call(
      [&](const Tensor& x) {
        ++runs;
        return np::exp(x);
      },
      [](const Shape& s) { return s; }, [](const Tensor&, const Tensor& y, const Tensor& dy) { return y * dy; });
  const Tensor w = K::variable(numbers_of({0.5, 0.25, -1}), float64), x = numbers_of({1, -2, 0.5});
  auto f = [&](const Tensor& t) { return np::sin(counted(t * w)); };
  auto plain = [&](const Tensor& t) { return np::sin(np::exp(t * w)); };
  auto loss = [&](const Tensor& t) { return np::sum(checkpoint(f)(t)); };
  auto plain_loss = [&](const Tensor& t) { return np::sum(plain(t)); };
  check_near(grad(loss)(x), grad(plain_loss)(x));
  CHECK(runs == 2);
  // What it captures has a gradient, and second derivatives are there.
  check_near(K::gradients(loss(x), {w})[0], K::gradients(plain_loss(x), {w})[0]);
  check_near(hessian(loss)(x), hessian(plain_loss)(x));
  // In a function as well: the pass that shares the values of a run leaves it alone.
  const Tensor p = K::placeholder({3}, None, float64);
  const auto [value, gradient] = value_and_grad(loss)(p);
  auto g = K::function({p}, {value, gradient});
  runs = 0;
  check_near(g({x})[1], grad(plain_loss)(x));
  CHECK(runs == 2);
  check_near(vmap(grad(loss))(np::stack({x, 2 * x})), np::stack({grad(plain_loss)(x), grad(plain_loss)(2 * x)}));
  // The same random numbers both times: the gradient of sum(x * r) is r.
  const Tensor r = K::variable(numbers_of({1, 1, 1, 1, 1, 1, 1, 1}), float64);
  const Tensor noisy = checkpoint([](const Tensor& t) { return t * K::random_uniform({8}, 0, 1, float64); })(r);
  check_near(K::gradients(np::sum(noisy), {r})[0], noisy);
}

TEST_CASE("checkpoint keeps nothing of what it computes", "[transforms]") {
  const Tensor x = K::variable(np::ones({1000}, float64), float64);
  auto chain = [](const Tensor& t) {
    Tensor y = t;
    for (int i = 0; i < 20; ++i) y = np::sin(y);
    return y;
  };
  const auto before = memory_stats().live;
  const Tensor y = checkpoint(chain)(x);
  CHECK(memory_stats().live - before < 3 * 8000);
  const Tensor z = chain(x);
  CHECK(memory_stats().live - before > 10 * 8000);
}

TEST_CASE("host_call makes an op of a C++ function on values", "[transforms]") {
  auto cumulated = [](const Tensor& x) {
    const auto in = x.to_vector<double>();
    std::vector<double> out(in);
    for (std::size_t i = 1; i < out.size(); ++i) out[i] += out[i - 1];
    return K::constant(out, float64);
  };
  auto rule = [](const Shape& s) { return s; };
  auto backward = [](const Tensor&, const Tensor&, const Tensor& dy) { return np::flip(np::cumsum(np::flip(dy))); };
  auto f = host_call(cumulated, rule, backward);
  const Tensor x = numbers_of({1, -2, 0.5}), w = numbers_of({1, 10, 100});
  check_near(f(x), np::cumsum(x));
  auto loss = [&](const Tensor& t) { return np::sum(f(t) * f(t) * w); };
  auto plain = [&](const Tensor& t) { return np::sum(np::cumsum(t) * np::cumsum(t) * w); };
  check_near(grad(loss)(x), grad(plain)(x));
  check_near(hessian(loss)(x), hessian(plain)(x));
  // On placeholders of unknown size, and in loops.
  const Tensor p = K::placeholder({None}, None, float64);
  CHECK(f(p).shape() == Shape({-1}));
  auto g = K::function({p}, {f(p), grad(loss)(p)});
  check_near(g({x})[0], np::cumsum(x));
  check_near(g({x})[1], grad(plain)(x));
  check_near(K::function({p}, {f(p)})({numbers_of({2, 3})})[0], numbers_of({2, 5}));
  check_near(vmap(f)(np::stack({x, 2 * x})), np::cumsum(np::stack({x, 2 * x}), 1));
  check_near(vmap(grad(loss))(np::stack({x, 2 * x})), np::stack({grad(plain)(x), grad(plain)(2 * x)}));
  // Another dtype and shape, two arguments, no gradient.
  auto count = host_call([](const Tensor& a, const Tensor& b) { return np::sum(np::greater(a, b)); },
                         [](const Shape&, const Shape&) { return Shape{}; }, None, int64);
  CHECK(number(count(x, numbers_of({0, 0, 0}))) == 2);
  auto lost = host_call([](const Tensor& a) { return a * 2; }, rule);
  CHECK(error_of<ValueError>([&] { grad([&](const Tensor& t) { return np::sum(lost(t)); })(x); }) ==
        "host_call: a function without f_vjp has no gradient; pass one, or stop the gradient (K::stop_gradient)");
  auto lies = host_call([](const Tensor& a) { return np::sum(a); }, rule);
  CHECK(error_of<ValueError>([&] { lies(x); }) ==
        "host_call: f returned float64 of shape () on cpu; it is to be float64 of shape (3,) on cpu");
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
