// tests/autograd/function/nested_functions_test.cpp - functions that are called in functions; each call stays one node
// of the tape until its ops are needed: Note [Nested functions].
#include <kassette/backend.h>
#include <kassette/interrupt.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <thread>
#include <vector>

#include <pthread.h>

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
using Vec = std::vector<double>;

namespace {

Tensor vector64() { return K::placeholder({K::None}, K::None, "float64"); }
Tensor f64(const Vec& v) { return K::constant(v, "float64"); }

constexpr int kInline = 0, kDeferred = 80;  // steps that pad() adds: a function of more than 64 is one node of the tape

/// x after that many steps; exact to the bit if x has few digits.
Tensor pad(Tensor x, int steps) {
  for (int i = 0; i < steps / 2; ++i) x = (x + 1.0) - 1.0;
  return x;
}

/// x * w + 1
Function affine(const Tensor& w, int padding) {
  Tensor x = vector64();
  return K::function({x}, {pad(x * w + 1.0, padding)});
}

/// f0(x) = x + 1, f[i](x) = f[i-1](x) * a + b
Function chain(int n, double a, double b) {
  Tensor x = vector64();
  Function f = K::function({x}, {x + 1.0});
  for (int i = 0; i < n; ++i) {
    x = vector64();
    f = K::function({x}, {f({x})[0] * a + b});
  }
  return f;
}

/// Runs f on a thread with that much stack.
void with_stack(std::size_t bytes, std::function<void()> f) {
  pthread_attr_t attributes;
  pthread_t thread;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, bytes) == 0);
  auto run = [](void* p) -> void* {
    (*static_cast<std::function<void()>*>(p))();
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, run, &f) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

std::int64_t nodes_of_chain(int n) {
  const std::int64_t before = kassette::totals().recorded;
  chain(n, 1, 1)({f64({1})});
  return kassette::totals().recorded - before;
}

}  // namespace

TEST_CASE("a chain of nested functions takes time and memory in proportion to its length", "[nested]") {
  const std::int64_t few = nodes_of_chain(500), many = nodes_of_chain(1000);
  CHECK(many < 2.1 * static_cast<double>(few));
  CHECK(many < 1000 * 20);
}

TEST_CASE("a chain of 20000 functions is called, differentiated and freed on a small stack", "[nested][serial]") {
  const auto before = kassette::totals();
  constexpr int n = 20000;
  Vec got;
  // ThreadSanitizer's frames are larger.
#ifdef __SANITIZE_THREAD__
  constexpr std::size_t kStack = 8 << 20;
#else
  constexpr std::size_t kStack = 1 << 20;
#endif
  with_stack(kStack, [&] {
    Function f = chain(n, 0.999, 0.5);
    got = values(f({f64({1, 2})})[0]);
    f = chain(n, 0.999, 0.5);  // what is freed here holds nothing but functions
    Tensor x = vector64(), y = f({x})[0];
    Function g = K::function({x}, {K::gradients(y * y, {x})[0]});
    const Vec slope = values(g({f64({1, 2})})[0]);
    got.insert(got.end(), slope.begin(), slope.end());
  });
  const double a = std::pow(0.999, n), b = 0.5 * (1 - a) / 0.001;
  for (int i = 0; i < 2; ++i) {
    const double y = a * (i + 2) + b;
    CHECK(got[static_cast<std::size_t>(i)] == Approx(y).epsilon(1e-10));
    CHECK(got[static_cast<std::size_t>(i) + 2] == Approx(2 * a * y).epsilon(1e-10));
  }
  CHECK(kassette::totals().live_nodes == before.live_nodes);
}

TEST_CASE("functions of a chain that are all alive share what they call", "[nested]") {
  const auto before = kassette::totals();
  std::vector<Function> all;
  Tensor x = vector64();
  all.push_back(K::function({x}, {x + 1.0}));
  for (int i = 0; i < 400; ++i) {
    x = vector64();
    all.push_back(K::function({x}, {all.back()({x})[0] + 1.0}));
  }
  x = {};
  CHECK(kassette::totals().recorded - before.recorded < 400 * 80);
  for (std::size_t i : {400u, 70u, 200u, 0u, 400u})
    CHECK(values(all[i]({f64({2, 0})})[0]) == Vec{static_cast<double>(i) + 3, static_cast<double>(i) + 1});
  all.clear();
  CHECK(kassette::totals().live_nodes == before.live_nodes);
}

