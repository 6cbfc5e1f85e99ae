// tests/autograd/loops/loops_test.cpp - compiled loops have the results of plain loops, whatever their bodies do with
// states.
#include <kassette/backend.h>
#include <kassette/runtime.h>

#include <cmath>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "autograd/loops/loop_request.h"
#include "core/context.h"
#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/results.h"
#include "tests/settings.h"

namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;
using kassette::test::check_close;
using kassette::test::error_of;
using kassette::test::number;
using kassette::test::values;
using Vec = std::vector<double>;

namespace {

/// A tensor of that shape whose elements all differ.
Tensor waves(const kassette::Dims& shape, double phase, std::int64_t n) {
  Vec v;
  for (std::int64_t i = 0; i < n; ++i) v.push_back(0.7 * std::sin(1.3 * static_cast<double>(i) + phase));
  return K::constant(v, "float64", shape);
}

/// A loop over two sequences (T, 3) and (T, 2) with states (3) and (3), which captures w (3), and gives n_outputs
/// stacks.
using Step = std::function<Tensors(const Tensors& xs, const Tensors& states, const Tensor& w)>;
struct Loop {
  Step step;
  int n_outputs = 0;
  std::vector<char> used;  // outputs and last states that the loss looks at
  bool reverse = false;
};

Tensors run(const Loop& l, const Tensors& in) {
  kassette::autograd::LoopRequest r;
  r.what = "foldl";
  r.xs = {in[0], in[1]};
  r.states = {in[2], in[3]};
  r.n_outputs = l.n_outputs;
  r.reverse = l.reverse;
  return kassette::autograd::run_loop(
      r, [&](const Tensors& xs, const Tensors& states) { return l.step(xs, states, in[4]); });
}

Tensor loss_of(const Loop& l, const Tensors& results) {
  Tensor loss = K::constant(0.0, "float64");
  for (std::size_t k = 0; k < l.used.size(); ++k) {
    const Tensor& r = results[static_cast<std::int64_t>(k)];
    if (l.used[k]) loss = loss + K::sum(K::square(r) * 0.5 + r * (1.0 + static_cast<double>(k)));
  }
  return loss;
}

/// First gradients and those of the sum of their squares; zeros where there is no path.
Tensors gradients_of(const Tensor& loss, const Tensors& in, bool second) {
  Tensors g = K::gradients(loss, in), all;
  Tensor squares = K::constant(0.0, "float64");
  for (std::int64_t i = 0; i < g.size(); ++i) {
    if (g[i].defined()) squares = squares + K::sum(K::square(g[i]));
    all.push_back(g[i].defined() ? g[i] : K::zeros_like(in[i]));
  }
  if (!second) return all;
  Tensors h = K::gradients(squares, in);
  for (std::int64_t i = 0; i < h.size(); ++i) all.push_back(h[i].defined() ? h[i] : K::zeros_like(in[i]));
  return all;
}

Tensors inputs_of(int steps) {
  return {waves({steps, 3}, 0.1, steps * 3), waves({steps, 2}, 0.5, steps * 2), waves({3}, 0.9, 3), waves({3}, 1.7, 3),
          waves({3}, 2.2, 3)};
}

void same_as_a_plain_loop(const Loop& l, bool second = true) {
  Tensors in{K::placeholder({K::None, 3}, K::None, "float64"), K::placeholder({K::None, 2}, K::None, "float64"),
             K::placeholder({K::None}, K::None, "float64"), K::placeholder({3}, K::None, "float64"),
             K::placeholder({3}, K::None, "float64")};
  Tensors outputs = run(l, in);
  Tensor loss = loss_of(l, outputs);
  Tensors first = gradients_of(loss, in, false), both = second ? gradients_of(loss, in, true) : Tensors();
  auto f = K::function(in, outputs), g = K::function(in, first), h = K::function(in, second ? both : first);
  Tensors everything = outputs;
  for (const Tensor& t : first) everything.push_back(t);
  auto all = K::function(in, everything);
  for (int steps : {1, 2, 5}) {
    INFO(steps << " steps");
    Tensors fed = inputs_of(steps), vars;
    for (const Tensor& t : fed) vars.push_back(K::variable(t, "float64"));
    Tensors eager = run(l, vars), eager_g = gradients_of(loss_of(l, eager), vars, second);
    Tensors played = f(fed), played_g = g(fed), played_all = all(fed), played_both = h(fed);
    for (std::int64_t i = 0; i < eager.size(); ++i) {
      INFO("output " << i);
      CHECK(values(played[i]) == values(eager[i]));
      CHECK(values(played_all[i]) == values(eager[i]));
    }
    for (std::int64_t i = 0; i < 5; ++i) {
      INFO("gradient " << i);
      check_close(values(played_g[i]), values(eager_g[i]), 1e-12);
      CHECK(values(played_all[eager.size() + i]) == values(played_g[i]));
    }
    for (std::int64_t i = 0; i < played_both.size(); ++i) {
      INFO("gradient " << i << " of both orders");
      check_close(values(played_both[i]), values(eager_g[i]), 1e-12);
    }
  }
}

}  // namespace

