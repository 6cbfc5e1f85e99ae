// tests/autograd/loops/schedule_test.cpp - a function with a loop, called again: the next call reuses what the first
// one has arranged.
#include <kassette/backend.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;
using namespace kassette::test;

namespace {

constexpr int kUnits = 80;  // rows that chains take

/// A cell with slices between its elementwise ops, and a loss that depends on all of it.
struct Recurrent {
  Tensor w = K::variable(K::random_uniform({kUnits, 2 * kUnits}, -0.2, 0.2, "float64"), "float64");
  Tensor loss(const Tensor& x) const {
    auto step = [&](const Tensor& in, const Tensors& states) {
      Tensor z = K::dot(states[0], w);
      Tensor a = z(kassette::all, kassette::slice(0, kUnits)),
             b = z(kassette::all, kassette::slice(kUnits, 2 * kUnits));
      Tensor h = K::sigmoid(a + in) * K::tanh(b - in) + 0.5 * states[0];
      return K::Step{h, {h}};
    };
    return K::sum(K::square(K::rnn(step, x, {x(kassette::all, 0)}).outputs));
  }
};

std::vector<std::vector<double>> all_values(const Tensors& list) {
  std::vector<std::vector<double>> v;
  for (const Tensor& t : list) v.push_back(values(t));
  return v;
}

}  // namespace

TEST_CASE("calls with other batches, lengths and orders in between give what the first call gave",
          "[loops][function]") {
  Recurrent r;
  Tensor x = K::placeholder({K::None, K::None, kUnits}, K::None, "float64");
  auto f = K::function({x}, {r.loss(x), K::gradients(r.loss(x), {r.w})[0]});
  struct Case {
    Tensor x;
    std::vector<std::vector<double>> expected;
  };
  std::vector<Case> cases;
  for (int batch : {3, 1, 8})
    for (int steps : {1, 2, 7}) {
      Tensor in = K::eval(K::random_uniform({batch, steps, kUnits}, -1, 1, "float64"));
      Tensor loss = r.loss(in);
      std::vector<std::vector<double>> eager = all_values({loss, K::gradients(loss, {r.w})[0]}),
                                       replayed = all_values(f({in}));
      for (std::size_t i = 0; i < eager.size(); ++i) check_close(replayed[i], eager[i], 1e-10, 1e-10);
      cases.push_back({in, replayed});
    }
  for (int round = 0; round < 2; ++round)
    for (const Case& c : cases) CHECK(all_values(f({c.x})) == c.expected);

  // Two threads have one schedule each, or make another.
  bool same[2] = {true, true};
  auto call = [&](int thread) {
    for (int i = 0; i < 40; ++i) {
      const Case& c = cases[static_cast<std::size_t>(i * (thread + 1)) % cases.size()];
      same[thread] = same[thread] && all_values(f({c.x})) == c.expected;
    }
  };
  std::thread other(call, 1);
  call(0);
  other.join();
  CHECK((same[0] && same[1]));
}

TEST_CASE("after a call that failed in a loop, and after its variable has changed, the next is as it was",
          "[loops][function]") {
  Tensor table = K::variable(K::random_uniform({5, kUnits}, -1, 1, "float64"), "float64");
  Tensor ids = K::placeholder({K::None, 3}, K::None, "int32"), start = K::constant(0, "float64", {3, kUnits});
  auto step = [&](const Tensor& sum, const Tensor& id) { return K::tanh(sum * 0.5 + K::gather(table, id)); };
  auto f = K::function({ids}, {K::foldl(step, ids, start)});
  Tensor good = K::constant({{0, 1, 2}, {3, 4, 0}, {2, 2, 1}}, "int32"),
         bad = K::constant({{0, 1, 2}, {3, 4, 5}, {2, 2, 1}}, "int32");
  const auto expected = all_values(f({good})), eager = all_values({K::foldl(step, good, start)});
  check_close(expected[0], eager[0], 1e-12, 1e-12);
  try {
    f({bad});
    FAIL("5 is out of range");
  } catch (const kassette::ValueError& e) {
    CHECK(std::string(e.what()).find("(step 1 of 3 of foldl)") != std::string::npos);
  }
  CHECK(all_values(f({good})) == expected);
  Tensor before = K::eval(table);
  K::set_value(table, before * 2.0);
  CHECK(all_values(f({good})) != expected);
  K::set_value(table, before);
  CHECK(all_values(f({good})) == expected);
}
