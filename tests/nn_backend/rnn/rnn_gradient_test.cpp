// tests/nn_backend/rnn/rnn_gradient_test.cpp - gradients through rnn: inputs, states, constants and everything
// captured.
#include <kassette/backend.h>

#include <cmath>
#include <functional>
#include <vector>

#include "core/context.h"
#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;
using namespace kassette::test;
using Vec = std::vector<double>;

namespace {

void close(const Vec& got, const Vec& expected, double tolerance = 1e-6) { check_close(got, expected, tolerance); }
/// Central differences of a function of the value of a variable.
Vec differences(const std::function<double()>& f, const Tensor& variable) {
  const Vec here = values(variable);
  const auto set = [&](const Vec& v) { K::set_value(variable, K::constant(v, "float64", variable.shape())); };
  const auto f_at = [&](const Vec& v) { return set(v), f(); };
  const Vec gradient = kassette::test::differences(f_at, here);
  set(here);
  return gradient;
}

/// Everything that can be differentiated at once: an input, two states, a constant, a captured variable and a captured
/// intermediate tensor. The loss looks at all three results.
struct Model {
  Tensor x = var64(numbers(3 * 4 * 2, 1), {3, 4, 2}), h = var64(numbers(3 * 2, 2), {3, 2}),
         c = var64(numbers(3 * 2 * 2, 3), {3, 2, 2});
  Tensor constant = var64(numbers(3 * 2, 4), {3, 2}), w = var64(numbers(4, 5), {2, 2}),
         v = var64(numbers(4, 6), {2, 2});
  Tensor mask = K::constant(Vec{1, 1, 0, 1, /**/ 0, 1, 1, 0, /**/ 0, 0, 0, 0}, "float64", {3, 4});

  static Tensor weigh(const Tensor& t, double by) { return K::sum(K::sin(t * by)); }
  Tensor loss(const Tensor& in, const Tensor& state, const K::RnnOptions& o) const {
    Tensor between = K::exp(v * 0.5);
    auto [last, outputs, states] = K::rnn(
        [&](const Tensor& t, const Tensors& s) {
          Tensor next = K::tanh(K::dot(t + s[0], w) + s[2] * K::sum(s[1], 1));
          return K::Step{next * K::dot(t, between), {next, s[1] * K::expand_dims(next, 1) + between}};
        },
        in, {state, c}, o);
    return weigh(last, 1.1) + weigh(outputs, 0.7) + weigh(states[0], 1.3) + weigh(states[1], 0.9);
  }
  K::RnnOptions options(bool masked, bool backwards, bool zero) const {
    K::RnnOptions o;
    o.constants = constant;
    if (masked) o.mask = mask;
    o.go_backwards = backwards;
    o.zero_output_for_mask = zero;
    return o;
  }
  Tensors variables() const { return {x, h, c, constant, w, v}; }
  static Tensor squares(const Tensors& g) {
    Tensor s = K::constant(0.0, "float64");
    for (const Tensor& t : g) s = s + K::sum(K::square(t));
    return s;
  }
};

}  // namespace

TEST_CASE("gradients through rnn are central differences, for all that it uses, eager, recorded and unrolled",
          "[rnn]") {
  Model m;
  for (bool masked : {false, true})
    for (bool backwards : {false, true})
      for (bool zero : {false, true}) {
        if (zero && !masked) continue;
        K::RnnOptions o = m.options(masked, backwards, zero);
        Tensors g = K::gradients(m.loss(m.x, m.h, o), m.variables());
        for (std::int64_t i = 0; i < g.size(); ++i)
          close(values(g[i]), differences([&] { return number(m.loss(m.x, m.h, o)); }, m.variables()[i]));
        // On placeholders with nothing known, and the mask fed.
        Tensor p = K::placeholder({K::None, K::None, 2}, K::None, "float64"),
               q = K::placeholder({K::None, 2}, K::None, "float64");
        Tensor mask = K::placeholder({K::None, K::None}, K::None, "float64");
        for (bool unroll : {false, true}) {
          Tensor in = unroll ? K::placeholder({K::None, 4, 2}, K::None, "float64") : p;
          K::RnnOptions s = o;
          s.unroll = unroll;
          if (masked) s.mask = mask;
          Tensors wanted{in, q, m.c, m.constant, m.w, m.v};
          Tensors sg = K::gradients(m.loss(in, q, s), wanted);
          Tensors got = K::function({in, q, mask}, sg)({m.x, m.h, m.mask});
          for (std::int64_t i = 0; i < g.size(); ++i) close(values(got[i]), values(g[i]), 1e-12);
        }
      }
}

