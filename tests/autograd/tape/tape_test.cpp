// tests/autograd/tape/tape_test.cpp - properties of recording, backward passes and runs of programs that hold for all
// ops, checked against central differences and algebra. Chains and growth are in memory_test, loops in control_test.
#include <kassette/testing.h>

#include <atomic>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "core/context.h"
#include "tests/catch.h"
#include "tests/settings.h"
#include "tests/results.h"

namespace K = kassette::backend;
namespace kt = kassette::testing;
using kassette::Shape;
using kassette::Tensor;
using kassette::Tensors;
using kassette::test::error_of;
using kassette::test::number;
using kassette::test::values;
using Vec = std::vector<double>;

namespace {

Tensor variable(const Vec& v, const Shape& shape) { return K::variable(K::constant(v, "float64", shape), "float64"); }
Tensor constant(const Vec& v, const Shape& shape) { return K::constant(v, "float64", shape); }

/// Numbers in (-0.5, 0.5).
Vec some(std::size_t n, int salt) {
  Vec v(n);
  for (std::size_t i = 0; i < n; ++i)
    v[i] = std::fmod(0.754877 * static_cast<double>(i + 1) + 0.569840 * salt, 1) - 0.5;
  return v;
}

template <class F>
Tensor differences(F f, const Vec& x, const Shape& shape) {
  return constant(kassette::test::differences(f, x), shape);
}

void close(const Tensor& actual, const Tensor& expected, double tolerance = 1e-6) {
  kt::Comparison c = kt::compare(actual, expected, {.rtol = tolerance, .atol = tolerance});
  INFO(c.message);
  CHECK(c);
}

const Vec w0 = some(6, 1), x0 = some(12, 2);
Tensor loss_of(const Tensor& w, const Tensor& x) { return K::sum(K::square(K::tanh(K::dot(x, w)))); }

}  // namespace

TEST_CASE("eager gradients of gradients of gradients are those of central differences", "[tape]") {
  Tensor x = constant(x0, {4, 3}), w = variable(w0, {3, 2});
  auto first = [&](const Tensor& v) { return K::gradients(loss_of(v, x), {v})[0]; };
  auto second = [&](const Tensor& v) { return K::gradients(K::sum(K::square(first(v))), {v})[0]; };
  auto at = [&](auto f) { return [f](const Vec& v) { return number(f(variable(v, {3, 2}))); }; };
  close(first(w), differences(at([&](const Tensor& v) { return loss_of(v, x); }), w0, {3, 2}));
  close(second(w), differences(at([&](const Tensor& v) { return K::sum(K::square(first(v))); }), w0, {3, 2}));
  auto penalty = [&](const Tensor& v) { return K::sum(K::exp(second(v))); };
  close(K::gradients(penalty(w), {w})[0], differences(at(penalty), w0, {3, 2}), 1e-5);
}

TEST_CASE("a gradient penalty is differentiated, though the first loss was a temporary", "[tape]") {
  auto penalised = [&](const Tensor& w) {
    Tensor x = variable(x0, {4, 3});
    Tensor gx = K::gradients(K::sum(K::tanh(K::dot(x, w))), {x})[0];
    return K::sum(K::square(gx)) + K::sum(K::tanh(K::dot(x, w)));
  };
  Tensor w = variable(w0, {3, 2});
  close(K::gradients(penalised(w), {w})[0], differences(
                                                [&](const Vec& v) {
                                                  return number(penalised(variable(v, {3, 2})));
                                                },
                                                w0, {3, 2}));
}

