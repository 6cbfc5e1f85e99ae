// tests/autograd/loops/control_test.cpp - control flow on the tape, and the torture test, which combines all of it.
#include <kassette/backend.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/context.h"
#include "tests/catch.h"
#include "tests/results.h"
#include "tests/torture.h"

namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;
using kassette::test::check_close;
using kassette::test::differences;
using kassette::test::error_of;
using kassette::test::f64;
using kassette::test::number;
using kassette::test::numbers;
using kassette::test::values;
using kassette::test::var64;
using Vec = std::vector<double>;

namespace {

void close(const Vec& got, const Vec& expected, double tolerance = 1e-6) { check_close(got, expected, tolerance); }

/// A small recurrent fold: h <- tanh((h + e) w), h of shape (1, 2).
Tensor recur(const Tensor& w, const Tensor& xs, const Tensor& h) {
  return K::foldl(
      [&](const Tensor& a, const Tensor& e) {
        return K::tanh(K::sum(K::reshape(a + e, {2, 1}) * w, 0));
      },
      xs, h);
}

}  // namespace

TEST_CASE("a fold on placeholders of unknown length has the values and gradients of the loop") {
  Vec w0 = numbers(4, 1), x0 = numbers(6, 2), h0 = numbers(2, 3);
  Tensor w = var64(w0, {2, 2}), h = var64(h0, {2}), x = K::placeholder({K::None, 2}, K::None, "float64");
  auto loss_of = [](const Tensor& w_, const Tensor& x_, const Tensor& h_) {
    return K::sum(K::square(recur(w_, x_, h_)));
  };
  Tensor X = f64(x0, {3, 2});
  Tensor eager = loss_of(w, X, h);
  Tensors ge = K::gradients(eager, {w, h});
  close(values(ge[0]), differences([&](const Vec& v) { return number(loss_of(var64(v, {2, 2}), X, h)); }, w0));
  Tensor loss = loss_of(w, x, h);
  Tensors g = K::gradients(loss, {w, h, x});
  Tensor second = K::gradients(K::sum(K::square(g[0])) + K::sum(K::square(g[2])), {w})[0];
  Tensor third = K::gradients(K::sum(K::square(second)), {h})[0];
  auto f = K::function({x}, {loss, g[0], g[1], g[2], second, third});
  Tensors o = f({X});
  close(values(o[0]), values(eager), 1e-12);
  close(values(o[1]), values(ge[0]), 1e-12);
  close(values(o[2]), values(ge[1]), 1e-12);
  close(values(o[3]), differences([&](const Vec& v) { return number(loss_of(w, f64(v, {3, 2}), h)); }, x0));
  auto first_squares = [&](const Vec& wv, const Vec& hv) {
    Tensor w_ = var64(wv, {2, 2}), x_ = var64(x0, {3, 2});
    Tensors d = K::gradients(loss_of(w_, x_, f64(hv, {2})), {w_, x_});
    return number(K::sum(K::square(d[0])) + K::sum(K::square(d[1])));
  };
  close(values(o[4]), differences([&](const Vec& v) { return first_squares(v, h0); }, w0), 1e-5);
  auto second_squares = [&](const Vec& hv) {
    Tensor w_ = var64(w0, {2, 2}), x_ = var64(x0, {3, 2});
    Tensors d = K::gradients(loss_of(w_, x_, f64(hv, {2})), {w_, x_});
    Tensor dd = K::gradients(K::sum(K::square(d[0])) + K::sum(K::square(d[1])), {w_})[0];
    return number(K::sum(K::square(dd)));
  };
  close(values(o[5]), differences(second_squares, h0), 1e-4);
  // Other lengths, zero among them.
  close(values(f({f64(numbers(2, 9), {1, 2})})[0]), {number(loss_of(w, f64(numbers(2, 9), {1, 2}), h))}, 1e-12);
  close(values(f({f64({}, {0, 2})})[0]), {number(K::sum(K::square(h)))}, 1e-12);
}

