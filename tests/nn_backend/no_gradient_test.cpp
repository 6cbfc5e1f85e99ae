// tests/nn_backend/no_gradient_test.cpp - tensors computed inside K::no_gradient have no history.
#include <kassette/backend.h>
#include <kassette/runtime.h>

#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "core/context.h"
#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;
using namespace kassette::test;

namespace {

/// A small recurrence: 16 samples of 64 units.
struct Cell {
  Tensor x = K::variable(K::random_uniform({16, 20, 64}, -1, 1)),
         w = K::variable(K::random_uniform({64, 64}, -0.2, 0.2));
  Tensor run() const {
    auto step = [&](const Tensor& in, const Tensors& states) {
      Tensor h = K::tanh(in + K::dot(states[0], w));
      return K::Step{h, {h}};
    };
    return K::rnn(step, x, {K::constant(0, "float32", {16, 64})}).outputs;
  }
};

}  // namespace

TEST_CASE("inside no_gradient values are the same and nothing is kept", "[gradients][no_gradient]") {
  Cell cell;
  const std::int64_t nodes = kassette::live_nodes(), saved = kassette::totals().saved_bytes;
  const std::vector<double> recorded = values(cell.run());
  Tensor y;
  {
    auto scope = K::no_gradient();
    y = cell.run();
    CHECK(kassette::live_nodes() == nodes);
    CHECK(kassette::totals().saved_bytes == saved);
  }
  CHECK(values(y) == recorded);
  CHECK(!K::gradients(K::sum(y), {cell.w})[0].defined());
}

TEST_CASE("no gradient passes out of no_gradient, and all of them before and after it", "[gradients][no_gradient]") {
  Tensor w = K::variable({1, 2, 3}), before = K::sum(w * w), inside;
  {
    auto outer = K::no_gradient();
    {
      auto inner = K::no_gradient();
      inside = w * w;
    }
    CHECK(!K::gradients(K::sum(w), {w})[0].defined());
    // A loss of before has its gradient here, too.
    CHECK(values(K::gradients(before, {w})[0]) == std::vector<double>{2, 4, 6});
  }
  CHECK(values(K::gradients(before, {w})[0]) == std::vector<double>{2, 4, 6});
  CHECK(values(K::gradients(K::sum(w * inside), {w})[0]) == std::vector<double>{1, 4, 9});
}

TEST_CASE("variables are made and updated inside no_gradient, and are variables", "[gradients][no_gradient]") {
  Tensor w = K::variable({1, 2}), made;
  {
    auto scope = K::no_gradient();
    made = K::variable({3, 4});
    K::update_sub(w, w * 0.5);
  }
  CHECK(values(w) == std::vector<double>{0.5, 1});
  CHECK(values(K::gradients(K::sum(made * w), {made})[0]) == std::vector<double>{0.5, 1});
}

TEST_CASE("what is built on placeholders inside no_gradient stays on the tape", "[gradients][no_gradient]") {
  Tensor x = K::placeholder({2}), w = K::variable({2, 3}), loss;
  {
    auto scope = K::no_gradient();
    loss = K::sum(x * w * w);
  }
  auto f = K::function({x}, {loss, K::gradients(loss, {w})[0]});
  for (bool off : {false, true}) {
    auto call = [&] {
      Tensors out = f({{1, 10}});
      CHECK(values(out[0]) == std::vector<double>{94});
      CHECK(values(out[1]) == std::vector<double>{4, 60});
    };
    if (off) {
      auto scope = K::no_gradient();
      call();
    } else {
      call();
    }
  }
}

TEST_CASE("no_gradient ends with an exception, and is a thread's own", "[gradients][no_gradient]") {
  Tensor w = K::variable(3);
  try {
    auto scope = K::no_gradient();
    throw std::runtime_error("out");
  } catch (const std::runtime_error&) {
  }
  CHECK(values(K::gradients(w * w, {w})[0]) == std::vector<double>{6});
  auto scope = K::no_gradient();
  float there = 0;
  std::thread([&] { there = K::gradients(w * w, {w})[0].item<float>(); }).join();
  CHECK(there == 6);
}