TEST_CASE("a function over an eager segment with a backward in it reads the variable of the call", "[tape]") {
  Tensor x = constant(x0, {4, 3}), w = variable(w0, {3, 2});
  Tensor g1 = K::gradients(loss_of(w, x), {w})[0], p = K::sum(K::square(g1)), g2 = K::gradients(p, {w})[0];
  auto f = K::function({}, {g1, p, g2});
  Vec moved = some(6, 9);
  K::set_value(w, constant(moved, {3, 2}));
  Tensors o = f({});
  close(o[0], differences([&](const Vec& v) { return number(loss_of(variable(v, {3, 2}), x)); }, moved, {3, 2}));
  auto squared = [&](const Vec& v) {
    Tensor u = variable(v, {3, 2});
    return number(K::sum(K::square(K::gradients(loss_of(u, x), {u})[0])));
  };
  CHECK(number(o[1]) == Approx(squared(moved)));
  close(o[2], differences(squared, moved, {3, 2}));
}

TEST_CASE("an update between forward and backward leaves the gradient of what ran, of any order", "[tape]") {
  Tensor u = K::variable(2, "float64");
  Tensor before = u * u * u;
  K::update(u, 5);
  CHECK(number(K::gradients(before, {u})[0]) == 12);
  Tensor after = u * u * u;
  CHECK(number(K::gradients(before + after, {u})[0]) == 12 + 75);
  Tensor v = K::variable(2, "float64");
  Tensor g = K::gradients(v * v * v, {v})[0];
  K::update(v, 5);
  CHECK(number(K::gradients(g, {v})[0]) == 12);
  Tensor recorded = K::symbolic([&] { return K::gradients(v * v * v, {v})[0]; })();
  CHECK(number(K::function({}, {recorded})({})[0]) == 75);
}

TEST_CASE("an op reads one variable twice, or several variables, small and large", "[tape]") {
  for (int n : {2, 1000}) {
    Tensor w = K::variable(3.0 * K::ones({n})), v = K::variable(5.0 * K::ones({n})),
           yes = K::variable(K::ones({n}, "bool"));
    auto first = [](const Tensor& x) { return x.to_vector<float>()[0]; };
    CHECK(first(w + w) == 6);
    CHECK(first(w * v) == 15);
    CHECK(first(w * w + w * v) == 24);
    CHECK(first(K::switch_(yes, w, v)) == 3);
    CHECK(first(K::switch_(yes, w, w)) == 3);
    Tensors g = K::gradients(K::sum(w * w * v + w), {w, v});
    CHECK(first(g[0]) == 31);
    CHECK(first(g[1]) == 9);
    K::update(w, v);  // nobody still has its lock
    CHECK(first(w) == 5);
  }
}

TEST_CASE("gradients reach intermediate tensors; what the loss does not need has none; a constant is refused",
          "[tape]") {
  Tensor u = K::variable(5, "float64");
  Tensor e = K::exp(u * 0.1);
  Tensors g = K::gradients(e * e * u, {e, K::stop_gradient(u), u});
  CHECK(number(g[0]) == Approx(2 * std::exp(0.5) * 5));
  CHECK_FALSE(g[1].defined());
  CHECK(number(g[2]) == Approx(std::exp(1.0) * (1 + 0.2 * 5)));
  CHECK_FALSE(K::gradients(e, {K::variable(1, "float64")})[0].defined());
  CHECK(
      error_of([&] { K::gradients(e, {K::constant(1, "float64")}); }) ==
      "gradients: variable 0 of shape () was not recorded (it is a constant); make it a K::variable or a K::placeholder");
}

