// tests/autograd/loops/eager_steps_test.cpp - what a step of an eager loop may do: K::rnn against the same ops in a
// plain loop.
#include <kassette/backend.h>
#include <kassette/runtime.h>

#include <functional>
#include <stdexcept>
#include <vector>

#include <kassette/borrow.h>
#include "core/impl.h"
#include "tests/catch.h"
#include "tests/results.h"
#include "tests/settings.h"
#include "tests/sweeps/sample.h"

namespace K = kassette::backend;
using kassette::Access;
using kassette::all;
using kassette::Dims;
using kassette::DType;
using kassette::slice;
using kassette::Tensor;
using kassette::Tensors;
using namespace kassette::test;

namespace {

constexpr int kRows = 32, kUnits = 64, kSteps = 11;

Tensor uniform(const Dims& shape, int seed, DType dtype = kassette::float32) {
  return K::eval(K::random_uniform(shape, -0.5, 0.5, dtype, seed));
}

using StepOf = std::function<K::Step(const Tensor&, const Tensors&)>;

/// The outputs and the last states of a loop, by rnn or by hand.
Tensors by_rnn(const StepOf& step, const Tensor& xs, const Tensors& states) {
  K::RnnOptions o;
  o.time_major = true;
  auto r = K::rnn([&](const Tensor& x, const Tensors& s) { return step(x, s); }, xs, states, o);
  Tensors all_of{r.outputs};
  for (const Tensor& s : r.new_states) all_of.push_back(s);
  return all_of;
}
Tensors by_hand(const StepOf& step, const Tensor& xs, Tensors states) {
  Tensors ys;
  for (int t = 0; t < static_cast<int>(Access::desc(xs).dims[0]); ++t) {
    K::Step s = step(xs[t], states);
    ys.push_back(s.output);
    states = s.states;
  }
  Tensors all_of{K::stack(ys, 0)};
  for (const Tensor& s : states) all_of.push_back(s);
  return all_of;
}

void check_same(const Tensors& got, const Tensors& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::int64_t i = 0; i < got.size(); ++i) CHECK(same_bits(K::eval(got[i]), K::eval(expected[i])));
}

/// Loop and gradients of all its results with respect to xs, the state and what the step captures, both ways.
void check_both_ways(const StepOf& step, const Tensor& xs, const Tensors& states, const Tensors& captured) {
  Tensors wanted{xs, states[0]};
  for (const Tensor& c : captured) wanted.push_back(c);
  auto gradients = [&](const Tensors& results) {
    Tensor loss = K::sum(K::square(results[0]));
    for (std::int64_t i = 1; i < results.size(); ++i) loss = loss + K::sum(K::sin(results[i]));
    return K::gradients(loss, wanted);
  };
  for (int threads : {1, 2, 3}) {
    const kassette::test::Threads scope(threads);
    Tensors a = by_rnn(step, xs, states), b = by_hand(step, xs, states);
    check_same(a, b);
    Tensors ga = gradients(a), gb = gradients(b);
    for (std::int64_t i = 0; i < ga.size(); ++i)
      check_close(values(ga[i]), values(gb[i]), xs.dtype() == kassette::float64 ? 1e-12 : 1e-5, 1e-6);
  }
}

struct Cell {
  explicit Cell(DType dtype = kassette::float32)
      : recurrent(K::variable(uniform({kUnits, 4 * kUnits}, 11, dtype), dtype)),
        bias(K::variable(uniform({4 * kUnits}, 12, dtype), dtype)),
        xs(K::variable(uniform({kSteps, kRows, 4 * kUnits}, 13, dtype), dtype)),
        h(K::variable(uniform({kRows, kUnits}, 14, dtype), dtype)), c(uniform({kRows, kUnits}, 15, dtype)) {}
  Tensor recurrent, bias, xs, h, c;

  K::Step operator()(const Tensor& x, const Tensors& s) const {
    Tensor z = x + K::dot(s[0], recurrent) + bias;
    auto gate = [&](int k) { return z(all, slice(k * kUnits, (k + 1) * kUnits)); };
    Tensor next = K::sigmoid(gate(1)) * s[1] + K::sigmoid(gate(0)) * K::tanh(gate(2));
    Tensor out = K::sigmoid(gate(3)) * K::tanh(next);
    return {out, {out, next}};
  }
};