TEST_CASE("derivatives of any order go through a nested function", "[nested]") {
  Tensor x = vector64();
  Function inner = K::function({x}, {pad(x * x * x, kDeferred)});  // x^3
  x = vector64();
  Function outer = K::function({x}, {inner({K::sin(x)})[0] + inner({x})[0]});
  x = vector64();
  Tensors d{outer({x})[0]};
  for (int i = 0; i < 3; ++i) d.push_back(K::gradients(d[i], {x})[0]);
  Function f = K::function({x}, d);
  const Vec at{0.5, -1.25, 2};
  const Tensors o = f({f64(at)});
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double v = at[i], s = std::sin(v), c = std::cos(v);
    CHECK(values(o[0])[i] == Approx(s * s * s + v * v * v));
    CHECK(values(o[1])[i] == Approx(3 * s * s * c + 3 * v * v));
    CHECK(values(o[2])[i] == Approx(6 * s * c * c - 3 * s * s * s + 6 * v));
    CHECK(values(o[3])[i] == Approx(6 * c * c * c - 21 * s * s * c + 6));
  }
}

TEST_CASE("a nested function reads its variables at each call, and gradients reach them", "[nested]") {
  for (int padding : {kInline, kDeferred}) {
    Tensor w = K::variable(3, "float64");
    Function inner = affine(w, padding);
    Tensor x = vector64(), loss = K::sum(inner(inner({x}))[0]);  // x w^2 + w + 1
    Function train = K::function({x}, {loss, K::gradients(loss, {w})[0]}, {{w, w - K::gradients(loss, {w})[0]}});
    Tensors o = train({{1, 2}});
    CHECK(number(o[0]) == 3 * 9 + 2 * 4);
    CHECK(number(o[1]) == 3 * 6 + 2);
    CHECK(number(w) == 3 - 20);
    CHECK(number(train({{1, 0}})[0]) == 17 * 17 - 17 * 2 + 2);
    CHECK(kassette::depends_on(loss, w));
    CHECK(kassette::depends_on(loss, x));
    CHECK_FALSE(kassette::depends_on(loss, K::variable(1.0)));
  }
}

TEST_CASE("what a nested function gives is computed once, whoever needs it first", "[nested]") {
  Tensor w = K::variable(2, "float64"), x = vector64();
  Function inner = affine(w, kDeferred);
  const auto recorded = [] { return kassette::totals().recorded; };
  Tensor y = inner({x})[0];
  const std::int64_t before = recorded();
  Tensor g = K::gradients(y, {w})[0];
  const std::int64_t there_and_back = recorded() - before;
  CHECK(there_and_back > kDeferred);
  K::gradients(y, {x});
  Function f = K::function({x}, {y, g});
  CHECK(number(K::sum(f({{3, 4}})[0])) == 16);
  CHECK(recorded() - before < 2 * there_and_back);  // backwards once more, forwards not
}

TEST_CASE("an output of a nested function may be an input, be fed, and be differentiated with respect to", "[nested]") {
  for (int padding : {kInline, kDeferred}) {
    Tensor w = K::variable(2, "float64"), x = vector64();
    Function inner = affine(w, padding);
    Tensor y = inner({x})[0], z = inner({y * y})[0];
    CHECK(values(K::function({y}, {z})({{3}})[0]) == Vec{19});
    CHECK(values(K::function({x}, {z})({{3}})[0]) == Vec{99});
    CHECK(values(K::function({x}, {K::gradients(z, {y})[0]})({{3}})[0]) == Vec{28});
    CHECK(values(K::function({y}, {K::gradients(z, {y})[0]})({{3}})[0]) == Vec{12});
    K::FunctionOptions options;
    options.feed_dict = {{y, f64({1, 2})}};
    CHECK(values(K::function({}, {z}, options)({})[0]) == Vec{3, 9});
  }
}

