// tests/autograd/function/function_test.cpp - K::function: over callables, and the corners of feeds, outputs, updates
// and threads.
#include <kassette/backend.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "core/context.h"
#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using kassette::Function;
using kassette::Tensor;
using kassette::Tensors;
using kassette::test::error_of;
using kassette::test::number;
using kassette::test::values;
using kassette::test::without_steps;
using Vec = std::vector<double>;

namespace {

Tensor vector64() { return K::placeholder({K::None}, K::None, "float64"); }
Tensor f64(double v) { return K::constant(v, "float64"); }

}  // namespace

TEST_CASE("updates are put together one by one, pairs and ops", "[tape]") {
  std::vector<Tensor> weights;
  K::Updates updates;
  Tensor x = vector64(), steps = K::variable(0, "int64");
  for (int i = 0; i < 5; ++i) {
    weights.push_back(K::variable(i, "float64"));
    updates.push_back({weights.back(), weights.back() + K::sum(x)});
  }
  updates.push_back(K::symbolic([&] { return K::update_add(steps, 1); })());
  K::Updates copy = updates;
  Function f = K::function({x}, {K::sum(x)}, copy);
  CHECK(number(f({{1, 2}})[0]) == 3);
  f({{1, 1}});
  for (int i = 0; i < 5; ++i) CHECK(number(weights[static_cast<std::size_t>(i)]) == i + 5);
  CHECK(number(steps) == 2);
}

// ---- over a callable ------------------------------------------------------------------------------------------------