TEST_CASE("a model on unknown rows has static shapes, and first and second gradients at every size", "[tape]") {
  Tensor w = variable(w0, {3, 2}), b = variable({0.1, -0.2}, {2}), x = K::placeholder({K::None, 3}, K::None, "float64");
  auto model = [&](const Tensor& in, const Tensor& weights) {
    return K::mean(K::square(K::tanh(K::dot(in, weights) + b)));
  };
  Tensor y = K::tanh(K::dot(x, w) + b), loss = K::mean(K::square(y));
  Tensors g = K::gradients(loss, {w, b, x});
  Tensor gg = K::gradients(K::sum(K::square(g[0])) + K::sum(K::square(g[2])), {w})[0];
  CHECK(y.shape() == Shape({-1, 2}));
  CHECK(g[2].shape() == Shape({-1, 3}));
  CHECK(gg.shape() == Shape({3, 2}));
  auto f = K::function({x}, {g[0], gg});
  for (std::int64_t n : {1, 2, 5}) {
    Vec rows = some(static_cast<std::size_t>(3 * n), static_cast<int>(20 + n));
    Tensors o = f({constant(rows, {n, 3})});
    close(o[0], differences(
                    [&](const Vec& v) {
                      return number(model(constant(rows, {n, 3}), variable(v, {3, 2})));
                    },
                    w0, {3, 2}));
    auto penalty = [&](const Vec& v) {
      Tensor u = variable(v, {3, 2}), in = variable(rows, {n, 3});
      Tensors d = K::gradients(model(in, u), {u, in});
      return number(K::sum(K::square(d[0])) + K::sum(K::square(d[1])));
    };
    close(o[1], differences(penalty, w0, {3, 2}), 1e-5);
  }
  std::string said = error_of([&] { f({constant({1, 2}, {1, 2})}); });
  INFO(said);
  CHECK(said.find("(None, 3)") != std::string::npos);
  CHECK(said.find("(1, 2)") != std::string::npos);
}

TEST_CASE("broadcasting that unknown rows hide is undone by the gradient", "[tape]") {
  Tensor a = K::placeholder({K::None, 3}, K::None, "float64"), c = K::placeholder({K::None, 3}, K::None, "float64");
  Tensors h = K::gradients(K::sum(K::square(a + c)), {a, c});
  Tensors o = K::function({a, c}, {h[0], h[1]})({{{1, 2, 3}}, {{1, 1, 1}, {2, 2, 2}}});
  close(o[0], constant({10, 14, 18}, {1, 3}));
  close(o[1], constant({4, 6, 8, 6, 8, 10}, {2, 3}));
}

TEST_CASE("shapes that depend on values are right at replay, and so are gradients through them", "[tape]") {
  Tensor x = K::placeholder({K::None, 3}, K::None, "float64");
  Tensor r = K::reshape(x, {K::shape(x)[0], 3, 1}), range = K::arange(K::shape(x)[0]);
  CHECK(r.shape() == Shape({-1, 3, 1}));
  CHECK(range.shape() == Shape({-1}));
  Tensor g = K::gradients(K::sum(K::square(r)), {x})[0];
  auto f = K::function({x}, {r, g, range});
  Tensors o = f({{{1, 2, 3}, {4, 5, 6}}});
  CHECK(o[0].shape() == Shape({2, 3, 1}));
  close(o[1], constant({2, 4, 6, 8, 10, 12}, {2, 3}));
  CHECK(values(o[2]) == Vec{0, 1});
  CHECK(values(f({{{1, 2, 3}}})[2]) == Vec{0});
}