TEST_CASE("shapes of nested functions: as declared, more or less known, and of every size at a call", "[nested]") {
  for (int padding : {kInline, kDeferred}) {
    Tensor x = K::placeholder({K::None, 3}, K::None, "float64"), any = K::placeholder(K::None, 2, "float64");
    Function inner = K::function({x}, {K::sum(pad(x, padding), 1), pad(K::reshape(x, {-1}), padding)});
    CHECK(inner({K::placeholder({4, 3}, K::None, "float64")})[0].shape() == kassette::Shape{4});
    CHECK(inner({K::placeholder({K::None, 3}, K::None, "float64")})[0].shape() == kassette::Shape{-1});
    CHECK(error_of([&] {
            inner({K::placeholder({4, 2}, K::None, "float64")});
          }) == "function: input 0 is (4, 2), declared (None, 3)");
    Tensor a = K::placeholder({K::None, 3}, K::None, "float64");
    Tensors parts = inner({a});
    Function outer = K::function({a}, {parts[0], K::gradients(parts[0] * parts[0], {a})[0], parts[1]});
    for (int rows : {0, 1, 4}) {
      Tensor fed = K::ones({rows, 3}, "float64");
      Tensors o = outer({fed});
      CHECK(o[0].shape() == kassette::Shape{rows});
      CHECK(values(o[1]) == Vec(static_cast<std::size_t>(rows) * 3, 6));
      CHECK(o[2].shape() == kassette::Shape{3 * rows});
    }
    Function loose = K::function({any}, {inner({any * 2.0})[0]});
    CHECK(values(loose({{{1, 2, 3}}})[0]) == Vec{12});
  }
}

TEST_CASE("results that need no placeholder, inputs and outputs given twice are what they are in a small function",
          "[nested]") {
  for (int padding : {kInline, kDeferred}) {
    Tensor w = K::variable(2, "float64"), x = vector64(), y = vector64(), big = pad(x + y, padding);
    Function inner = K::function({x, y}, {big, x, big, pad(y * w, padding)});
    Tensor p = vector64();
    Tensors o = inner({p, f64({5})});
    CHECK(o[0].id() == o[2].id());
    CHECK(o[1].id() == p.id());
    CHECK_FALSE(o[3].symbolic());
    CHECK(values(o[3]) == Vec{10});
    Function sums = K::function({x, y}, {big});
    Function product = K::function({x, y}, {pad(y * w, padding)});
    CHECK_FALSE(product({p, f64({5})})[0].symbolic());
    Tensor s = sums({p, f64({5}) * w})[0];  // a value with history
    CHECK(s.symbolic());
    Function f = K::function({p}, {s, K::gradients(s * s, {w})[0]});
    CHECK(values(f({{1}})[0]) == Vec{11});
    CHECK(values(f({{1}})[1]) == Vec{110});
    K::set_value(w, 3);
    CHECK(values(f({{1}})[0]) == Vec{16});
  }
}

TEST_CASE("draws of nested functions are the same series whatever the size of the function", "[nested]") {
  auto series = [](int padding) {
    Tensor x = vector64();
    Function inner = K::function({x}, {pad(x, padding) + K::random_uniform({3}, 0, 1, "float64", 7)});
    Function outer = K::function({x}, {inner({x})[0] + inner({x})[0]});
    Vec drawn;
    for (int i = 0; i < 3; ++i)
      for (double v : values(outer({{0, 0, 0}})[0])) drawn.push_back(v);
    return drawn;
  };
  CHECK(series(kInline) == series(kDeferred));
}

TEST_CASE("nested functions in control dependencies, in bodies and in symbolic scopes", "[nested]") {
  for (int padding : {kInline, kDeferred}) {
    Tensor w = K::variable(2, "float64"), x = vector64();
    Function inner = affine(w, padding);
    Tensor after;
    Function f = K::function(
        [&](const Tensors& in) {
          Tensor u = K::update(w, w * 10.0);
          K::ControlDependencies wait({u});
          after = inner({in[0]})[0];
          return after;
        },
        x);
    CHECK(values(f({{1}})[0]) == Vec{21});
    CHECK(number(w) == 20);
    K::set_value(w, 2);
    Tensor m = K::placeholder({K::None, 2}, K::None, "float64");
    Function mapped = K::function({m}, {K::map_fn([&](const Tensor& row) { return inner({row})[0]; }, m)});
    CHECK(values(mapped({{{1, 2}, {3, 4}}})[0]) == Vec{3, 5, 7, 9});
    Tensor outside = inner({x})[0];
    Function captured = K::function({m, x}, {K::map_fn([&](const Tensor& row) { return row + outside; }, m)});
    CHECK(values(captured({{{1, 2}, {3, 4}}, {1, 1}})[0]) == Vec{4, 5, 6, 7});
    Function slope =
        K::function({m}, {K::gradients(K::map_fn([&](const Tensor& row) { return inner({row})[0]; }, m), {w})[0]});
    CHECK(number(slope({{{1, 2}, {3, 4}}})[0]) == 10);
    Tensor constant = K::symbolic([&] { return inner({w * f64({3})})[0]; })();
    CHECK(values(K::function({}, {constant})({})[0]) == Vec{13});
  }
}