/// One step of rnn in which `f` is called with a state of ones.
void in_a_step(const std::function<void(const Tensor&)>& f) {
  Tensor ones = K::ones({kRows, kUnits});
  K::rnn(
      [&](const Tensor&, const Tensors& s) {
        f(s[0]);
        return K::Step{s[0], s};
      },
      K::zeros({kRows, 1, 1}), {ones});
}

}  // namespace

TEST_CASE(
    "a cell in an eager loop is bit-identical to its ops one by one, and its gradients are theirs but for rounding",
    "[eager_steps][rnn]") {
  for (DType dtype : {kassette::float32, kassette::float64}) {
    Cell cell(dtype);
    check_both_ways([&](const Tensor& x, const Tensors& s) { return cell(x, s); }, cell.xs, {cell.h, cell.c},
                    {cell.recurrent, cell.bias});
  }
}

TEST_CASE("a value is there for whoever reads it within the step", "[eager_steps][rnn]") {
  in_a_step([&](const Tensor& one) {
    Tensor a = one + 1.0, b = a * a, c = b - 0.5;
    CHECK(b.data<float>()[5] == 4.0f);
    CHECK(c.to_vector<float>()[7] == 3.5f);
    Tensor d = K::exp(c * 0.0);
    CHECK(printed(d[0](slice(0, 3))) == printed(K::constant({1.0, 1.0, 1.0})));
    Tensor e = d + c;
    CHECK(K::sum(e).item<float>() == 4.5f * kRows * kUnits);
    Tensor f = e * 2.0;
    if (K::reshape(f, {-1})[3].item<float>() == 9.0f) f = f + 1.0;
    CHECK(K::max(f).item<float>() == 10.0f);
    Tensor v = K::variable(f * 3.0), w = K::variable(e);
    K::update(w, f + e);
    CHECK(values(v)[0] == 30.0);
    CHECK(values(w)[0] == 14.5);
  });
}

TEST_CASE("what changes after an op in a step does not change its result", "[eager_steps][rnn]") {
  std::vector<float> memory(kRows * kUnits, 1.0f);
  Tensor v = K::variable(K::ones({kRows, kUnits})), u = K::variable(K::ones({kRows, kUnits}));
  in_a_step([&](const Tensor& one) {
    Tensor lent = kassette::borrow(memory, {kRows, kUnits}, [] {});
    Tensor a = v * 2.0 + u, b = lent + one;
    memory.assign(memory.size(), 5.0f);
    K::update(v, one * 7.0);
    K::update_add(u, one);
    K::update_sub(v, one);
    CHECK(values(a)[9] == 3.0);
    CHECK(values(b)[9] == 2.0);
    CHECK(values(v)[9] == 6.0);
    CHECK(values(u)[9] == 2.0);
  });
}

TEST_CASE("an exception in a step leaves what was made before it", "[eager_steps][rnn]") {
  Tensor kept, other = K::variable(K::ones({kRows, kUnits}));
  CHECK_THROWS_AS(in_a_step([&](const Tensor& one) {
                    kept = K::tanh(one * 0.0 + other);
                    throw std::runtime_error("enough");
                  }),
                  std::runtime_error);
  CHECK(values(kept)[0] == values(K::tanh(K::ones({kRows, kUnits})))[0]);
  CHECK(values(K::gradients(K::sum(kept), {other})[0])[4] == Approx(0.419974).epsilon(1e-5));
  std::string said = error_of([&] { in_a_step([&](const Tensor& one) { K::dot(one + one, one); }); });
  CHECK(said == "dot: (32, 64) x (32, 64): inner dimensions differ, 64 against 32");
}