TEST_CASE("SGD with momentum, a moving mean and a metric, as Keras writes them, follow the formulas", "[tape]") {
  Vec y0 = some(4, 7), w1 = some(3, 5);
  Tensor w = variable(w1, {3, 1}), it = K::variable(0, "float64"), lr = K::variable(0.1, "float64"),
         mom = K::variable(0.9, "float64"), m = variable({0, 0, 0}, {3, 1}), total = K::variable(0, "float64"),
         count = K::variable(0, "float64"), mm = K::variable(0, "float64");
  Tensor x = K::placeholder({K::None, 3}, K::None, "float64"), y = K::placeholder({K::None, 1}, K::None, "float64");
  Tensor loss, result;
  Tensors updates;
  K::symbolic([&] {
    Tensor pred = K::dot(x, w);
    loss = K::mean(K::square(pred - y));
    updates.push_back(K::moving_average_update(mm, K::mean(pred), 0.9));
    Tensor g = K::gradients(loss, {w})[0];
    updates.push_back(K::update_add(it, 1));
    Tensor v = mom * m - lr * g;
    updates.push_back(K::update(m, v));
    updates.push_back(K::update(w, w + v));
    Tensors metric{K::update_add(total, K::sum(K::square(pred - y))),
                   K::update_add(count, K::cast(K::size(pred), "float64"))};
    for (const Tensor& u : metric) updates.push_back(u);
    auto after = K::control_dependencies(metric);
    result = K::identity(total / count);
    return 0;
  })();
  CHECK(number(it) == 0);
  CHECK(number(count) == 0);
  auto step = K::function({x, y}, {loss, result}, updates);
  Vec ww = w1, velocity(3);
  double sum = 0, n = 0, moving = 0;
  for (int k = 0; k < 3; ++k) {
    Tensors o = step({constant(x0, {4, 3}), constant(y0, {4, 1})});
    Vec g(3);
    double l = 0, mean = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      double p = 0;
      for (std::size_t j = 0; j < 3; ++j) p += x0[i * 3 + j] * ww[j];
      mean += p / 4;
      l += (p - y0[i]) * (p - y0[i]);
      for (std::size_t j = 0; j < 3; ++j) g[j] += 2 * (p - y0[i]) * x0[i * 3 + j] / 4;
    }
    sum += l;
    n += 4;
    moving -= (moving - mean) * 0.1;
    for (std::size_t j = 0; j < 3; ++j) {
      velocity[j] = 0.9 * velocity[j] - 0.1 * g[j];
      ww[j] += velocity[j];
    }
    CHECK(number(o[0]) == Approx(l / 4));
    CHECK(number(o[1]) == Approx(sum / n));  // the metric reads after its own updates, in the same call
  }
  close(w, constant(ww, {3, 1}), 1e-12);
  CHECK(number(it) == 3);
  CHECK(number(mm) == Approx(moving));
}

TEST_CASE("an update is made once: at once when eager, by the function when recorded", "[tape]") {
  Tensor a = K::variable(1, "float64");
  Tensor done = K::update_add(a, 1);
  CHECK(number(done) == 2);
  std::string said = error_of([&] { K::function({}, Tensors(), {done}); });
  INFO(said);
  CHECK(said.find("already ran") != std::string::npos);
  Tensor op = K::symbolic([&] { return K::update_add(a, 2); })();
  CHECK(number(a) == 2);
  auto f = K::function({}, {op});
  CHECK(number(f({})[0]) == 4);
  CHECK(number(f({})[0]) == 6);
  CHECK(number(a) == 6);
}

TEST_CASE("a call that throws leaves every variable as it was", "[tape]") {
  Tensor a = K::variable(1, "float64"), b = K::variable({1, 2}, "float64"),
         x = K::placeholder({K::None}, K::None, "float64");
  Tensor i = K::placeholder({}, K::None, "int32");
  auto f = K::function({x, i}, {K::gather(x, i)}, {{a, a + 1.0}, {b, b * K::sum(x)}});
  f({{1, 2, 3}, 1});
  CHECK(number(a) == 2);
  CHECK(values(b) == Vec{6, 12});
  CHECK(error_of([&] { f({{1, 2, 3}, 7}); }).find("gather: ") == 0);
  CHECK(error_of([&] { f({{{1, 2, 3}}, 1}); }).find("function: ") == 0);
  CHECK(number(a) == 2);
  CHECK(values(b) == Vec{6, 12});
  auto wrong = K::function({x}, Tensors(), {{a, a + 1.0}, {b, x}});
  CHECK(error_of([&] {
          wrong({{1, 2, 3}});
        }) == "function: update 1 is refused: the variable is (2,), the value (3,); shapes must be equal");
  // Broadcast against the variable, the value would not fit where the variable is.
  Tensor c = K::variable({5.0}, "float64");
  auto wide = K::function({x}, Tensors(), {{a, a + 1.0}, {c, c - K::exp(x)}});
  CHECK(error_of([&] {
          wide({{1, 2, 3}});
        }) == "function: update 1 is refused: the variable is (1,), the value (3,); shapes must be equal");
  CHECK(values(c) == Vec{5});
  auto adds = K::symbolic([&] { return K::function({x}, Tensors(), {K::update_add(c, x)}); })();
  CHECK(error_of([&] {
          adds({{1, 2, 3}});
        }) == "update_add: the variable is (1,), the value (3,); shapes must be equal");
  CHECK(values(c) == Vec{5});
  CHECK(number(a) == 2);
  CHECK(values(b) == Vec{6, 12});
}