TEST_CASE("a body captures placeholders, intermediates and its own elements") {
  Vec w0 = numbers(4, 11), x0 = numbers(6, 12);
  auto cap = [](const Tensor& w, const Tensor& xs, const Tensor& s) {
    Tensor c = K::exp(w * 0.5);
    return K::foldl(
        [&](const Tensor& a, const Tensor& e) { return a * s + K::sum(e * K::sum(c, 0)) * 2.0 + K::sum(xs); }, xs,
        K::constant(1.0, "float64"));
  };
  Tensor w = var64(w0, {2, 2}), x = K::placeholder({K::None, 2}, K::None, "float64"),
         s = K::placeholder({}, K::None, "float64");
  Tensor l = cap(w, x, s);
  Tensors g = K::gradients(l, {w, s, x});
  Tensors o = K::function({x, s}, {l, g[0], g[1], g[2]})({f64(x0, {3, 2}), 0.7});
  auto at = [&](const Vec& wv, double sv, const Vec& xv) {
    return number(cap(var64(wv, {2, 2}), f64(xv, {3, 2}), f64({sv}, {})));
  };
  close(values(o[0]), {at(w0, .7, x0)}, 1e-12);
  close(values(o[1]), differences([&](const Vec& v) { return at(v, .7, x0); }, w0));
  close(values(o[2]), differences([&](const Vec& v) { return at(w0, v[0], x0); }, {.7}));
  close(values(o[3]), differences([&](const Vec& v) { return at(w0, .7, v); }, x0));
}

TEST_CASE("folds nest, and gradients inside a body are differentiated") {
  Vec w0 = numbers(4, 21), x0 = numbers(6, 22);
  auto nest = [](const Tensor& xs, const Tensor& w) {
    return K::foldl(
        [&](const Tensor& a, const Tensor& e) {
          return K::foldl([&](const Tensor& b, const Tensor& r) { return K::tanh(b * K::sum(r * e) + a * 0.1); }, w, a);
        },
        xs, K::constant(0.5, "float64"));
  };
  Tensor w = var64(w0, {2, 2}), x = K::placeholder({K::None, 2}, K::None, "float64");
  Tensor l = nest(x, w);
  Tensors g = K::gradients(l, {w, x});
  Tensor second = K::gradients(K::sum(K::square(g[0])), {x})[0];
  Tensors o = K::function({x}, {g[0], second})({f64(x0, {3, 2})});
  close(values(o[0]), differences([&](const Vec& v) { return number(nest(f64(x0, {3, 2}), var64(v, {2, 2}))); }, w0));
  close(values(o[1]),
        differences(
            [&](const Vec& v) {
              Tensor w_ = var64(w0, {2, 2});
              return number(K::sum(K::square(K::gradients(nest(f64(v, {3, 2}), w_), {w_})[0])));
            },
            x0),
        1e-5);
  auto meta = [](const Tensor& xs, const Tensor& w_) {  // unrolled descent
    return K::sum(K::foldl(
        [&](const Tensor& a, const Tensor& e) {
          Tensor inner = K::sum(K::square(K::sum(K::reshape(a, {2, 1}) * w_, 0) - e));
          return a - K::gradients(inner, {a})[0] * 0.1;
        },
        xs, K::constant({0.3, -0.2}, "float64")));
  };
  Tensor lm = meta(x, w);
  auto f = K::function({x}, {lm, K::gradients(lm, {w})[0]});
  Tensors om = f({f64(x0, {3, 2})});
  close(values(om[1]), differences(
                           [&](const Vec& v) {
                             Tensor saved = K::get_value(w);
                             K::set_value(w, f64(v, {2, 2}));
                             double result = number(f({f64(x0, {3, 2})})[0]);
                             K::set_value(w, saved);
                             return result;
                           },
                           w0));
}