TEST_CASE("gradients go through more parts than one op can give", "[loops][serial]") {
  const int n = kassette::kMaxOutputs + 7;
  Vec wanted(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) wanted[static_cast<std::size_t>(i)] = 2 * (i % 11 - 5);
  Tensor x = K::variable(
      [&] {
        Vec v = wanted;
        for (double& e : v) e /= 2;
        return v;
      }(),
      "float64");
  Tensor y = K::foldl([](const Tensor& s, const Tensor& e) { return s + e * e; }, x, K::constant(0, "float64"));
  CHECK(values(K::gradients(y, {x})[0]) == wanted);
}

TEST_CASE("a loop with two states, two sequences and stacked outputs is what a plain loop is", "[loops]") {
  Step step = [](const Tensors& x, const Tensors& s, const Tensor& w) {
    Tensor h = K::tanh(s[0] * w + x[0]) * K::sum(x[1]), c = s[1] * 0.5 + h * s[0];
    return Tensors{h, h * c, h, c};
  };
  for (bool reverse : {false, true})
    for (const std::vector<char>& used :
         {std::vector<char>{1, 1, 1, 1}, {0, 0, 1, 0}, {0, 1, 0, 0}, {1, 0, 0, 1}, {0, 0, 0, 1}})
      same_as_a_plain_loop({step, 2, used, reverse});
}

TEST_CASE("states that change places, stand still or come from the elements", "[loops]") {
  auto swap = [](const Tensors& x, const Tensors& s, const Tensor& w) { return Tensors{s[1], s[0] * w + x[0]}; };
  same_as_a_plain_loop({swap, 0, {1, 0}});  // the cotangent of one state, then of the other
  same_as_a_plain_loop({swap, 0, {1, 1}});
  same_as_a_plain_loop({[](const Tensors&, const Tensors& s, const Tensor&) {
                          return Tensors{s[1], s[0]};
                        },
                        0,
                        {1, 0}});
  same_as_a_plain_loop({[](const Tensors& x, const Tensors& s, const Tensor& w) {
                          return Tensors{s[0] * w, s[0], x[0]};
                        },
                        1,
                        {1, 1, 1}});
  same_as_a_plain_loop({[](const Tensors& x, const Tensors& s, const Tensor& w) {
                          return Tensors{x[0] * s[1], s[1] * w, s[1] * w};
                        },
                        1,
                        {1, 0, 1}});
  same_as_a_plain_loop({[](const Tensors& x, const Tensors&, const Tensor& w) {
                          return Tensors{x[0], w};
                        },
                        0,
                        {1, 1}},
                       false);
  same_as_a_plain_loop({[](const Tensors& x, const Tensors& s, const Tensor& w) {
                          return Tensors{s[1] + x[0], w};
                        },
                        0,
                        {1, 1}});
  // The last state does not depend on the states before: earlier steps get nothing.
  same_as_a_plain_loop({[](const Tensors& x, const Tensors& s, const Tensor& w) {
                          return Tensors{K::exp(x[0]) * w, s[1]};
                        },
                        0,
                        {1, 0}});
  // A number is the state, and one state feeds both.
  same_as_a_plain_loop({[](const Tensors& x, const Tensors& s, const Tensor& w) {
                          Tensor h = s[0] * w + x[0];
                          return Tensors{h, h, h};
                        },
                        1,
                        {1, 1, 1}});
}

