// tests/autograd/loops/residuals_test.cpp - control flow and its gradients in one function run each body once, and keep
// those of its values that the adjoints read.
#include <kassette/backend.h>
#include <kassette/runtime.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "core/context.h"
#include "ops/engine/op.h"
#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;
using kassette::test::check_close;
using kassette::test::number;
using kassette::test::values;
using namespace kassette::ops;
using Vec = std::vector<double>;

namespace {

std::atomic<int> runs{0};

void count_rule(const OpCall& call, kassette::TensorSpec* out) { out->set(call.spec(0)); }
void count_kernel(const OpCall& call) {
  ++runs;
  if (std::int64_t bytes = call.spec(0).bytes())
    std::memcpy(call.out[0]->data(), call.in[0].data, static_cast<std::size_t>(bytes));
}
void count_gradient(const VjpContext& ctx) { ctx.din(0) = ctx.dy(); }
/// The identity, which counts how often its kernel runs.
constinit const OpDef count_op{.name = "count", .rule = count_rule, .cpu = count_kernel, .vjp = count_gradient};
Tensor counted(const Tensor& x) { return apply1(count_op, {x}); }

int runs_of(const std::function<void()>& f) {
  runs = 0;
  f();
  return runs;
}

void close(const Vec& got, const Vec& expected) { check_close(got, expected, 1e-12, 0); }

/// h <- tanh(h w + e), counted.
Tensor loss_of(const Tensor& xs, const Tensor& w, const Tensor& start) {
  return K::sum(
      K::square(K::foldl([&](const Tensor& h, const Tensor& e) { return counted(K::tanh(h * w + e)); }, xs, start)));
}

struct Recurrence {
  Tensor x = K::placeholder({K::None, 2}, K::None, "float64"), w = K::variable({0.5, -0.3}, "float64"),
         start = K::constant({0.1, 0.2}, "float64");
  Tensor loss = loss_of(x, w, start);
  Tensors g = K::gradients(loss, {w, x});
  Tensor second = K::gradients(K::sum(K::square(g[0])) + K::sum(K::square(g[1])), {w})[0];
  Tensor third = K::gradients(K::sum(K::square(second)), {w})[0];
};

Tensor steps(int n) {
  Vec v;
  for (int i = 0; i < 2 * n; ++i) v.push_back(std::sin(i + 1.0));
  return K::constant(v, "float64", {n, 2});
}

}  // namespace

TEST_CASE("a fold and its gradients in one function run each step once, whatever the order and the outputs", "[tape]") {
  Recurrence r;
  Tensor xs = steps(7);
  CHECK(runs_of([&] { K::function({r.x}, {r.loss})({xs}); }) == 7);
  CHECK(runs_of([&] { K::function({r.x}, {r.g[0]})({xs}); }) == 7);
  CHECK(runs_of([&] { K::function({r.x}, {r.loss, r.g[0], r.g[1]})({xs}); }) == 7);
  CHECK(runs_of([&] { K::function({r.x}, {r.g[1], r.g[0], r.loss})({xs}); }) == 7);
  CHECK(runs_of([&] { K::function({r.x}, {r.loss, r.g[0], r.second})({xs}); }) == 7);
  CHECK(runs_of([&] { K::function({r.x}, {r.second})({xs}); }) == 7);
  CHECK(runs_of([&] { K::function({r.x}, {r.third, r.second, r.g[1], r.g[0], r.loss})({xs}); }) == 7);
  // Two passes that want different things share the tape too.
  Tensor again = K::gradients(r.loss * 2.0, {r.w})[0];
  CHECK(runs_of([&] { K::function({r.x}, {again, r.g[1], r.loss})({xs}); }) == 7);
}

TEST_CASE("gradients are the same with residuals of one adjoint, of several, and extended by one", "[tape]") {
  Recurrence r;
  Tensor xs = steps(5), w = K::variable(r.w, "float64"), xv = K::variable(xs, "float64");
  Tensor loss;
  Tensors g;
  CHECK(runs_of([&] {  // eagerly a loop is a plain loop, and so is its gradient
          loss = loss_of(xv, w, r.start);
          g = K::gradients(loss, {w, xv});
        }) == 5);
  Tensor second = K::gradients(K::sum(K::square(g[0])) + K::sum(K::square(g[1])), {w})[0];
  Tensor third = K::gradients(K::sum(K::square(second)), {w})[0];
  Tensors all = K::function({r.x}, {r.third, r.second, r.g[1], r.g[0], r.loss})({xs});
  close(values(all[0]), values(third));
  close(values(all[1]), values(second));
  close(values(all[2]), values(g[1]));
  close(values(all[3]), values(g[0]));
  close(values(all[4]), values(loss));
  close(values(K::function({r.x}, {r.third})({xs})[0]), values(third));
  close(values(K::function({r.x}, {r.second})({xs})[0]), values(second));
  close(values(K::function({r.x}, {r.g[0]})({xs})[0]), values(g[0]));
  // No steps at all.
  CHECK(number(K::function({r.x}, {r.loss, r.second, r.g[0]})({steps(0)})[0]) == Approx(0.05));
}

