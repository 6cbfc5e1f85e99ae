// tests/ranks/messages_test.cpp - messages between two ranks, and gradients that travel back along them.
#include <cstdlib>

#include "tests/ranks/ranks.h"

namespace kassette::test {
namespace {

int next(const D::World& w) { return (w.rank() + 1) % w.size(); }
int previous(const D::World& w) { return (w.rank() + w.size() - 1) % w.size(); }

}  // namespace

TEST_CASE("a ring passes every tensor on, whoever sends first", "[ranks][messages]") {
  const D::World world;
  if (world.size() == 1) {
    CHECK(message_of([] { D::send(K::zeros({2}), 0); }) == "send: to is 0, this rank itself");
    CHECK(message_of([] { D::recv(K::zeros({2}), 1); }) == "recv: from is 1; the world has 1 rank, counted from 0");
    return;
  }
  const std::vector<std::vector<std::int64_t>> shapes{{}, {0}, {3, 2}, {1, 1, 2, 1, 1, 1, 1, 2}, {700, 300}};
  for (DType dtype : {bool_, int64, float16, float32})
    for (const auto& dims : shapes) {
      D::send(tensor_of(world.rank(), dims, dtype), next(world));
      const Tensor got = D::recv(tensor_of(0, dims, dtype), previous(world));
      CHECK(got.dtype() == dtype);
      CHECK(numbers(got) == numbers(tensor_of(previous(world), dims, dtype)));
    }
}

TEST_CASE("messages to one rank arrive in order, and hold their values", "[ranks][messages]") {
  const D::World world;
  if (world.size() == 1) return;
  const Tensor w = K::variable(K::constant({0., 0.}));
  for (int i = 0; i < 50; ++i) {
    K::update(w, K::constant({1. * i, 2. * world.rank()}));
    D::send(w, next(world));  // the variable changes while the message waits
  }
  for (int i = 0; i < 50; ++i)
    CHECK(numbers(D::recv(w, previous(world))) == std::vector<double>{1. * i, 2. * previous(world)});
}

TEST_CASE("a message of another shape or dtype is an error where it arrives, and the next one is right",
          "[ranks][messages]") {
  const D::World world;
  if (world.size() == 1) return;
  D::send(K::zeros({2, 3}), next(world));
  D::send(K::zeros({3}), next(world));
  D::send(K::ones({3}), next(world));
  const std::string from = std::to_string(previous(world));
  CHECK(message_of([&] {
          D::recv(K::zeros({3, 2}), previous(world));
        }) == "recv: rank " + from + " sends float32 (2, 3); it must be float32 (3, 2)");
  CHECK(message_of([&] { D::recv(K::zeros({3}, "int32"), previous(world)); }) ==
        "recv: rank " + from + " sends float32 (3,); it must be int32 (3,)");
  CHECK(numbers(D::recv(K::zeros({3}), previous(world))) == std::vector<double>{1, 1, 1});
}

TEST_CASE("a long message arrives while its sender waits in a collective", "[ranks][messages]") {
  const D::World world;
  if (world.size() == 1) return;
  // In pieces of some bytes, of which MPI would queue a hundred thousand, a shorter one.
  const char* piece = std::getenv("KASSETTE_MPI_PIECE");
  const std::int64_t rows = piece && std::atoll(piece) < 1000 ? 100 : 3000;
  const Tensor x = K::constant(1. + world.rank(), float32, {rows, 1000});
  if (world.rank() == 0) D::send(x, 1);
  if (world.rank() == 1) CHECK(K::max(D::recv(x, 0)).item<float>() == 1);
  CHECK(numbers(D::all_reduce(K::constant(1., float32)))[0] == world.size());
}

TEST_CASE("the gradient of a pipeline travels back along its messages", "[ranks][messages][gradient]") {
  const D::World world;
  if (world.size() == 1) return;
  // Each rank multiplies what it gets by its own weight; the last one has the loss.
  const Tensor w = variable(smooth(world.rank(), {3})), ticket = variable(K::zeros({3}, "float64"));
  const bool first = world.rank() == 0, last = world.rank() == world.size() - 1;
  const Tensor h = K::sin(w * (first ? smooth(99, {3}) : D::recv(ticket, previous(world))));
  const Tensor loss = last ? K::sum(K::square(h)) : D::send(h, next(world));
  const Tensors g = K::gradients(loss, {w, ticket});
  // Alone: the same chain with all weights.
  Tensors ws;
  for (int r = 0; r < world.size(); ++r) ws.push_back(variable(smooth(r, {3})));
  Tensor x = smooth(99, {3});
  for (const Tensor& weight : ws) x = K::sin(weight * x);
  const std::vector<double> got = numbers(g[0]),
                            expected = numbers(K::gradients(K::sum(K::square(x)), ws)[world.rank()]);
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-12));
  if (!first) CHECK(numbers(g[1]) == std::vector<double>{0, 0, 0});
}

TEST_CASE("messages in a function go at each call", "[ranks][messages][function]") {
  const D::World world;
  if (world.size() == 1) return;
  const Tensor x = K::placeholder({2}), like = K::zeros({2});
  const Function f = K::function(
      [&](const Tensors& in) {
        return Tensors{D::send(in[0] * 2.0, next(world)), D::recv(like, previous(world))};
      },
      {x});
  for (int call = 0; call < 3; ++call) {
    const Tensors got = f({K::constant({1. * call, 1. * world.rank()})});
    CHECK(numbers(got[0]) == std::vector<double>{0});
    CHECK(numbers(got[1]) == std::vector<double>{2. * call, 2. * previous(world)});
  }
  const Tensor rows = K::placeholder({2, 2});
  CHECK(message_of([&] { K::map_fn([&](const Tensor& row) { return D::send(row, next(world)); }, rows); }) ==
        "send: inside a loop or a branch of K::switch_, whose steps may be computed again; exchange outside of it");
}

}  // namespace kassette::test