TEST_CASE("bodies with views, shapes that are values, and captures used more than once", "[loops]") {
  same_as_a_plain_loop(
      {[](const Tensors& x, const Tensors& s, const Tensor& w) {
         Tensor h = K::reshape(s[0], {3, 1}) * K::reshape(x[1], {1, 2});
         Tensor flat = K::reshape(h, {-1});
         return Tensors{K::reshape(h, {2, 3}), K::sum(h, 1) * w + w, K::expand_dims(s[1], 0)[0] + K::sum(flat)};
       },
       1,
       {1, 1, 1}});
  same_as_a_plain_loop({[](const Tensors& x, const Tensors& s, const Tensor& w) {
                          Tensor n = K::shape(s[0])[0];  // known only when it runs
                          Tensor h = K::reshape(s[0] * w, {n, 1}) + K::ones({n, 1}, "float64");
                          return Tensors{K::reshape(h, {n}) * x[0], s[1] * K::sum(h)};
                        },
                        0,
                        {1, 1}});
  same_as_a_plain_loop({[](const Tensors& x, const Tensors& s, const Tensor& w) {
                          Tensor big = K::exp(w);  // the same in every step
                          return Tensors{s[0] * big + x[0] * w, w * s[1] * big};
                        },
                        0,
                        {1, 1}});
}

TEST_CASE("loops and branches inside of loops", "[loops]") {
  same_as_a_plain_loop({[](const Tensors& x, const Tensors& s, const Tensor& w) {
                          Tensor inner = K::foldl([&](const Tensor& a, const Tensor& e) { return K::tanh(a * e + w); },
                                                  x[1], s[0]);
                          Tensor which = K::switch_(
                              K::sum(x[0]) > 0.0, [&] { return inner * w; }, [&] { return K::sin(s[1]); });
                          return Tensors{which, inner, which + s[1]};
                        },
                        1,
                        {1, 1, 1}});
}

TEST_CASE("masks drawn in a compiled loop are those of its way back, new in each step and call", "[loops]") {
  Tensor x = K::placeholder({K::None, 4}, K::None, "float64");
  // Each step adds mask * e: the cotangent of the elements is the mask.
  Tensor y =
      K::foldl([&](const Tensor& a, const Tensor& e) { return a + K::dropout(e, 0.5); }, x, K::zeros({4}, "float64"));
  Tensor g = K::gradients(K::sum(y), {x})[0];
  auto f = K::function({x}, {y, g});
  Tensor ones = K::ones({6, 4}, "float64").detach();
  Tensors a = f({ones}), b = f({ones});
  check_close(values(a[0]), values(K::sum(a[1], 0)), 1e-12);
  CHECK(values(a[1]) != values(b[1]));
  Vec masks = values(a[1]);
  CHECK(Vec(masks.begin(), masks.begin() + 4 * 3) != Vec(masks.begin() + 4 * 3, masks.end()));
}

TEST_CASE("an integer state counts beside a state that is differentiated", "[loops]") {
  Tensor x = K::placeholder({K::None}, K::None, "float64");
  kassette::autograd::LoopRequest r;
  r.what = "foldl";
  r.xs = x;
  r.states = {K::constant(0, "int32"), K::constant(1.0, "float64")};
  Tensors out = kassette::autograd::run_loop(r, [](const Tensors& xs, const Tensors& s) {
    return Tensors{s[0] + 1, s[1] * xs[0] * K::cast(s[0] + 1, "float64")};
  });
  auto f = K::function({x}, {out[0], out[1], K::gradients(out[1], {x})[0]});
  Tensors v = f({{2.0, 3.0, 5.0}});
  CHECK(number(v[0]) == 3);
  CHECK(number(v[1]) == 180);
  CHECK(values(v[2]) == Vec{90, 60, 36});
}