TEST_CASE("second gradients through a masked rnn are central differences of the first", "[rnn]") {
  Model m;
  K::RnnOptions o = m.options(/*masked=*/true, /*backwards=*/false, /*zero=*/false);
  auto first = [&] { return K::gradients(m.loss(m.x, m.h, o), m.variables()); };
  Tensors second = K::gradients(Model::squares(first()), m.variables());
  Tensor p = K::placeholder({K::None, K::None, 2}, K::None, "float64"),
         q = K::placeholder({K::None, 2}, K::None, "float64");
  Tensors wanted{p, q, m.c, m.constant, m.w, m.v};
  Tensors recorded = K::gradients(Model::squares(K::gradients(m.loss(p, q, o), wanted)), wanted);
  Tensors got = K::function({p, q}, recorded)({m.x, m.h});
  for (std::int64_t i = 0; i < second.size(); ++i) {
    close(values(second[i]), differences([&] { return number(Model::squares(first())); }, m.variables()[i]), 1e-5);
    close(values(got[i]), values(second[i]), 1e-10);
  }
}

TEST_CASE("of a fully masked sample nothing but its states has a gradient", "[rnn]") {
  Model m;
  K::RnnOptions o = m.options(/*masked=*/true, /*backwards=*/false, /*zero=*/false);
  Tensors g = K::gradients(m.loss(m.x, m.h, o), {m.x, m.h, m.constant});
  Vec dx = values(g[0]), dh = values(g[1]), dc = values(g[2]), h = values(m.h);
  CHECK(Vec(dx.begin() + 16, dx.end()) == Vec(8, 0));
  CHECK(Vec(dc.begin() + 4, dc.end()) == Vec(2, 0));
  close(Vec(dh.begin() + 4, dh.end()), {1.3 * std::cos(1.3 * h[4]), 1.3 * std::cos(1.3 * h[5])});
}

TEST_CASE("rnn in rnn, map_fn and switch_ in its step: values and gradients of first and second order", "[rnn]") {
  Tensor x = var64(numbers(2 * 3 * 2, 11), {2, 3, 2}), h = var64(numbers(4, 12), {2, 2}),
         w = var64(numbers(4, 13), {2, 2});
  auto loss = [&](const Tensor& in) {
    auto [last, outputs, states] = K::rnn(
        [&](const Tensor& t, const Tensors& s) {
          auto inner = K::rnn(
              [&](const Tensor& u, const Tensors& r) {  // over the features, one at a time
                Tensor y = K::tanh(K::dot(r[0], w) + u);
                return K::Step{y, {y}};
              },
              K::expand_dims(t, -1), {s[0]});
          Tensor rows = K::map_fn([&](const Tensor& row) { return K::sin(row) * K::sum(w); }, inner.last_output);
          Tensor y = K::switch_(
              K::sum(t) > 0.0, [&] { return rows * 2.0; }, [&] { return rows - s[0]; });
          return K::Step{y, {y}};
        },
        in, {h});
    return K::sum(K::square(outputs)) + K::sum(K::sin(last));
  };
  Tensors wanted{x, h, w}, g = K::gradients(loss(x), wanted);
  auto squares = [&] { return Model::squares(K::gradients(loss(x), wanted)); };
  Tensors second = K::gradients(squares(), wanted);
  Tensor p = K::placeholder({K::None, K::None, 2}, K::None, "float64");
  Tensor l = loss(p);
  Tensors pw{p, h, w}, pg = K::gradients(l, pw), psecond = K::gradients(Model::squares(pg), pw);
  Tensors out{l};
  for (const Tensors* list : {&pg, &psecond})
    for (const Tensor& t : *list) out.push_back(t);
  Tensors got = K::function({p}, out)({x});
  close({number(got[0])}, {number(loss(x))}, 1e-12);
  for (std::int64_t i = 0; i < 3; ++i) {
    close(values(g[i]), differences([&] { return number(loss(x)); }, wanted[i]));
    close(values(second[i]), differences([&] { return number(squares()); }, wanted[i]), 1e-5);
    close(values(got[1 + i]), values(g[i]), 1e-11);
    close(values(got[4 + i]), values(second[i]), 1e-10);
  }
}