TEST_CASE("a gradient is None where no number of steps connects two tensors, on placeholders as eagerly", "[control]") {
  // Per loop: which of the gradients with respect to the elements, the first and the second state exist.
  struct Case {
    const char* name;
    std::function<Tensor(const Tensor& xs, const Tensor& s, const Tensor& t)> loss;
    std::vector<bool> defined;
  };
  auto rnn = [](const Tensor& xs, const Tensor& s, const Tensor& t, const auto& step) {
    return K::rnn(step, xs, {s, t});
  };
  const Case cases[] = {
      {"an initializer that is not read",
       [](const Tensor& xs, const Tensor& s, const Tensor&) {
         return K::sum(K::foldl([](const Tensor&, const Tensor& e) { return e * 2.0; },
                                xs(kassette::all, kassette::slice(0, 2)), s));
       },
       {true, false, false}},
      {"a state that the loss never sees",
       [&](const Tensor& xs, const Tensor& s, const Tensor& t) {
         return K::sum(rnn(xs, s, t, [](const Tensor& x, const Tensors& h) {
                         return K::Step{x * 3.0, {h[0] * x, h[1]}};
                       }).outputs);
       },
       {true, false, false}},
      {"a state that only feeds itself",
       [&](const Tensor& xs, const Tensor& s, const Tensor& t) {
         return K::sum(rnn(xs, s, t, [](const Tensor& x, const Tensors& h) {
                         return K::Step{h[0] + x, {h[0] * x, K::tanh(h[1])}};
                       }).outputs);
       },
       {true, true, false}},
      {"a state that reaches the output two steps later",
       [&](const Tensor& xs, const Tensor& s, const Tensor& t) {
         return K::sum(rnn(xs, s, t, [](const Tensor& x, const Tensors& h) {
                         return K::Step{h[0] + x, {h[1] * 2.0, x}};
                       }).outputs);
       },
       {true, true, true}},
      {"a last state alone",
       [&](const Tensor& xs, const Tensor& s, const Tensor& t) {
         return K::sum(rnn(xs, s, t, [](const Tensor& x, const Tensors& h) {
                         return K::Step{x, {h[0] * x, h[1] * h[1]}};
                       }).new_states[1]);
       },
       {false, false, true}},
  };
  const Tensor xs = f64(numbers(2 * 3 * 2, 5), {2, 3, 2}), s = f64(numbers(4, 6), {2, 2}),
               t = f64(numbers(4, 7), {2, 2});
  for (const Case& c : cases) {
    INFO(c.name);
    Tensor vx = K::variable(xs, "float64"), vs = K::variable(s, "float64"), vt = K::variable(t, "float64");
    const Tensors eager = K::gradients(c.loss(vx, vs, vt), {vx, vs, vt});
    Tensor px = K::placeholder({2, 3, 2}, K::None, "float64"), ps = K::placeholder({2, 2}, K::None, "float64"),
           pt = K::placeholder({2, 2}, K::None, "float64");
    const Tensors symbolic = K::gradients(c.loss(px, ps, pt), {px, ps, pt});
    for (int i = 0; i < 3; ++i) {
      INFO("gradient " << i);
      CHECK(eager[i].defined() == c.defined[static_cast<std::size_t>(i)]);
      REQUIRE(symbolic[i].defined() == c.defined[static_cast<std::size_t>(i)]);
      if (symbolic[i].defined())
        close(values(K::function({px, ps, pt}, {symbolic[i]})({xs, s, t})[0]), values(eager[i]), 1e-12);
    }
  }
  // Without steps the initializer is the result: where the length is not known, its gradient exists.
  Tensor open = K::placeholder({K::None, 2}, K::None, "float64"), start = K::placeholder({2}, K::None, "float64");
  Tensor g =
      K::gradients(K::sum(K::foldl([](const Tensor&, const Tensor& e) { return e * 2.0; }, open, start)), {start})[0];
  REQUIRE(g.defined());
  auto at = K::function({open, start}, {g});
  CHECK(values(at({K::zeros({0, 2}, "float64"), f64({1, 2}, {2})})[0]) == Vec{1, 1});
  CHECK(values(at({K::zeros({3, 2}, "float64"), f64({1, 2}, {2})})[0]) == Vec{0, 0});
}

TEST_CASE("switch_ runs one branch, and its gradient goes there") {
  Tensor q = var64({3}, {}), c = K::placeholder({}, K::None, "bool");
  Tensor y = K::switch_(
      c, [&] { return K::log(q); }, [&] { return q * q; });
  Tensor g = K::gradients(y, {q})[0];
  auto f = K::function({c}, {y, g});
  close(values(f({true})[1]), {1 / 3.});
  close(values(f({false})[1]), {6});
  int ran = 0;
  Tensor z = K::switch_(
      true,
      [&] {
        ++ran;
        return q;
      },
      [&]() -> Tensor { throw 1; });
  CHECK(ran == 1);
  CHECK(number(z) == 3);
  CHECK(values(K::switch_(K::constant({true, false}, "bool"), K::constant({{1, 2}, {3, 4}}), K::zeros({2, 2}))) ==
        Vec{1, 2, 0, 0});
  CHECK(error_of([&] {
          K::switch_(
              c, [&] { return q; },
              [&] {
                return f64({1, 2}, {2});
              });
        }) == "switch_: the branches have shapes () and (2,); they must be equal");
}