TEST_CASE("no steps: the states as they came, and their cotangents as they are", "[loops]") {
  Tensor x = K::placeholder({K::None, 2}, K::None, "float64"), w = K::variable({1, 2}, "float64"),
         s = K::variable({3, 4}, "float64");
  Tensor y = K::foldl([&](const Tensor& a, const Tensor& e) { return a * w + e; }, x, s * 2.0);
  Tensors g = K::gradients(K::sum(K::square(y)), {x, w, s});
  Tensors v = K::function({x}, {y, g[0], g[1], g[2]})({K::zeros({0, 2}, "float64")});
  CHECK(values(v[0]) == Vec{6, 8});
  CHECK(v[1].shape() == kassette::Shape{0, 2});
  CHECK(values(v[2]) == Vec{0, 0});
  CHECK(values(v[3]) == Vec{24, 32});
}

TEST_CASE("a state of a compiled loop does not write into what somebody holds", "[loops]") {
  Tensor x = K::placeholder({K::None, 2}, K::None, "float64"), s = K::placeholder({2}, K::None, "float64");
  auto f = K::function({x, s}, {K::foldl([&](const Tensor& a, const Tensor& e) { return a + e; }, x, s)});
  Tensor xs = K::ones({7, 2}, "float64").detach(), start = K::constant({1, 2}, "float64");
  Tensor first = f({xs, start})[0], second = f({xs, first})[0];
  CHECK(values(start) == Vec{1, 2});
  CHECK(values(first) == Vec{8, 9});
  CHECK(values(second) == Vec{15, 16});
}

TEST_CASE("a step that fails says which one it was, on the way there and back", "[loops]") {
  Tensor x = K::placeholder({K::None}, K::None, "int32"), w = K::variable({1, 2, 3}, "float64");
  Tensor y =
      K::foldl([&](const Tensor& a, const Tensor& e) { return a * K::gather(w, e); }, x, K::constant(1.0, "float64"));
  auto f = K::function({x}, {y}), g = K::function({x}, {y, K::gradients(y, {w})[0]});
  std::string said = "gather: indices hold 7, which is out of range for an axis of size 3 (step 2 of 4 of foldl)";
  CHECK(error_of([&] { f({{0, 1, 7, 2}}); }) == said);
  CHECK(error_of([&] { g({{0, 1, 7, 2}}); }) == said);
  CHECK(values(g({{0, 1, 2, 2}})[1]) == Vec{18, 9, 12});
  // A shape that only a call knows.
  Tensor m = K::placeholder({K::None, K::None}, K::None, "float64"),
         start = K::placeholder({K::None}, K::None, "float64");
  auto h = K::function({m, start}, {K::foldl([&](const Tensor& a, const Tensor& e) { return a + e; }, m, start)});
  CHECK(values(h({K::ones({2, 3}, "float64"), {1.0, 2.0, 3.0}})[0]) == Vec{3, 4, 5});
  CHECK(error_of([&] {
          h({K::ones({2, 3}, "float64"), {1.0, 2.0}});
        }).find("(step 0 of 2 of foldl)") != std::string::npos);
  Tensor scaled =
      K::foldl([&](const Tensor& a, const Tensor& e) { return a + K::sum(e * w); }, m, K::constant(0.0, "float64"));
  for (const Tensors& outputs :
       {Tensors{scaled}, Tensors{scaled, K::gradients(scaled, {w})[0]}, K::gradients(scaled, {w})}) {
    auto s = K::function({m}, outputs);
    CHECK(error_of([&] {
            s({K::ones({4, 2}, "float64")});
          }) == "multiply: shapes (2,) and (3,) do not broadcast: 2 against 3 (step 0 of 4 of foldl)");
  }
  CHECK(error_of([&] {
          h({K::ones({2, 3}, "float64"), K::constant(Vec{1.0}, "float64")});
        }) == "foldl: the step returned state 0 of shape (3,), it was (1,); the shape must stay the same");
}

TEST_CASE("two threads run one loop and its gradient, with shapes of their own", "[loops]") {
  Tensor x = K::placeholder({K::None, K::None}, K::None, "float64"), w = K::variable(0.5, "float64"),
         s = K::placeholder({K::None}, K::None, "float64");
  Tensor y = K::sum(K::foldl([&](const Tensor& a, const Tensor& e) { return a * w + e; }, x, s));
  auto f = K::function({x, s}, {y, K::gradients(y, {w, x})[0], K::gradients(y, {w, x})[1]});
  auto work = [&](int n, int* good) {
    for (int i = 0; i < 50; ++i) {
      Tensors v = f({K::ones({4, n}, "float64"), K::zeros({n}, "float64")});
      *good += std::abs(number(v[0]) - 1.875 * n) < 1e-12 && std::abs(number(v[1]) - 2.75 * n) < 1e-12 &&
               v[2].shape() == kassette::Shape{4, n};
    }
  };
  int a = 0, b = 0;
  std::thread one(work, 3, &a), two(work, 5, &b);
  one.join();
  two.join();
  CHECK(a == 50);
  CHECK(b == 50);
}