TEST_CASE("nested folds and branches run once for value and gradients", "[tape]") {
  Tensor x = K::placeholder({K::None, 2}, K::None, "float64"),
         w = K::variable({{0.5, -0.3}, {0.2, 0.7}, {0.1, 0.4}}, "float64");
  auto nest = [](const Tensor& xs, const Tensor& v) {
    return K::foldl(
        [&](const Tensor& a, const Tensor& e) {
          Tensor inner = K::foldl(
              [&](const Tensor& b, const Tensor& row) { return counted(K::tanh(b * K::sum(row * e) + a * 0.1)); }, v,
              a);
          return K::switch_(
              K::sum(e) > 0.0, [&] { return counted(inner * v[0][0]); }, [&] { return counted(inner - K::square(a)); });
        },
        xs, K::constant(0.5, "float64"));
  };
  Tensor loss = nest(x, w), g = K::gradients(loss, {w})[0], second = K::gradients(K::sum(K::square(g)), {w})[0];
  Tensor xs = steps(4), wv = K::variable(w, "float64");
  constexpr int kOnce = 4 * (3 + 1);
  CHECK(runs_of([&] { K::function({x}, {loss})({xs}); }) == kOnce);
  Tensors o;
  CHECK(runs_of([&] { o = K::function({x}, {loss, g})({xs}); }) == kOnce);
  Tensors p;
  CHECK(runs_of([&] { p = K::function({x}, {loss, g, second})({xs}); }) == kOnce);
  Tensor eager = nest(xs, wv), ge = K::gradients(eager, {wv})[0];
  close(values(o[1]), values(ge));
  close(values(p[1]), values(ge));
  close(values(p[2]), values(K::gradients(K::sum(K::square(ge)), {wv})[0]));
  // Descent inside the body: the inner gradient's forward pass is the body's own.
  Tensor from = K::variable({0.3, -0.2}, "float64");
  auto descend = [&](const Tensor& starts, const Tensor& v) {
    return K::sum(K::foldl(
        [&](const Tensor& a, const Tensor& e) {
          Tensor inner = K::sum(K::square(
              K::foldl([&](const Tensor& b, const Tensor& row) { return counted(K::tanh(b + row * e)); }, v, a)));
          return a - K::gradients(inner, {a})[0] * 0.1 + inner * 0.01;
        },
        starts, from));
  };
  Tensor l = descend(x, w), gl = K::gradients(l, {w})[0];
  CHECK(runs_of([&] { o = K::function({x}, {l, gl})({xs}); }) == 4 * 3);
  CHECK(runs_of([&] { ge = K::gradients(descend(xs, wv), {wv})[0]; }) == 4 * 3);
  close(values(o[1]), values(ge));
}

TEST_CASE("the branch that is not taken is not computed, though it needs nothing of its own", "[tape]") {
  Tensor c = K::placeholder({}, K::None, "bool"), q = K::variable({1, 2}, "float64"),
         i = K::placeholder({}, K::None, "int32");
  Tensor y = K::switch_(
      c, [&] { return counted(K::exp(q)); }, [&] { return K::exp(q) * K::gather(q, i); });
  Tensor g = K::gradients(K::sum(y), {q})[0];
  auto f = K::function({c, i}, {y, g});
  CHECK(runs_of([&] { f({true, 7}); }) == 1);  // 7 would be out of range
  CHECK(runs_of([&] { CHECK(values(f({false, 1})[0])[0] == Approx(2 * std::exp(1.0))); }) == 0);
  CHECK_THROWS_AS(f({false, 7}), kassette::ValueError);
}

TEST_CASE("what a body computes and no adjoint reads is not kept for the backward pass", "[tape]") {
  constexpr int kSteps = 64, kSize = 1 << 14;
  Tensor x = K::placeholder({K::None, kSize}), w = K::variable(2.0);
  // exp(e) is large, and only its mean is multiplied with what is differentiated.
  Tensor l =
      K::foldl([&](const Tensor& a, const Tensor& e) { return a * 0.5 + w * K::mean(K::exp(e)); }, x, K::constant(0.0));
  Tensor g = K::gradients(l, {w})[0];
  auto f = K::function({x}, {l, g});
  Tensor xs = K::zeros({kSteps, kSize}).detach();
  f({xs});
  kassette::reset_peak_memory();
  std::int64_t live = kassette::memory_stats().live;
  Tensors o = f({xs});
  CHECK(kassette::memory_stats().peak - live < 8 * kSize * 4);
  CHECK(number(o[1]) == Approx(2 * (1 - std::pow(0.5, kSteps))));
}

TEST_CASE("a call that throws in the middle of a body leaves no residuals behind", "[tape]") {
  auto before = kassette::totals();
  {
    Tensor x = K::placeholder({K::None}, K::None, "int32"), w = K::variable({1, 2, 3}, "float64"),
           n = K::variable(0, "float64");
    Tensor l =
        K::foldl([&](const Tensor& a, const Tensor& e) { return a * K::gather(w, e); }, x, K::constant(1.0, "float64"));
    auto f = K::symbolic([&] { return K::function({x}, {l, K::gradients(l, {w})[0]}, {K::update_add(n, 1.0)}); })();
    auto idle = kassette::totals();
    CHECK_THROWS_AS(f({{0, 1, 7, 2}}), kassette::ValueError);
    CHECK(kassette::totals().live_nodes == idle.live_nodes);
    CHECK(kassette::totals().saved_bytes == idle.saved_bytes);
    CHECK(number(n) == 0);
    CHECK(values(f({{0, 1, 2, 2}})[1]) == Vec{18, 9, 12});
    CHECK(number(n) == 1);
  }
  CHECK(kassette::totals().live_nodes == before.live_nodes);
  CHECK(kassette::totals().saved_bytes == before.saved_bytes);
}