TEST_CASE("the gradient of a tensor that switch_ does not take is zeros, eagerly too") {
  Tensor a = var64({1, 2}, {2}), b = var64({3, 4}, {2});
  for (bool taken : {true, false}) {
    Tensors g = K::gradients(K::switch_(taken, a * a, b * 2.0), {a, b});
    CHECK(values(g[0]) == (taken ? Vec{2, 4} : Vec{0, 0}));
    CHECK(values(g[1]) == (taken ? Vec{0, 0} : Vec{2, 2}));
  }
  CHECK(values(K::gradients(K::switch_(false, a, 5.0), {a})[0]) == Vec{0, 0});
  CHECK(values(K::switch_(false, a, 5.0)) == Vec{5, 5});  // of the shape that it has on placeholders
}

TEST_CASE("a function asks the condition of an eager switch_ of tensors anew; one of callables inside symbolic alone") {
  Tensor v = var64({1}, {}), one = f64({1}, {}), two = f64({2}, {});
  Tensor tensors = K::switch_(v > 0, one, two);
  Tensor callables = K::switch_(
      v > 0, [&] { return one * v; }, [&] { return two * v; });
  Tensor asked = K::symbolic([&] {
    return K::switch_(
        v > 0, [&] { return one * v; }, [&] { return two * v; });
  })();
  auto f = K::function({}, {tensors, callables, asked});
  CHECK(number(f({})[0]) == 1);
  K::set_value(v, -1);
  Tensors y = f({});
  CHECK(number(y[0]) == 2);
  CHECK(number(y[1]) == -1);
  CHECK(number(y[2]) == -2);
}

TEST_CASE("foldl begins with the first element, foldr with the last, and both with the initializer if there is one") {
  Tensor x = K::constant({1, 2, 3});
  auto minus = [](const Tensor& a, const Tensor& e) { return a - e; };
  CHECK(number(K::foldl(minus, x)) == -4);
  CHECK(number(K::foldr(minus, x)) == 0);
  Tensor p = K::placeholder({K::None});
  auto f = K::function({p}, {K::foldl(minus, p), K::foldr(minus, p)});
  CHECK(number(f({x})[0]) == -4);
  CHECK(number(f({x})[1]) == 0);
  CHECK(number(K::foldl(minus, K::zeros({0}), 5.0)) == 5);
  CHECK(error_of([&] { K::foldl(minus, K::zeros({0})); }) ==
        "foldl: elems has no elements, and there is no initializer");
  Tensor leak;
  K::foldl(
      [&](const Tensor& a, const Tensor& e) {
        leak = e;
        return a + e;
      },
      p);
  CHECK(error_of([&] { K::function({p}, {leak})({x}); }) ==
        "function: a tensor made inside the body of a control-flow function was used outside of it");
}

TEST_CASE("random masks in a body: new per step and call, the same in forward and adjoint") {
  Tensor q = var64({3}, {}), x = K::placeholder({K::None}, K::None, "float64");
  const Tensor bits = f64({1, 2, 4, 8, 16}, {5});
  Tensor both = K::foldl(
      [&](const Tensor& a, const Tensor& e) {
        Tensor kept = K::cast(K::greater(K::random_uniform({5}, 0, 1, "float64"), 0.4), "float64");
        return K::stack({a[0] + K::sum(q * kept * e), a[1] * 32 + K::sum(kept * bits)});
      },
      x, f64({0, 0}, {2}));
  Tensor l = both[0], g = K::gradients(l, {q})[0], second = K::gradients(g * g * q, {q})[0];
  auto f = K::function({x}, {l, g, second, both[1]});
  std::set<std::int64_t> drawn;  // what the calls drew
  for (int call = 0; call < 3; ++call) {
    const Tensors o = f({K::constant(Vec(8, 1.0), "float64")});
    auto masks = static_cast<std::int64_t>(number(o[3]));  // five bits for each step
    drawn.insert(masks);
    std::set<std::int64_t> of_steps;
    int kept = 0;
    for (int step = 0; step < 8; ++step, masks >>= 5) {
      of_steps.insert(masks & 31);
      kept += std::popcount(static_cast<std::uint64_t>(masks & 31));
    }
    CHECK(of_steps.size() > 3);  // two of them may be equal
    CHECK(number(o[0]) == 3 * kept);
    CHECK(number(o[1]) == kept);
    CHECK(number(o[2]) == kept * kept);
  }
  CHECK(drawn.size() == 3);
}