TEST_CASE("a long loop of numbers keeps one number a step for its way back", "[loops][serial]") {
  constexpr int kSteps = 100000;
  Tensor x = K::placeholder({K::None}), w = K::variable(0.999);
  Tensor l = K::foldl([&](const Tensor& a, const Tensor& e) { return a * w + e; }, x, K::constant(0.0));
  auto f = K::function({x}, {l, K::gradients(l, {w})[0]});
  Tensor xs = K::ones({kSteps}).detach();
  f({xs});
  kassette::reset_peak_memory();
  std::int64_t live = kassette::memory_stats().live;
  Tensors o = f({xs});
  CHECK(number(o[0]) == Approx(1000).epsilon(1e-3));
  CHECK(kassette::memory_stats().peak - live < 4 * kSteps + 100000);
}

TEST_CASE("with checkpoints a loop gives the same gradients to the last bit, whatever the interval between them",
          "[loops]") {
  Step step = [](const Tensors& x, const Tensors& s, const Tensor& w) {
    Tensor h = K::tanh(s[0] * w + x[0]) * K::sum(x[1]);
    Tensor inner = K::foldl([&](const Tensor& a, const Tensor& e) { return a * e + w; }, x[1], h);
    return Tensors{h, K::reshape(inner, {3, 1}),
                   s[1] * 0.5 + K::switch_(
                                    K::sum(x[0]) > 0.0, [&] { return h * s[0]; }, [&] { return inner; }),
                   h};
  };
  for (bool reverse : {false, true}) {
    Loop l{step, 2, {1, 1, 1, 1}, reverse};
    Tensors in{K::placeholder({K::None, 3}, K::None, "float64"), K::placeholder({K::None, 2}, K::None, "float64"),
               K::placeholder({3}, K::None, "float64"), K::placeholder({3}, K::None, "float64"),
               K::placeholder({3}, K::None, "float64")};
    auto function_of = [&] {
      Tensors outputs = run(l, in), all = outputs;
      for (const Tensor& g : gradients_of(loss_of(l, outputs), in, false)) all.push_back(g);
      return K::function(in, all);
    };
    auto plain = function_of();
    for (int interval : {0, 1, 2, 3, 7, 100}) {
      auto scope = K::checkpoint_steps(interval);
      auto f = function_of();
      for (int steps : {0, 1, 2, 7}) {
        INFO(interval << " of " << steps << " steps, " << (reverse ? "reversed" : "forwards"));
        Tensors fed = inputs_of(steps), wanted = plain(fed), got = f(fed);
        for (std::int64_t i = 0; i < wanted.size(); ++i) CHECK(values(got[i]) == values(wanted[i]));
        if (steps == 0) continue;
        Tensors vars;  // and eagerly
        for (const Tensor& t : fed) vars.push_back(K::variable(t, "float64"));
        Tensors eager = run(l, vars), g = gradients_of(loss_of(l, eager), vars, true);
        for (std::int64_t i = 0; i < eager.size(); ++i) CHECK(values(eager[i]) == values(wanted[i]));
        for (std::int64_t i = 0; i < 5; ++i) CHECK(values(g[i]) == values(wanted[eager.size() + i]));
      }
    }
  }
}

TEST_CASE("second gradients through checkpoints are those without", "[loops]") {
  Loop l{[](const Tensors& x, const Tensors& s, const Tensor& w) {
           return Tensors{K::tanh(s[0] * w + x[0]), s[1] * s[0]};
         },
         0,
         {1, 1}};
  Tensors fed = inputs_of(6), vars;
  for (const Tensor& t : fed) vars.push_back(K::variable(t, "float64"));
  Tensors plain = gradients_of(loss_of(l, run(l, vars)), vars, true);
  auto scope = K::checkpoint_steps(2);
  Tensors again = gradients_of(loss_of(l, run(l, vars)), vars, true);
  for (std::int64_t i = 0; i < plain.size(); ++i) check_close(values(again[i]), values(plain[i]), 1e-12);
}