TEST_CASE("dropout in a step is drawn anew at each step and call, and shared by forward and adjoint", "[rnn]") {
  K::set_random_seed(5);
  // y = sum of dropout(w * x_t): linear in w, so w . dy/dw == y exactly where the masks agree.
  Tensor w = var64(numbers(16, 21), {16}), h = K::constant(Vec(2, 0.0), "float64", {2, 1});
  auto sum_of = [&](const Tensor& in) {
    return K::sum(K::rnn(
                      [&](const Tensor& t, const Tensors& s) {
                        return K::Step{K::dropout(w * t, 0.5), s};
                      },
                      in, {h})
                      .outputs);
  };
  Tensor p = K::placeholder({K::None, K::None, 16}, K::None, "float64");
  Tensor y = sum_of(p);
  auto f = K::function({p}, {y, K::gradients(y, {w})[0]});
  Tensor x = K::constant(numbers(2 * 5 * 16, 22), "float64", {2, 5, 16});
  Vec seen;
  for (int k = 0; k < 4; ++k) {
    Tensors o = f({x});
    CHECK(number(K::sum(o[1] * w)) == Approx(number(o[0])).epsilon(1e-12));
    for (double before : seen) CHECK(number(o[0]) != before);
    seen.push_back(number(o[0]));
  }
  Tensor now = sum_of(x);
  CHECK(number(K::sum(K::gradients(now, {w})[0] * w)) == Approx(number(now)).epsilon(1e-12));
  // Of ones, steps are told apart by which are kept.
  auto kept = K::rnn(
                  [](const Tensor& t, const Tensors& s) {
                    return K::Step{K::dropout(t, 0.5), s};
                  },
                  K::ones({1, 6, 32}), {K::zeros({1, 1})})
                  .outputs;
  for (int t = 1; t < 6; ++t) CHECK(values(kept(0, t)) != values(kept(0, t - 1)));
}

TEST_CASE("the learning phase inside a step is fed, and marks what depends on it", "[rnn]") {
  Tensor p = K::placeholder({K::None, K::None, 3});
  auto r = K::rnn(
      [](const Tensor& t, const Tensors& s) {
        return K::Step{K::in_train_phase([&] { return t * 2.0; }, [&] { return t; }), s};
      },
      p, {K::zeros({1, 1})});
  auto f = K::function({p, K::learning_phase()}, {r.last_output});
  Tensor x = K::ones({1, 2, 3});
  CHECK(values(f({x, 0})[0]) == Vec{1, 1, 1});
  CHECK(values(f({x, 1})[0]) == Vec{2, 2, 2});
  CHECK(values(K::function({p}, {r.last_output})({x})[0]) == Vec{1, 1, 1});
}

TEST_CASE("the last output that is a state has the gradients of its polynomial, and none without steps", "[rnn]") {
  Tensor x = K::placeholder({K::None, K::None, 1}, K::None, "float64"), s = var64({0.5}, {1, 1}), w = var64({0.8}, {});
  auto step = [&](const Tensor& e, const Tensors& h) {
    Tensor next = h[0] * w + e;
    return K::Step{next, {next}};
  };
  Tensor last = K::rnn(step, x, {s}).last_output;
  Tensors g = K::gradients(K::sum(K::square(last)), {x, w, s});
  auto f = K::function({x}, {last, g[0], g[1], g[2], K::gradients(g[1], {w})[0]});
  for (const Vec& in : {Vec{}, Vec{0.3}, Vec{0.3, -0.7, 0.2}}) {
    Vec c{0.5};  // of the polynomial in w, from its highest power
    c.insert(c.end(), in.begin(), in.end());
    if (in.empty()) c = {};
    double y = 0, dy = 0, ddy = 0, power = 1;
    for (double k : c) ddy = ddy * 0.8 + 2 * dy, dy = dy * 0.8 + y, y = y * 0.8 + k;
    Vec dx(in.size());
    for (std::size_t i = in.size(); i-- > 0; power *= 0.8) dx[i] = 2 * y * power;
    Tensors out = f({K::constant(in, "float64", {1, static_cast<std::int64_t>(in.size()), 1})});
    CHECK(out[0].shape() == kassette::Shape{1, 1});
    close(values(out[0]), {y});
    close(values(out[1]), dx);
    close(values(out[2]), {2 * y * dy});
    close(values(out[3]), {in.empty() ? 0 : 2 * y * power});
    close(values(out[4]), {2 * dy * dy + 2 * y * ddy});
  }
}