TEST_CASE("a callable is traced once, and what it captures is read at each call", "[tape]") {
  Tensor w = K::variable({1, 2, 3}, "float64");
  int traced = 0;
  Function f = K::function(
      [&](const Tensors& in) {
        ++traced;
        return K::sum(in[0] * w);
      },
      vector64());
  CHECK(traced == 1);
  CHECK(number(f({{1, 1, 1}})[0]) == 6);
  K::set_value(w, {2, 2, 2});
  CHECK(number(f({{1, 2, 3}})[0]) == 12);
  CHECK(traced == 1);
  CHECK(f({{1, 2, 3}})[0].symbolic() == false);
  // Examples give shape and dtype.
  Function g = K::function(
      [&](const Tensors& in) {
        return Tensors{in[0] + in[1], in[1]};
      },
      {K::zeros({2, 3}, "float64").detach(), f64(1)});
  CHECK(error_of([&] { g({K::zeros({3, 3}, "float64"), 1}); }) == "function: input 0 is (3, 3), declared (2, 3)");
  CHECK(error_of([&] { K::function([](const Tensors&) { return Tensor(); }, {w}); }) ==
        "function: func returned an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK(error_of([&] { K::function([](const Tensors& in) { return in[0]; }, {Tensor()}); }) ==
        "function: input 0 is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
}

TEST_CASE("updates and draws in a callable happen at each call, and gradients are those of the call", "[tape]") {
  Tensor w = K::variable({1, 2}, "float64"), n = K::variable(0, "float64");
  Function train = K::function(
      [&](const Tensors& in) {
        Tensor loss = K::sum(K::square(w - in[0]));
        K::update_sub(w, 0.25 * K::gradients(loss, {w})[0]);
        K::update_add(n, 1);
        return Tensors{loss, K::random_uniform({4})};
      },
      vector64());
  CHECK(values(w) == Vec{1, 2});
  CHECK(number(n) == 0);
  Tensors a = train({{0, 0}}), b = train({{0, 0}});
  CHECK(number(a[0]) == 5);
  CHECK(number(b[0]) == 1.25);
  CHECK(values(w) == Vec{0.25, 0.5});
  CHECK(number(n) == 2);
  CHECK(values(a[1]) != values(b[1]));
  CHECK(error_of([&] { train({{1, 2, 3}}); }).find("no error") == std::string::npos);
  CHECK(number(n) == 2);
  // An update that is an output too is applied once.
  Function both = K::function([&](const Tensors&) { return K::update_add(n, 1); }, Tensors());
  CHECK(number(both({})[0]) == 3);
  CHECK(number(n) == 3);
  // Eager again afterwards, also when the callable throws.
  CHECK_THROWS_AS(K::function(
                      [&](const Tensors& in) -> Tensor {
                        K::update_add(n, 1);
                        return K::dot(in[0], K::zeros({7, 7}));
                      },
                      {K::zeros({2, 2}).detach()}),
                  kassette::ValueError);
  K::update_add(n, 1);
  CHECK(number(n) == 4);
}

TEST_CASE("functions are made of functions", "[tape]") {
  Tensor w = K::variable(3, "float64");
  Function cube = K::function([&](const Tensors& in) { return in[0] * in[0] * in[0] * w; }, f64(0));
  Function slope = K::function(
      [&](const Tensors& in) {
        Tensor y = cube(in)[0];
        return Tensors{y, K::gradients(y, in)[0], cube({w})[0]};
      },
      f64(0));
  Tensors o = slope({2});
  CHECK(number(o[0]) == 24);
  CHECK(number(o[1]) == 36);
  CHECK(number(o[2]) == 81);
  K::set_value(w, 1);
  o = slope({2});
  CHECK(number(o[0]) == 8);
  CHECK(number(o[2]) == 1);
}

// ---- inputs and outputs ---------------------------------------------------------------------------------------------

TEST_CASE("an input twice is refused; an output twice, an input or a constant as output are what they are", "[tape]") {
  Tensor x = vector64(), w = K::variable({1, 2}, "float64"), y = x * w;
  CHECK(error_of([&] { K::function({x, x}, {y}); }) == "function: input 1 of shape (None,) is given twice");
  Tensors o = K::function({x}, {y, x, y, w, K::constant(7)})({{3, 4}});
  CHECK(values(o[0]) == Vec{3, 8});
  CHECK(values(o[1]) == Vec{3, 4});
  CHECK(values(o[2]) == Vec{3, 8});
  CHECK(values(o[3]) == Vec{1, 2});
  CHECK(number(o[4]) == 7);
  Tensor held = o[3];
  K::update_add(w, {1, 1});
  CHECK(values(held) == Vec{1, 2});
}

TEST_CASE("an updated variable that is an output shows what it was, and keeps it", "[tape]") {
  Tensor w = K::variable({1, 2, 3}), x = K::placeholder({K::None});
  Function f = K::function({x}, {w, w * x}, {{w, w - x}});
  Tensors a = f({{1, 1, 1}}), b = f({{1, 1, 1}});
  CHECK(values(a[0]) == Vec{1, 2, 3});
  CHECK(values(b[0]) == Vec{0, 1, 2});
  CHECK(values(w) == Vec{-1, 0, 1});
  CHECK(values(a[0]) == Vec{1, 2, 3});
  // The new value as output: it is not written over by the next call.
  Tensor next = w * 2.0 + x;
  Function g = K::function({x}, {next}, {{w, next}});
  Tensor first = g({{1, 1, 1}})[0], second = g({{0, 0, 0}})[0];
  CHECK(values(first) == Vec{-1, 1, 3});
  CHECK(values(second) == Vec{-2, 2, 6});
  CHECK(values(w) == Vec{-2, 2, 6});
  // Two variables that swap.
  Tensor u = K::variable({1, 1}), v = K::variable({2, 2});
  K::function({}, Tensors(), {{u, v}, {v, u}})({});
  CHECK(values(u) == Vec{2, 2});
  CHECK(values(v) == Vec{1, 1});
}

TEST_CASE("a function may compute an update of the variable it reads, from itself", "[tape]") {
  Tensor w = K::variable(2, "float64"), x = K::placeholder({}, K::None, "float64");
  Function square = K::function({x}, {x * x + w});
  Tensor fed = K::placeholder({}, K::None, "float64");
  Function step = K::function({fed}, {square({fed})[0]}, {{w, square({square({fed + w})[0]})[0]}});
  CHECK(number(step({1})[0]) == 3);
  CHECK(number(w) == 123);  // ((1 + 2)^2 + 2)^2 + 2
  // Eagerly: a call inside the argument of a call.
  CHECK(number(square({square({0})[0]})[0]) == 123. * 123 + 123);
}

TEST_CASE("gradients: a tensor twice, a loss that is no scalar, a loss that is the variable", "[tape]") {
  Tensor w = K::variable({1, 2, 3}, "float64"), x = vector64();
  for (bool symbolic : {false, true}) {
    Tensor y = symbolic ? w * w * x : w * w * K::constant({2, 2, 2}, "float64");
    Tensors g = K::gradients(y, {w, w, y});
    Tensors o = symbolic ? K::function({x}, g)({{2, 2, 2}}) : g;
    CHECK(values(o[0]) == Vec{4, 8, 12});
    CHECK(values(o[1]) == Vec{4, 8, 12});
    CHECK(values(o[2]) == Vec{1, 1, 1});
  }
  CHECK(values(K::gradients(w, {w})[0]) == Vec{1, 1, 1});
}

TEST_CASE("an unknown rank is fed with any, gradients included", "[tape]") {
  Tensor x = K::placeholder(K::None, K::None, "float64"), w = K::variable(3, "float64");
  CHECK(x.ndim() == -1);
  Tensor loss = K::sum(K::exp(x * w) * x);
  Tensors g = K::gradients(loss, {x, w});
  Function f = K::function({x}, {loss, g[0], g[1]});
  for (const Tensor& in :
       {f64(0.5), K::constant({{0.5, 0.5}, {0.5, 0.5}, {0.5, 0.5}}, "float64"), K::constant({0.5}, "float64")}) {
    Tensors o = f({in});
    auto n = static_cast<double>(in.size());
    CHECK(o[1].ndim() == in.ndim());
    CHECK(number(o[0]) == Approx(n * 0.5 * std::exp(1.5)));
    CHECK(values(o[1])[0] == Approx(std::exp(1.5) * 2.5));
    CHECK(number(o[2]) == Approx(n * 0.25 * std::exp(1.5)));
  }
}

// ---- errors ---------------------------------------------------------------------------------------------------------

TEST_CASE("what fails in a replay is named as the user called it, whatever it is made of", "[tape]") {
  Tensor c = K::placeholder({K::None}, K::None, "bool"), a = K::placeholder({K::None, K::None}),
         b = K::placeholder({K::None, K::None});
  Tensor y = K::switch_(c, a, b);  // expand_dims and where
  Tensors fed{K::constant({true, false, true}, "bool"), K::ones({2, 3}), K::ones({2, 3})};
  const std::string said = error_of([&] { K::switch_(fed[0], fed[1], fed[2]); });
  CHECK(said.find("switch_: ") == 0);
  Function f = K::function({c, a, b}, {y});
  CHECK(error_of([&] { f(fed); }) == said);
  // A function whose call is recorded, and a call of what that gave.
  Tensor p = K::placeholder({K::None, K::None});
  CHECK(error_of([&] { K::function({p}, f({fed[0], p, fed[2]}))({fed[1]}); }) == said);
  // In a loop, its way back, and a branch.
  Tensor xs = K::placeholder({K::None, K::None, K::None});
  Tensor sum = K::foldl([&](const Tensor& s, const Tensor& x) { return s + K::sum(K::switch_(c, x, x + 1.0)); }, xs,
                        K::constant(0));
  Tensors loop{fed[0], K::ones({2, 2, 3})};
  const std::string in_loop = error_of([&] { K::function({c, xs}, {sum})(loop); });
  CHECK(in_loop.find(" (step 0 of 2 of foldl)") != std::string::npos);
  CHECK(without_steps(in_loop) == said);
  CHECK(error_of([&] { K::function({c, xs}, {sum, K::gradients(sum, {xs})[0]})(loop); }) == in_loop);
  Tensor taken = K::switch_(
      K::sum(a) > 0.0, [&] { return K::switch_(c, a, b); }, [&] { return b; });
  CHECK(error_of([&] { K::function({c, a, b}, {taken})(fed); }) == said);
}

TEST_CASE("an error in a call has the words of the eager call, and the step of a loop", "[tape]") {
  Tensor x = K::placeholder({K::None, K::None}), w = K::variable(K::ones({3, 2})), n = K::variable(0);
  Function f = K::function({x}, {K::dot(K::exp(x), w)}, {{n, n + 1.0}});
  CHECK(error_of([&] { f({K::ones({2, 4})}); }) == "dot: (2, 4) x (3, 2): inner dimensions differ, 4 against 3");
  CHECK(number(n) == 0);
  Tensor i = K::placeholder({K::None}, K::None, "int32");
  auto sum = [&](const Tensor& at) {
    return K::foldl([&](const Tensor& a, const Tensor& e) { return a + K::gather(w, e); }, at, K::zeros({2}).detach());
  };
  Tensor symbolic = sum(i);
  const std::string wanted =
      "gather: indices hold 5, which is out of range for an axis of size 3 (step 1 of 3 of foldl)";
  CHECK(error_of([&] { K::function({i}, {symbolic})({{0, 5, 1}}); }) == wanted);
  CHECK(error_of([&] { K::function({i}, {symbolic, K::gradients(symbolic, {w})[0]})({{0, 5, 1}}); }) == wanted);
  CHECK(error_of([&] { sum(K::constant({0, 5, 1}, "int32")); }) + " (step 1 of 3 of foldl)" == wanted);
  // A class of the user's own passes as it is.
  struct Mine : kassette::ValueError {
    Mine() : ValueError("mine") {}
  };
  CHECK_THROWS_AS(K::foldl([](const Tensor&, const Tensor&) -> Tensor { throw Mine(); }, K::ones({3})), Mine);
}

// ---- threads and length ---------------------------------------------------------------------------------------------

TEST_CASE("two threads call one function while a third updates: every result is of one state of the variables",
          "[tape]") {
  constexpr std::int64_t n = 4096;
  Tensor w = K::variable(K::ones({n})), x = K::placeholder({K::None}), calls = K::variable(0, "float64");
  Tensor h = K::exp(x * 0.0) * w;  // w, in a fused chain
  Function f = K::symbolic([&] { return K::function({x}, {K::max(h), K::min(h)}, {K::update_add(calls, 1)}); })();
  Function change = K::symbolic([&] { return K::function({x}, Tensors(), {{w, w + x}}); })();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  Tensor ones = K::ones({n}).detach();
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        Tensors o = f({ones});
        if (o[0].item<float>() != o[1].item<float>()) ++wrong;
      }
    });
  threads.emplace_back([&] {
    for (int i = 0; i < 200; ++i) {
      if (i % 2) change({ones});
      else K::update_add(w, ones);
    }
  });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
  CHECK(number(calls) == 400);
  CHECK(values(w)[n - 1] == 201);
}

TEST_CASE("a long chain goes through a function, forwards and back, without recursion", "[slow]") {
  const char* wish = std::getenv("KASSETTE_TEST_CHAIN");  // 1000000 and an 8 MB stack
  int n = wish ? std::atoi(wish) : 100000;
  auto before = kassette::totals();
  {
    Tensor x = K::placeholder({}, K::None, "float64"), w = K::variable(1.0000001, "float64"), y = x;
    for (int i = 0; i < n; ++i) y = y * w;
    Function f = K::function({x}, {y, K::gradients(y, {w})[0]});
    Tensors o = f({2});
    CHECK(number(o[0]) == Approx(2 * std::pow(1.0000001, n)).epsilon(1e-6));
    CHECK(number(o[1]) == Approx(2 * n * std::pow(1.0000001, n - 1)).epsilon(1e-6));
  }
  CHECK(kassette::totals().live_nodes == before.live_nodes);
}