TEST_CASE("with checkpoints a step captures values that no adjoint reads", "[loops]") {
  auto scope = K::checkpoint_steps(2);
  Tensor v = K::variable({1, 2}, "float64"), x = K::variable(K::ones({5, 2}), "float64");
  Tensor square = K::square(v), part = v[K::constant(1, "int32")];
  Tensor y = K::foldl([&](const Tensor& a, const Tensor& e) { return a + square + part + e; }, x);
  CHECK(values(y) == Vec{17, 29});  // 1 + 4 (v^2 + 2 + 1)
  CHECK(values(K::gradients(y, {v})[0]) == Vec{8, 24});
  Tensor inner = K::foldl(
      [&](const Tensor& a, const Tensor& e) {
        return a + K::foldl([&](const Tensor& b, const Tensor& d) { return b + d + square; }, x, e);
      },
      x, K::zeros({2}, "float64"));
  CHECK(values(K::gradients(inner, {v})[0]) == Vec{50, 100});
}

TEST_CASE("a step may multiply by one matrix several times", "[loops]") {
  for (kassette::DType dtype : {kassette::float64, kassette::float32, kassette::float16})
    for (int n : {1, 3, 40}) {
      INFO(dtype << ", size " << n);
      Tensor w = K::variable(K::ones({n, n}), dtype), x = K::placeholder({K::None, K::None, n}, K::None, dtype);
      auto step = [&](const Tensor& e, const Tensors&) {
        return K::Step{K::dot(e, w) + K::dot(e * 2.0, w) + K::dot(e * 0.5, w), {}};
      };
      auto f = K::function({x}, {K::gradients(K::sum(K::rnn(step, x, {}).outputs), {w})[0]});
      Tensor g = K::cast(f({K::ones({2, 4, n})})[0], "float64");
      CHECK(values(g) == Vec(static_cast<std::size_t>(n * n), 28));  // 2 samples, 4 times, 1 + 2 + 0.5
    }
}

TEST_CASE("a step that is computed again draws the same numbers and prints nothing", "[loops]") {
  auto scope = K::checkpoint_steps(2);
  Tensor x = K::placeholder({K::None, 4}, K::None, "float64"), ones = K::ones({7, 4}, "float64").detach();
  // tanh reads its result in the backward pass: the mask is made again.
  auto body = [](const Tensor& a, const Tensor& e) { return a + K::tanh(K::print_tensor(K::dropout(e, 0.5), "mask")); };
  int lines = 0;
  kassette::test::PrintsTo counting([&lines](const char*) { ++lines; });
  Tensor y = K::foldl(body, x, K::zeros({4}, "float64"));
  Tensors v = K::function({x}, {y, K::gradients(K::sum(y), {x})[0]})({ones});
  CHECK(lines == 7);
  Tensor var = K::variable(ones, "float64"), z = K::foldl(body, var, K::zeros({4}, "float64")),
         g = K::gradients(K::sum(z), {var})[0];
  CHECK(lines == 14);
  // Where e was kept it is 2, and tanh'(2) * 2; else 0.
  double slope = 2 / (std::cosh(2.0) * std::cosh(2.0));
  check_close(values(K::sum(v[1], 0) / slope), values(v[0] / std::tanh(2.0)), 1e-12);
  check_close(values(K::sum(g, 0) / slope), values(z / std::tanh(2.0)), 1e-12);
}