TEST_CASE("an intermediate tensor may be fed: what is behind it is neither needed nor computed", "[tape]") {
  Tensor x = K::placeholder({}, K::None, "float64"), w = K::variable(3, "float64");
  Tensor h = K::exp(x) * w, y = h * h + w;
  auto f = K::function({h}, {y, K::gradients(y, {h})[0]});
  Tensors o = f({10});
  CHECK(number(o[0]) == 103);
  CHECK(number(o[1]) == 20);
  auto whole = K::function({x}, {y});
  CHECK(number(whole({0})[0]) == 12);
  std::string said = error_of([&] { K::function({}, {y})({}); });
  INFO(said);
  CHECK(said.find("placeholder") != std::string::npos);
}

TEST_CASE("a variable may be fed, and keeps its value", "[tape]") {
  Tensor w = K::variable(3, "float64");
  auto f = K::function({w}, {w * w});
  CHECK(number(f({10})[0]) == 100);
  CHECK(number(w) == 3);
}

TEST_CASE("the learning phase is test unless it is fed, and a mask is one in forward and gradient", "[tape]") {
  Tensor w = K::variable(2, "float64"), x = K::placeholder({K::None, 3}, K::None, "float64");
  Tensor y = K::in_train_phase([&] { return K::dropout(x * w, 0.5); }, [&] { return x * w; });
  Tensor s = K::sum(y), g = K::gradients(s, {w})[0];
  Tensor ones = K::constant(1, "float64", {10, 3});
  Tensors test = K::function({x}, {s, g})({ones});
  CHECK(number(test[0]) == 60);
  CHECK(number(test[1]) == 30);
  auto train = K::function({x, K::learning_phase()}, {s, g, y});
  Tensors a = train({ones, 1}), b = train({ones, 1}), c = train({ones, 0});
  CHECK(number(a[0]) == Approx(2 * number(a[1])));
  CHECK(values(a[2]) != values(b[2]));
  CHECK(number(c[0]) == 60);
}

TEST_CASE("a draw on the tape is new at every call; an eager one is a value", "[tape]") {
  Tensor x = K::placeholder({K::None, 3}, K::None, "float64");
  Tensor z = x + K::random_uniform({K::shape(x)[0], 3}, 0.0, 1.0, "float64");
  CHECK(z.shape() == Shape({-1, 3}));
  auto f = K::function({x}, {z});
  Tensor in = K::constant(0, "float64", {2, 3});
  CHECK(values(f({in})[0]) != values(f({in})[0]));
  Tensor drawn = K::random_uniform({4}, 0.0, 1.0, "float64").detach();
  auto g = K::function({x}, {K::sum(x) + drawn});
  CHECK(values(g({in})[0]) == values(g({in})[0]));
}

TEST_CASE("four threads call one function: results are their own, and no increment is lost", "[tape]") {
  Tensor x = K::placeholder({K::None}, K::None, "float64"), n = K::variable(0, "float64");
  auto f = K::symbolic([&] { return K::function({x}, {K::sum(K::exp(x))}, {K::update_add(n, K::sum(x))}); })();
  constexpr int kCalls = 500;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Tensor in = K::constant(t, "float64", {8});
      for (int i = 0; i < kCalls; ++i)
        if (std::fabs(f({in})[0].item<double>() - 8 * std::exp(t)) > 1e-9 * std::exp(t)) ++wrong;
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
  CHECK(number(n) == 8.0 * kCalls * (0 + 1 + 2 + 3));
}

