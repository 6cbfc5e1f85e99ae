// tests/autograd/function/nested_gradients_test.cpp - gradients of losses that are made of gradients: random programs,
// run eagerly and by functions of placeholders. An eager pass adds cotangents in place and rematerializes values; the
// pass of a function is recorded op by op.
#include <kassette/backend.h>

#include <random>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using kassette::all;
using kassette::slice;
using kassette::Tensor;
using kassette::Tensors;
using namespace kassette::test;

namespace {

/// A random program over matrices of one shape with an even number of rows and columns; the same seed gives the same
/// program.
class Program {
 public:
  Program(unsigned seed, int rows, int columns) : random_(seed), rows_(rows), columns_(columns) {}

  /// Losses and their gradients, each loss made of the gradients before it.
  Tensors run(const Tensor& w, const Tensor& v, int order) {
    Tensors results;
    std::vector<Tensor> values{w, v};
    for (int o = 0; o < order; ++o) {
      ops_ += "| ";
      Tensor l = loss(values);
      results.push_back(l);
      std::vector<Tensor> next;
      for (const Tensor& g : K::gradients(l, {w, v})) {
        results.push_back(g);
        if (g.defined()) next.push_back(g);
      }
      if (next.empty()) break;
      if (pick(2)) next.push_back(w);
      if (pick(3) == 0) next.push_back(one_of(values));
      values = next;
    }
    return results;
  }
  const std::string& ops() const { return ops_; }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  const Tensor& one_of(const std::vector<Tensor>& values) {
    return values[static_cast<std::size_t>(pick(static_cast<int>(values.size())))];
  }

  Tensor loss(std::vector<Tensor> values) {
    for (int n = 2 + pick(4); n > 0; --n) values.push_back(op(values));
    Tensor l = K::sum(values.back() * values[values.size() - 2]);
    for (int more = pick(3); more > 0; --more) l = l + K::sum(K::square(one_of(values)));
    return l;
  }

  Tensor op(const std::vector<Tensor>& values) {
    const int kind = pick(20), r = rows_, c = columns_;
    ops_ += std::to_string(kind) + ' ';
    const Tensor x = one_of(values), y = one_of(values);
    auto columns = [](const Tensor& t, int from, int to) { return t(all, slice(from, to)); };
    auto rows = [](const Tensor& t, int from, int to) { return t(slice(from, to)); };
    switch (kind) {
      case 0: return x + y;
      case 1: return x * y;
      case 2: return K::tanh(x);
      case 3: return x - 0.5 * y;
      case 4: return K::concatenate({columns(x, 2, c), columns(x, 0, 2)}, 1);
      case 5: return K::concatenate({rows(x, 1, r), rows(x, 0, 1)}, 0);
      case 6: return K::dot(x, K::dot(K::transpose(y), x)) * (1.0 / (r * c));
      case 7: return K::reshape(K::transpose(x), {r, c});
      case 8: return x(1) * y;
      case 9: return columns(x, 2, 3) * y;
      case 10: return K::softmax(x);
      case 11: return K::sigmoid(x) * y;
      case 12: return K::square(x) * 0.5;
      case 13: return K::sum(x, 0) * y * (1.0 / r);
      case 14: return K::mean(x, 1, true) + y;
      case 15: return K::gather(x, K::concatenate({K::arange(r / 2), K::zeros({r / 2}, "int32")}, 0));
      case 16: return K::concatenate({columns(x, 0, c / 2) * columns(x, c / 2, c), columns(y, 0, c / 2)}, 1);
      case 17: return K::concatenate({rows(x, 0, r / 2) * rows(x, r / 2, r), rows(x, 0, r / 2) + rows(y, r / 2, r)}, 0);
      case 18: return K::foldl([](const Tensor& sum, const Tensor& e) { return K::tanh(sum + e); }, x, x(0)) + y;
      default: return K::concatenate({rows(x, 0, 1) * rows(x, 1, 2), rows(y, 1, r)}, 0);
    }
  }