namespace {

/// Time is axis 0. Dropout in the body on the elements, a switch on their mean, a captured variable.
Tensor forward(const Tensor& xs, const Tensor& w, bool drop) {
  Tensor start = K::sum(xs, 0) * 0.0;  // (batch, 2), whatever the batch
  Tensor last = K::foldl(
      [&](const Tensor& h, const Tensor& e) {
        Tensor in = drop ? K::in_train_phase([&] { return K::dropout(e, 0.5); }, [&] { return e; }) : e;
        Tensor next = K::tanh(K::dot(in + h, w));
        return K::switch_(
            K::mean(e) > 0.0, [&] { return next * w[0][0] + h * 0.1; }, [&] { return next - K::square(h); });
      },
      xs, start);
  return K::mean(K::square(last)) + K::sum(K::square(w)) * 0.01;
}
Tensor batch(int time, int rows, std::uint64_t seed) {
  return f64(numbers(static_cast<std::size_t>(time * rows * 2), seed), {time, rows, 2});
}

}  // namespace

TEST_CASE("torture: fold, dropout, switch, captured variable, Adam, a metric, the learning phase, two threads") {
  kassette::test::torture(forward, batch);
}

TEST_CASE("dropout's forward and adjoint in a fold share their masks") {
  // y = sum over time of sum(dropout(w * e)): linear in w, so w . dy/dw == y exactly when the masks agree.
  Tensor w = var64(numbers(16, 71), {16}), x = K::placeholder({K::None, 16}, K::None, "float64");
  Tensor y = K::foldl([&](const Tensor& a, const Tensor& e) { return a + K::sum(K::dropout(w * e, 0.5)); }, x,
                      K::constant(0.0, "float64"));
  Tensor g = K::gradients(y, {w})[0];
  auto f = K::function({x}, {y, g});
  for (int k = 0; k < 5; ++k) {
    Tensors o = f({f64(numbers(80, 72), {5, 16})});
    CHECK(number(K::sum(o[1] * w)) == Approx(number(o[0])).epsilon(1e-12));
  }
}

namespace {
Tensor plus(const Tensor& a, const Tensor& b) { return a + b; }
Tensor one() { return K::constant(1); }
}  // namespace

TEST_CASE("what has no value or no elements is refused in the name of the function that was called", "[control]") {
  Tensor p = K::placeholder(kassette::Shape{}, K::None, "bool"), rows = K::placeholder({K::None, 2});
  CHECK_THROWS_WITH(p.item<bool>(),
                    "item: the tensor () is symbolic: it depends on a placeholder or was built in a symbolic scope; "
                    "K::function or K::eval gives its value");
  const auto add = [](const Tensor& a, const Tensor& b) { return a + b; };
  auto left = K::function({rows}, {K::foldl(add, rows)}), right = K::function({rows}, {K::foldr(add, rows)});
  CHECK_THROWS_WITH(left({K::zeros({0, 2})}), "foldl: 0 is out of range for axis 0 of a tensor of shape (0, 2)");
  CHECK_THROWS_WITH(right({K::zeros({0, 2})}), "foldr: -1 is out of range for axis 0 of a tensor of shape (0, 2)");
  CHECK_THROWS_WITH(K::foldl(add, K::zeros({0, 2})), "foldl: elems has no elements, and there is no initializer");
}

TEST_CASE("a plain function goes where a callable goes", "[control]") {
  CHECK(K::foldl(plus, K::constant({1, 2, 3})).item<int>() == 6);
  CHECK(K::foldr(&plus, K::constant({1, 2, 3})).item<int>() == 6);
  CHECK(K::switch_(true, one, K::constant(2)).item<int>() == 1);
  CHECK(K::switch_(false, K::constant(2), &one).item<int>() == 1);
}