TEST_CASE("values of variables are got and set in lists, all or none", "[tape]") {
  Tensor a = K::variable(1, "float64"), b = K::variable({1, 2}, "float64");
  K::batch_set_value({{a, 4}, {b, {5, 6}}});
  Tensors got = K::batch_get_value({a, b});
  CHECK(number(got[0]) == 4);
  CHECK(values(got[1]) == Vec{5, 6});
  CHECK(number(K::get_value(a)) == 4);
  CHECK(error_of([&] { K::batch_set_value({{a, 9}, {b, {1, 2, 3}}}); }) != "no error");
  CHECK(number(a) == 4);
}

TEST_CASE("a frozen learning phase is a constant until clear_session, and a scoped one in its scope", "[tape]") {
  auto branch = [] { return number(K::in_train_phase(1.0, 2.0)); };
  CHECK(branch() == 2);
  {
    K::LearningPhaseScope training(1);
    CHECK(branch() == 1);
  }
  CHECK(branch() == 2);
  kassette::test::SettingsScope restore;
  K::set_learning_phase(1);
  CHECK(branch() == 1);
  CHECK(error_of([] { K::set_learning_phase(2); }).find("set_learning_phase: ") == 0);
  K::clear_session();
  CHECK(branch() == 2);
}

TEST_CASE("a symbolic argument connects a function's segment to the tape, gradients included", "[tape]") {
  Tensor x = K::placeholder({}, K::None, "float64"), z = K::placeholder({}, K::None, "float64");
  auto f = K::function({x}, {x * x * x});
  Tensor y = f({z * 2.0})[0];
  CHECK(y.symbolic());
  Tensors o = K::function({z}, {y, K::gradients(y, {z})[0]})({1});
  CHECK(number(o[0]) == 8);
  CHECK(number(o[1]) == 24);
}

TEST_CASE("everything above leaves nothing on the tape", "[tape]") {
  auto before = kassette::totals();
  {
    Tensor x = constant(x0, {4, 3}), w = variable(w0, {3, 2}), p = K::placeholder({K::None, 3}, K::None, "float64");
    Tensor g = K::gradients(K::sum(K::square(K::gradients(loss_of(w, x), {w})[0])), {w})[0];
    auto f = K::function({p}, {K::gradients(loss_of(w, p), {w})[0], g}, {{w, w * 0.5}});
    f({x});
    f({x});
  }
  auto after = kassette::totals();
  CHECK(after.live_nodes == before.live_nodes);
  CHECK(after.live_tensors == before.live_tensors);
  CHECK(after.live_bytes == before.live_bytes);
  CHECK(after.saved_bytes == before.saved_bytes);
}

TEST_CASE("gradients by an empty tensor, of each order, are those of a tensor with elements", "[tape]") {
  for (const Shape& shape : {Shape{0, 2}, Shape{0}, Shape{2, 0, 3}}) {
    INFO(shape);
    Tensor x = K::variable(K::zeros(shape)), p = K::placeholder(shape);
    for (const Tensor& factor : {K::constant(2.0), K::constant(2.0, "float32", {1, 1, 1}), x + 1.0}) {
      Tensor g = K::gradients(x * factor, {x})[0];
      CHECK(g.shape() == shape);
      CHECK(K::function({}, {g})({})[0].shape() == shape);
      CHECK(K::gradients(g, {x})[0].defined() == (factor.shape() == shape));  // None of what is linear
    }
    Tensor g = K::gradients(p * 2.0, {p})[0];
    CHECK(K::function({p}, {g})({K::eval(x)})[0].shape() == shape);
    CHECK_FALSE(K::gradients(g, {p})[0].defined());
  }
}