  std::mt19937 random_;
  int rows_, columns_;
  std::string ops_;
};

void check_programs(unsigned from, unsigned to, int rows, int columns) {
  auto matrix = [&](unsigned seed) {
    return K::eval(K::random_uniform({rows, columns}, -0.8, 0.8, "float64", static_cast<int>(seed)));
  };
  for (unsigned seed = from; seed < to; ++seed) {
    const int order = 1 + static_cast<int>(seed % 3);
    const Tensor at_w = matrix(2 * seed + 1), at_v = matrix(2 * seed + 2);
    Program eagerly(seed, rows, columns), recorded(seed, rows, columns);
    const Tensors eager = eagerly.run(K::variable(at_w, "float64"), K::variable(at_v, "float64"), order);
    Tensor w = K::placeholder({rows, columns}, K::None, "float64"),
           v = K::placeholder({rows, columns}, K::None, "float64");
    const Tensors symbolic = recorded.run(w, v, order);
    INFO("program " << seed << ": " << eagerly.ops());
    REQUIRE(eager.size() == symbolic.size());
    Tensors wanted;
    for (std::int64_t i = 0; i < eager.size(); ++i) {
      CHECK(eager[i].defined() == symbolic[i].defined());
      if (symbolic[i].defined()) wanted.push_back(symbolic[i]);
    }
    const Tensors replayed = K::function({w, v}, wanted)({at_w, at_v});
    std::int64_t next = 0;
    for (std::int64_t i = 0; i < eager.size(); ++i)
      if (eager[i].defined() && symbolic[i].defined())
        check_close(values(eager[i]), values(replayed[next++]), 1e-9, 1e-9);
  }
}

}  // namespace

TEST_CASE("gradients of gradients of random programs are those of recorded passes", "[gradients][nested]") {
  check_programs(0, 400, 4, 6);
}

TEST_CASE("gradients of gradients of random programs of large matrices are those of recorded passes",
          "[gradients][nested]") {
  check_programs(400, 430, 64, 80);
}

TEST_CASE("a branch that is made of gradients of a loop's gradients has its own gradient", "[gradients][loops]") {
  // y = ((w x_1 + x_1) w + x_2) w + ... is a polynomial of w, elementwise: what a branch does with it a plain program
  // does as well.
  const std::vector<double> xs = numbers(6, 5), ws{0.3, -0.7};
  auto made_of_gradients = [](const Tensor& x, const Tensor& w) {
    Tensor y = K::foldl([&](const Tensor& a, const Tensor& e) { return a * w + e; }, x, w);
    Tensor g = K::gradients(K::sum(K::square(y)), {w})[0];
    return K::sum(K::sin(K::gradients(K::sum(K::square(g)), {w})[0]));
  };
  auto in_a_branch = [&](const Tensor& x, const Tensor& w) {
    return K::switch_(
        K::sum(K::abs(x)) > 0.0, [&] { return made_of_gradients(x, w); }, [&] { return K::sum(w); });
  };
  auto in_a_loop = [&](const Tensor& x, const Tensor& w) {
    return K::sum(K::map_fn([&](const Tensor& e) { return in_a_branch(x * e, w); }, K::sum(x, 1) * 0.0 + 1.0)) / 3.0;
  };
  const auto expected = differences(
      [&](const std::vector<double>& at) {
        return number(made_of_gradients(f64(xs, {3, 2}), var64(at, {2})));
      },
      ws);
  Tensor x = K::placeholder({3, 2}, K::None, "float64"), w = K::placeholder({2}, K::None, "float64");
  for (const Tensor& loss : {in_a_branch(x, w), in_a_loop(x, w)}) {
    auto f = K::function({x, w}, {K::gradients(loss, {w})[0]});
    check_close(values(f({f64(xs, {3, 2}), f64(ws, {2})})[0]), expected, 1e-6);
  }
}