TEST_CASE("loops and branches of a nested function have second gradients", "[nested]") {
  for (int padding : {kInline, kDeferred}) {
    Tensor w = K::variable(0.5, "float64"), x = vector64();
    // w^n x1 ... xn.
    Tensor product =
        K::foldl([&](const Tensor& a, const Tensor& e) { return a * e * w; }, x, K::constant(1, "float64"));
    Tensor chosen = K::switch_(
        K::sum(x) > 0.0, [&] { return product * w; }, [&] { return product; });
    Function inner = K::function({x}, {pad(chosen, padding)});
    Tensor p = vector64(), y = inner({p * 2.0})[0];
    Tensor first = K::gradients(y, {w})[0];
    Function f = K::function({p}, {y, first, K::gradients(first, {w})[0], K::gradients(y, {p})[0]});
    Tensors o = f({{1, 2, 3}});  // 48 w^4
    CHECK(number(o[0]) == Approx(3));
    CHECK(number(o[1]) == Approx(24));
    CHECK(number(o[2]) == Approx(144));
    CHECK(values(o[3])[1] == Approx(1.5));
    o = f({{-1, -2}});  // 8 w^2
    CHECK(number(o[0]) == Approx(2));
    CHECK(number(o[1]) == Approx(8));
    CHECK(number(o[2]) == Approx(16));
  }
}

TEST_CASE("the learning phase of a nested function is that of the call", "[nested]") {
  for (int padding : {kInline, kDeferred}) {
    Tensor x = vector64();
    Function inner = K::function({x}, {K::in_train_phase(pad(x * 2.0, padding), x)});
    Tensor y = inner({x})[0];
    CHECK(values(K::function({x}, {y})({{4}})[0]) == Vec{4});
    CHECK(values(K::function({x, K::learning_phase()}, {y})({{4}, 1})[0]) == Vec{8});
    CHECK(values(K::function({x, K::learning_phase()}, {y})({{4}, 0})[0]) == Vec{4});
  }
}

TEST_CASE("errors of nested functions are those of the ops, at the call that they belong to", "[nested]") {
  for (int padding : {kInline, kDeferred}) {
    Tensor x = vector64(), other = vector64();
    Function unfed = K::function({x}, {pad(x + other, padding)});
    CHECK(error_of([&] { unfed({vector64()}); }) ==
          "function: the placeholder (None,) is not fed; list it among the inputs of a K::function");
    Function fails = K::function({x}, {pad(K::reshape(x, {2, 2}), padding)});
    Function outer = K::function({x}, {fails({x})[0]});
    CHECK(error_of([&] { outer({{1, 2, 3}}); }) == error_of([&] { K::reshape(f64({1, 2, 3}), {2, 2}); }));
    CHECK(values(outer({{1, 2, 3, 4}})[0]) == Vec{1, 2, 3, 4});
    Tensor counter = K::variable(0, "float64");
    Function updates = K::function({x}, {pad(x, padding)}, {{counter, counter + 1.0}});
    CHECK_THROWS_WITH(updates({vector64()}), Catch::Contains("it has updates"));
  }
}

TEST_CASE("an interrupted first call leaves nothing behind", "[nested]") {
  Function f = chain(300, 1, 1);
  for (int i = 0; i < 3; ++i) {
    kassette::request_interrupt();
    CHECK_THROWS_AS(f({f64({1})}), kassette::Interrupted);
  }
  CHECK(values(f({f64({1})})[0]) == Vec{302});
}

TEST_CASE("threads share nested functions and nodes of the tape", "[nested]") {
  Tensor w = K::variable(1, "float64"), x = vector64();
  Function inner = affine(w, kDeferred);
  Tensor y = inner(inner({x}))[0];
  Function f = K::function({x}, {y});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        wrong += values(f({f64({static_cast<double>(i)})})[0]) != Vec{i + 2.0};
        Function g = K::function({x}, {K::gradients(y, {w})[0]});
        wrong += number(g({f64({static_cast<double>(i)})})[0]) != 2 * i + 1;
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("eager gradients depend on what their loss was computed from", "[nested]") {
  Tensor w = K::variable({1, 2}, "float64"), v = K::variable({1, 2}, "float64");
  Tensor g = K::gradients(K::sum(w * w), {w})[0];
  CHECK(kassette::depends_on(g, w));
  CHECK_FALSE(kassette::depends_on(g, v));
}