TEST_CASE("the backward pass of 10,000 steps takes a megabyte where all of them would take forty", "[loops][serial]") {
  constexpr int kSteps = 10000, kSize = 500;
  Tensor x = K::placeholder({K::None}), w = K::placeholder({kSize});
  auto function_of = [&] {
    Tensor y =
        K::sum(K::foldl([&](const Tensor& a, const Tensor& e) { return K::tanh(a * w + e); }, x, K::zeros({kSize})));
    return K::function({x, w}, {y, K::gradients(y, {w})[0]});
  };
  auto peak_of = [&](const kassette::Function& f, Tensors* out) {
    Tensor xs = (K::ones({kSteps}) * 0.1).detach(), ws = (K::ones({kSize}) * 0.5).detach();
    kassette::reset_peak_memory();
    std::int64_t live = kassette::memory_stats().live;
    *out = f({xs, ws});
    return kassette::memory_stats().peak - live;
  };
  Tensors plain, thrifty;
  CHECK(peak_of(function_of(), &plain) > 20000000);
  auto scope = K::checkpoint_steps();
  CHECK(peak_of(function_of(), &thrifty) < 1000000);
  CHECK(values(plain[0]) == values(thrifty[0]));
  CHECK(values(plain[1]) == values(thrifty[1]));
  CHECK_THROWS_WITH(K::checkpoint_steps(-3),
                    "checkpoint_steps: n is -3; it must be positive, or 0 for the square root of the length");
}

TEST_CASE("a million steps and their way back need no stack, eagerly 100,000", "[loops][serial]") {
  auto fold = [](const Tensor& x, const Tensor& w) {
    return K::foldl([&](const Tensor& a, const Tensor& e) { return a * w + e; }, x, K::constant(0.0, "float64"));
  };
  Tensor x = K::placeholder({K::None}, K::None, "float64"), w = K::variable(0.5, "float64"), y = fold(x, w);
  Tensors v = K::function({x}, {y, K::gradients(y, {w})[0]})({K::ones({1000000}, "float64").detach()});
  CHECK(number(v[0]) == Approx(2));
  CHECK(number(v[1]) == Approx(4));
  Tensor z = fold(K::ones({100000}, "float64").detach(), w);
  CHECK(number(K::gradients(z, {w})[0]) == Approx(4));
}

TEST_CASE("loops nested thirty deep run, forward and backward twice", "[loops]") {
  Tensor x = K::placeholder({2}, K::None, "float64"), w = K::variable(1.0, "float64");
  std::function<Tensor(const Tensor&, int)> nest = [&](const Tensor& start, int depth) -> Tensor {
    if (depth == 0) return start * w;
    return K::foldl([&](const Tensor& a, const Tensor& e) { return nest(a * e, depth - 1); }, x, start);
  };
  // One element: each level runs its body once; the product of 30 elements and w.
  Tensor one = x[kassette::slice(0, 1)];
  std::function<Tensor(const Tensor&, int)> chain = [&](const Tensor& start, int depth) -> Tensor {
    if (depth == 0) return start * w;
    return K::foldl([&](const Tensor& a, const Tensor& e) { return chain(a * e, depth - 1); }, one, start);
  };
  Tensor y = chain(K::constant(1.0, "float64"), 30), g = K::gradients(y, {x, w})[0];
  Tensors v = K::function({x}, {y, g})({{1.1, 7.0}});
  CHECK(number(v[0]) == Approx(std::pow(1.1, 30)));
  CHECK(values(v[1])[0] == Approx(30 * std::pow(1.1, 29)));
  CHECK(values(v[1])[1] == 0);
  // Second order, and every level with two steps.
  Tensor z = nest(K::constant(1.0, "float64"), 5), first = K::gradients(z, {w})[0],
         second = K::gradients(first, {w})[0];
  Tensors u = K::function({x}, {z, first, second})({{1.0, 1.0}});
  CHECK(number(u[0]) == 1);
  CHECK(number(u[1]) == 32);
  CHECK(number(u[2]) == 32 * 31);
}

TEST_CASE("a weight that each step uses twice gets its shares in one order, eagerly and compiled", "[loops]") {
  // x * w comes before the state in what the user wrote: the order of the sum must not follow that.
  Loop l{[](const Tensors& x, const Tensors& s, const Tensor& w) {
           Tensor in = x[0] * w * 0.3 + K::sin(x[0]) * w, h = K::tanh(in + s[0] * w);
           return Tensors{h, h * w + s[1] * 0.9};
         },
         0,
         {1, 1}};
  Tensors in{K::placeholder({K::None, 3}, K::None, "float64"), K::placeholder({K::None, 2}, K::None, "float64"),
             K::placeholder({3}, K::None, "float64"), K::placeholder({3}, K::None, "float64"),
             K::placeholder({3}, K::None, "float64")};
  auto f = K::function(in, gradients_of(loss_of(l, run(l, in)), in, false));
  Tensors fed = inputs_of(9), vars, played = f(fed);
  for (const Tensor& t : fed) vars.push_back(K::variable(t, "float64"));
  Tensors eager = gradients_of(loss_of(l, run(l, vars)), vars, false);
  for (std::int64_t i = 0; i < 5; ++i) CHECK(values(played[i]) == values(eager[i]));
}