TEST_CASE("a loop in a step of a loop", "[eager_steps][rnn]") {
  Cell cell;
  auto outer = [&](const std::function<Tensors(const StepOf&, const Tensor&, const Tensors&)>& loop) {
    return [&, loop](const Tensor& x, const Tensors& s) {
      Tensor scaled = s[0] * 0.5;
      Tensors inner = loop(
          [&](const Tensor& y, const Tensors& t) {
            return K::Step{t[0] + scaled, {K::tanh(t[0] * scaled + y)}};
          },
          K::zeros({2, kRows, kUnits}) + x(all, slice(0, kUnits)), {scaled + s[1]});
      K::Step now = cell(x, {inner[1], s[1]});
      return K::Step{now.output + inner[0][1], now.states};
    };
  };
  check_same(by_rnn(outer(by_rnn), cell.xs, {cell.h, cell.c}), by_hand(outer(by_hand), cell.xs, {cell.h, cell.c}));
}

TEST_CASE("many ops, views, reshapes, numbers, rows and other shapes in a step", "[eager_steps][rnn]") {
  Cell cell;
  Tensor narrow = K::variable(uniform({kUnits, 2 * kUnits}, 3)), tall = K::variable(uniform({2 * kRows, kUnits}, 4));
  auto step = [&](const Tensor& x, const Tensors& s) {
    Tensor h = s[0];
    for (int i = 0; i < 40; ++i) h = K::tanh(h * 0.9 + h);
    Tensor z = K::dot(h, cell.recurrent) + x, same = z * z;
    Tensor part = z(all, slice(0, 2 * kUnits)), nested = part(all, slice(kUnits, 2 * kUnits));
    Tensor flat = K::reshape(z, {kRows * 2, 2 * kUnits}) * 2.0,
           back = K::reshape(flat, {kRows, 4 * kUnits})(all, slice(kUnits, 2 * kUnits));
    Tensor late = K::dot(tall + 1.0, narrow), product = K::dot(K::relu(nested), narrow);
    Tensor row = z[3](slice(0, kUnits)), column = z(all, slice(0, 1));
    K::sigmoid(part);  // nobody wants it
    Tensor next = 1.0 - K::sigmoid(back + row) * nested + column + product(all, slice(3, 3 + kUnits)) +
                  late(slice(0, kRows), slice(0, kUnits)) * 0.1 + same(all, slice(0, kUnits)) - K::maximum(h, 0.25) +
                  K::dropout(h, 0.0) + K::softmax(h) + K::cast(K::greater(h, 0.0), "float32") * h;
    Tensor out = next / (1.0 + K::abs(next)) + K::square(s[1]);
    return K::Step{out, {out, next * 0.1}};
  };
  check_both_ways(step, cell.xs, {cell.h, cell.c}, {cell.recurrent, narrow, tall});
}

TEST_CASE("draws go on in a step, one for each", "[eager_steps][rnn]") {
  Cell cell;
  Tensors masks;
  Tensors out = by_rnn(
      [&](const Tensor&, const Tensors& s) {
        Tensor kept = K::dropout(s[0] * 0.0 + 1.0, 0.5);
        masks.push_back(kept);
        return K::Step{kept * 3.0, s};
      },
      cell.xs, {cell.h});
  REQUIRE(masks.size() == kSteps);
  CHECK(values(masks[0]) != values(masks[1]));
  for (int t = 0; t < kSteps; ++t) CHECK(values(out[0][t]) == values(masks[t] * 3.0));
}

TEST_CASE("gradients within a step, and of second order through the loop", "[eager_steps][rnn]") {
  Cell cell(kassette::float64);
  auto step = [&](const Tensor& x, const Tensors& s) {
    Tensor y = K::sin(s[0] * x(all, slice(0, kUnits)));
    Tensor slope = K::gradients(K::sum(y), {s[0]})[0];
    return K::Step{y + slope, {K::tanh(slope)}};
  };
  auto second = [&](const Tensors& results) {
    Tensor g = K::gradients(K::sum(K::square(results[0])), {cell.h})[0];
    return K::gradients(K::sum(K::square(g)), {cell.h})[0];
  };
  Tensors a = by_rnn(step, cell.xs, {cell.h}), b = by_hand(step, cell.xs, {cell.h});
  check_same(a, b);
  check_close(values(second(a)), values(second(b)), 1e-9, 1e-9);
}