TEST_CASE("a compiled loop on a CUDA device gives the gradients of the CPU, with and without checkpoints",
          "[loops][device]") {
  if (!kassette::test::has_device("cuda:0")) return;
  auto results = [](kassette::Device device) {
    kassette::DeviceScope scope(device);
    Tensor x = K::placeholder({K::None, 3}), w = K::variable({0.5, -0.25, 2.0}), rate = K::variable(0.5);
    Tensor y = K::foldl([&](const Tensor& a, const Tensor& e) { return K::tanh(a * w + e) * rate; }, x, K::zeros({3}));
    // Only the last element counts here: the cotangents of the others are zeros.
    Tensor z = K::foldl([&](const Tensor&, const Tensor& e) { return e * w; }, x, K::zeros({3}));
    Tensor loss = K::sum(y * y) + K::sum(z);
    Tensors out = loss;
    for (const Tensor& g : K::gradients(loss, {x, w, rate})) out.push_back(g);
    Tensors got = K::function({x}, out)({K::constant({{1, 2, 3}, {-1, 0, 1}, {0.5, 0.25, 0.125}, {2, 2, 2}})}), here;
    for (const Tensor& t : got) here.push_back(t.to("cpu"));
    return here;
  };
  for (int interval : {100, 2}) {
    auto scope = K::checkpoint_steps(interval);
    Tensors a = results(kassette::cpu), b = results("cuda:0");
    for (std::int64_t i = 0; i < a.size(); ++i) {
      Vec va = values(a[i]), vb = values(b[i]);
      REQUIRE(va.size() == vb.size());
      for (std::size_t k = 0; k < va.size(); ++k) CHECK(va[k] == Approx(vb[k]).epsilon(1e-5));
    }
  }
}

TEST_CASE("the backward pass of a loop has the lengths that each step had", "[loops]") {
  // Each step sums the squares of as many first numbers of its row as the last one says; once by a slice, once by a
  // loop over it.
  auto head = [](const Tensor& e) { return K::slice(e, {0}, {kassette::Dim(K::cast(e(-1), "int32"))}); };
  auto step = [&](const Tensor& a, const Tensor& e, bool loop) {
    Tensor h = head(e);
    return a + (loop ? K::foldl([](const Tensor& s, const Tensor& v) { return s + v * v; }, h, a * 0.0)
                     : K::sum(K::square(h)));
  };
  const Vec rows{1, 2, 3, 0, /**/ 4, 5, 6, 3, /**/ 7, 8, 9, 1, /**/ 1, 3, 5, 2};
  const Vec expected{0, 0, 0, 0, /**/ 8, 10, 12, 0, /**/ 14, 0, 0, 0, /**/ 2, 6, 0, 0};
  for (bool loop : {false, true})
    for (bool right : {false, true}) {
      INFO("by a loop " << loop << ", from the right " << right);
      auto gradient = [&](const Tensor& x) {
        auto one = [&](const Tensor& a, const Tensor& e) { return step(a, e, loop); };
        Tensor zero = K::sum(x) * 0.0;
        return K::gradients(right ? K::foldr(one, x, zero) : K::foldl(one, x, zero), {x})[0];
      };
      Tensor at = K::constant(rows, "float64", {4, 4}), x = K::placeholder({4, 4}, K::None, "float64"),
             any = K::placeholder({K::None, K::None}, K::None, "float64");
      CHECK(values(gradient(K::variable(at, "float64"))) == expected);
      CHECK(values(K::function({x}, {gradient(x)})({at})[0]) == expected);
      CHECK(values(K::function({any}, {gradient(any)})({at})[0]) == expected);
      auto scope = K::checkpoint_steps(2);
      CHECK(values(gradient(K::variable(at, "float64"))) == expected);
      CHECK(values(K::function({x}, {gradient(x)})({at})[0]) == expected);
    }
}
