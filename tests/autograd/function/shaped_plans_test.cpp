// tests/autograd/function/shaped_plans_test.cpp - plans for known shapes are used from the second call on, and have the
// results of the first.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <future>
#include <initializer_list>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <kassette/backend.h>
#include <kassette/runtime.h>

#include "autograd/program/passes.h"
#include "autograd/program/specialise.h"
#include "autograd/function/plan.h"
#include "ops/engine/apply.h"
#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using kassette::Access;
using kassette::Function;
using kassette::Ref;
using kassette::Tensor;
using kassette::TensorDesc;
using kassette::Tensors;
using kassette::test::error_of;
using kassette::test::f64;
using kassette::test::numbers;
using kassette::test::printed;
using kassette::test::values;
using kassette::test::var64;
using namespace kassette::autograd;
using Numbers = std::vector<double>;

namespace {

Tensor filled(std::initializer_list<std::int64_t> shape, std::uint64_t seed) {
  const kassette::Shape of(shape);
  return f64(numbers(static_cast<std::size_t>(of.numel()), seed), of);
}

/// A placeholder of rank 2; with -1 rows, their number is unknown.
Tensor table(std::int64_t rows, std::int64_t columns) {
  const std::int64_t dims[] = {rows, columns};
  return K::placeholder(kassette::Shape(dims, 2), K::None, "float64");
}

std::vector<TensorDesc> shapes_of(const Tensors& args) {
  std::vector<TensorDesc> shapes;
  for (const Tensor& t : args) {
    TensorDesc& b = shapes.emplace_back();
    b.set(Access::desc(t));
    b.device = Access::desc(t).device;
  }
  return shapes;
}

std::vector<std::string> ops_of(const Program& p) {
  std::vector<std::string> names;
  for (const Instruction& s : p.instructions) names.push_back(s.op->name);
  return names;
}

/// A program as lines "op(operands)", with its outputs last. An operand is an input, a variable, the value of a
/// constant or the line of an instruction; of those whose shape alone is read there is no more than that.
std::vector<std::string> text_of(const Program& p) {
  std::map<int, std::string> names;
  auto number = [](const char* what, std::size_t i) { return what + std::to_string(i); };
  for (std::size_t i = 0; i < p.feeds.size(); ++i) names[p.feeds[i].slot] = number("input ", i);
  for (std::size_t i = 0; i < p.variables.size(); ++i) names[p.variables[i].slot] = number("variable ", i);
  for (const auto& [slot, body] : p.constants) names[slot] = printed(Access::wrap(TensorDesc(body)));
  std::vector<std::string> lines;
  for (const Instruction& s : p.instructions) {
    std::string line = s.op->name;
    for (int i = 0; i < s.n_in; ++i) line += (i ? ", " : "(") + (reads_shape(s, i) ? "a shape" : names[p.input(s, i)]);
    for (int k = 0; k < s.n_out; ++k) names[s.out + k] = number("line ", lines.size()) + (k ? number(".", k) : "");
    lines.push_back(line + ")");
  }
  for (int slot : p.outputs) lines.push_back(names[slot]);
  return lines;
}

struct Perceptron {
  Tensor w = var64(numbers(12, 1), {3, 4}), b = var64(numbers(4, 2), {4}), v = var64(numbers(8, 3), {4, 2});
  Tensor loss(const Tensor& x, const Tensor& y) const {
    return K::mean(K::square(K::dot(K::tanh(K::dot(x, w) + b), v) - y));
  }
  Tensors gradients(const Tensor& x, const Tensor& y) const { return K::gradients(loss(x, y), {w, b, v}); }
  Ref<Plan> plan(std::int64_t batch) const {
    ProgramRequest request;
    request.inputs = {table(batch, 3), table(batch, 2)};
    request.outputs = gradients(request.inputs[0], request.inputs[1]);
    return Plan::build(request);
  }
};

}  // namespace

TEST_CASE("a program for known shapes is that of a function that knew them", "[shaped_plans]") {
  const Perceptron net;
  const Ref<Plan> any = net.plan(-1), known = net.plan(5);
  const auto shapes = shapes_of({filled({5, 3}, 1), filled({5, 2}, 2)});
  const Program special = specialise(any->program(), shapes);
  const std::vector<std::string> lines = text_of(special);
  CHECK(lines == text_of(known->program()));
  CHECK(lines.front().rfind("unreduce", 0) == 0);  // not between the difference and its product with that
  CHECK(special.instructions.size() < any->program().instructions.size());
  CHECK(std::all_of(special.instructions.begin(), special.instructions.end(),
                    [](const Instruction& s) { return s.known; }));
}

TEST_CASE("a plan for shapes is there from the second call on, and the last four are kept", "[shaped_plans]") {
  const Ref<Plan> plan = Perceptron().plan(-1);
  ShapedPlans kept;
  auto find = [&](std::int64_t batch) {
    const Tensors args{filled({batch, 3}, 1), filled({batch, 2}, 2)};
    return kept.find(*plan, args);
  };
  CHECK_FALSE(find(2));
  const Ref<ShapedPlan> two = find(2);
  REQUIRE(two);
  CHECK(find(2) == two);
  for (std::int64_t batch : {3, 4, 5}) CHECK_FALSE(find(batch));
  CHECK(find(2) == two);
  for (std::int64_t batch : {6, 7, 8, 9}) CHECK_FALSE(find(batch));
  CHECK_FALSE(find(2));  // that plan went, and the next one waits for twice as many calls
  CHECK_FALSE(find(2));
  CHECK_FALSE(find(2));
  const Ref<ShapedPlan> again = find(2);
  CHECK(again);
  CHECK(find(2) == again);
}

namespace {

std::function<void()> in_the_rule;  // called by the next rule of kWatchedOp
const kassette::ops::OpDef kWatchedOp{.name = "watched",
                                      .rule =
                                          [](const kassette::ops::OpCall& call, kassette::TensorSpec* out) {
                                            out->set(call.spec(0));
                                            if (auto f = std::exchange(in_the_rule, nullptr)) f();
                                          },
                                      .cpu =
                                          [](const kassette::ops::OpCall& call) {
                                            std::memcpy(call.out[0]->data(), call.in[0].data,
                                                        std::size_t(call.out[0]->bytes()));
                                          }};

}  // namespace

TEST_CASE("while a plan for shapes is made, other threads call the function", "[shaped_plans]") {
  const Tensor x = K::placeholder({K::None}, K::None, "float64");
  const Function f = K::function({x}, {kassette::ops::apply1(kWatchedOp, {x * 2.0}) + 1.0});
  f({f64({1, 2}, {2})});
  bool ended = false;
  std::thread other;
  in_the_rule = [&] {  // the second call with these shapes makes the plan
    std::promise<void> done;
    std::future<void> waited = done.get_future();
    other = std::thread([&f, done = std::move(done)]() mutable {
      for (const Numbers& in : {Numbers{1, 2}, Numbers{3}}) f({f64(in, {static_cast<std::int64_t>(in.size())})});
      done.set_value();
    });
    ended = waited.wait_for(std::chrono::seconds(60)) == std::future_status::ready;
  };
  CHECK(values(f({f64({3, 4}, {2})})[0]) == Numbers{7, 9});
  other.join();
  CHECK(ended);
  for (int call = 0; call < 3; ++call) CHECK(values(f({f64({3, 4}, {2})})[0]) == Numbers{7, 9});
}

TEST_CASE("arguments of another dtype or an undefined one are other arguments", "[shaped_plans]") {
  const Ref<Plan> plan = Perceptron().plan(-1);
  ShapedPlans kept;
  auto find = [&](const Tensor& x) {
    const Tensors args{x, filled({2, 2}, 1)};
    return static_cast<bool>(kept.find(*plan, args));
  };
  const Tensor x = filled({2, 3}, 1);
  CHECK_FALSE(find(x));
  CHECK_FALSE(find(K::eval(K::cast(x, "float32"))));
  CHECK_FALSE(find(Tensor()));
  CHECK(find(x));
  CHECK(find(Tensor()));
}

TEST_CASE("a function gives the same bits at every call, for any shape", "[shaped_plans]") {
  const Perceptron net;
  const Tensor x = K::placeholder({K::None, 3}, K::None, "float64"),
               y = K::placeholder({K::None, 2}, K::None, "float64");
  const Function f = K::function({x, y}, net.gradients(x, y));
  for (int round = 0; round < 4; ++round)
    for (std::int64_t batch : {1, 2, 5, 1, 7, 64, 0, 5}) {
      const Tensors in{filled({batch, 3}, 4), filled({batch, 2}, 5)};
      const Tensors got = f(in), expected = net.gradients(in[0], in[1]);
      for (std::int64_t i = 0; i < got.size(); ++i) {
        const Numbers a = values(got[i]), b = values(expected[i]);
        CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end(),
                         [](double p, double q) { return p == q || (p != p && q != q); }));
      }
    }
}

TEST_CASE("a size that is a value is read at every call", "[shaped_plans]") {
  const Tensor x = K::placeholder({6}, K::None, "float64"), rows = K::placeholder({2}, K::None, "int64");
  const Tensor total = K::sum(K::square(K::reshape(x, rows)), 0);
  const Function f = K::function({x, rows}, {total, K::gradients(K::sum(total * total), {x})[0]});
  const Tensor in = f64({1, 2, 3, 4, 5, 6}, {6});
  for (int round = 0; round < 3; ++round) {
    CHECK(values(f({in, K::constant({2, 3}, "int64")})[0]) == Numbers{17, 29, 45});
    CHECK(values(f({in, K::constant({2, 3}, "int64")})[1]) ==
          Numbers{4 * 1 * 17, 4 * 2 * 29, 4 * 3 * 45, 4 * 4 * 17, 4 * 5 * 29, 4 * 6 * 45});
    CHECK(values(f({in, K::constant({3, 2}, "int64")})[0]) == Numbers{35, 56});
    CHECK(values(f({in, K::constant({1, 6}, "int64")})[0]) == Numbers{1, 4, 9, 16, 25, 36});
  }
}

TEST_CASE("what depends on data has its size at every call", "[shaped_plans]") {
  const Tensor x = K::placeholder({K::None}, K::None, "float64");
  const Tensor kept = K::to_dense(K::to_sparse(x)), n = K::sum(K::cast(K::greater(x, 0.0), "float64"));
  const Tensor drawn = K::random_uniform(K::shape(x), 0.0, 1.0, "float64", 7);
  const Function f = K::function({x}, {kept * 2.0 + n, drawn});
  for (int round = 0; round < 3; ++round) {
    CHECK(values(f({f64({1, 0, -2}, {3})})[0]) == Numbers{3, 1, -3});
    CHECK(values(f({f64({0, 0, 3}, {3})})[0]) == Numbers{1, 1, 7});
  }
}

TEST_CASE("draws follow one another whether shapes were known or not", "[shaped_plans]") {
  auto train = [](std::int64_t batch, int calls) {
    const Tensor x = table(batch, 4);
    const Tensor y = K::dropout(x, 0.5, K::None, 11);
    const Function f = K::function({x}, {y});
    std::vector<Numbers> all;
    for (int k = 0; k < calls; ++k) all.push_back(values(f({K::ones({3, 4}, "float64")})[0]));
    return all;
  };
  CHECK(train(-1, 5) == train(3, 5));
}

TEST_CASE("what is an alias in a function for one shape keeps its value when the variable changes", "[shaped_plans]") {
  const Tensor v = var64({1, 2, 3, 4, 5, 6}, {2, 3}), w = var64({6, 5, 4, 3, 2, 1}, {2, 3});
  const Tensor rows = K::placeholder({K::None, 3}, K::None, "float64");
  const Tensor before = K::reshape(v, {2, 3}), like = K::maximum(rows * 0.0, v);
  auto steps = K::symbolic([&] {
    return Tensors{K::update_add(v, K::reshape(w, {2, 3})), K::update(w, K::identity(before))};
  });
  const Function f = K::function({rows}, {before, K::identity(w), like}, steps());
  Numbers a{1, 2, 3, 4, 5, 6}, b{6, 5, 4, 3, 2, 1};
  std::vector<Tensors> held;
  std::vector<Numbers> expected;
  for (int k = 0; k < 5; ++k) {
    held.push_back(f({f64(Numbers(6, 0), {2, 3})}));
    expected.push_back(a);
    expected.push_back(b);
    for (std::size_t i = 0; i < 6; ++i) b[i] = std::exchange(a[i], a[i] + b[i]);
    CHECK(values(v) == a);
    CHECK(values(w) == b);
  }
  for (std::size_t k = 0; k < held.size(); ++k) {
    CHECK(values(held[k][0]) == expected[2 * k]);
    CHECK(values(held[k][1]) == expected[2 * k + 1]);
    CHECK(values(held[k][2]) == expected[2 * k]);
  }
}

TEST_CASE("a specialised function throws the same error at every call", "[shaped_plans]") {
  const Tensor x = K::placeholder({K::None, K::None}), y = K::placeholder({K::None, K::None});
  const Function f = K::function({x, y}, {K::dot(x, y)});
  const Tensors bad{K::ones({2, 3}), K::ones({4, 5})};
  for (int k = 0; k < 6; ++k)
    CHECK(error_of([&] { f(bad); }) == "dot: (2, 3) x (4, 5): inner dimensions differ, 3 against 4");
  CHECK(values(f({K::ones({2, 3}), K::ones({3, 1})})[0]) == Numbers{3, 3});
}

TEST_CASE("the learning phase is read at every call", "[shaped_plans]") {
  const Tensor x = K::placeholder({K::None, 2}, K::None, "float64");
  const Function f = K::function({x, K::learning_phase()}, {K::in_train_phase(x * 2.0, [&] { return x * 3.0; })});
  for (int k = 0; k < 3; ++k) {
    CHECK(values(f({f64({1, 2}, {1, 2}), K::constant(1, "int32")})[0]) == Numbers{2, 4});
    CHECK(values(f({f64({1, 2}, {1, 2}), K::constant(0, "int32")})[0]) == Numbers{3, 6});
    CHECK(values(f({f64({1, 2}, {1, 2}), Tensor()})[0]) == Numbers{3, 6});
  }
}

TEST_CASE("functions in functions and loops in them, over batches of any size", "[shaped_plans]") {
  const Tensor x = K::placeholder({K::None, 3}, K::None, "float64"), w = var64(numbers(9, 3), {3, 3});
  auto body = [&](const Tensor& in) {
    Tensor h = in;
    for (int i = 0; i < 40; ++i) h = K::tanh(K::dot(h, w) + h);  // large enough to be an instruction of its own
    return h;
  };
  const Function inner = K::function({x}, {body(x)});
  auto outer = [&](const Tensor& in, const Tensor& h) {
    return K::foldl([](const Tensor& a, const Tensor& e) { return a * 0.5 + K::sum(e * e); }, h * in,
                    K::constant(0.0, "float64"));
  };
  const Tensor y = K::placeholder({K::None, 3}, K::None, "float64"), value = outer(y, inner({y})[0]);
  const Function f = K::function({y}, {value, K::gradients(value, {w})[0]});
  for (int round = 0; round < 3; ++round)
    for (std::int64_t batch : {2, 4}) {
      const Tensor in = filled({batch, 3}, 8), expected = outer(in, body(in));
      const Tensors got = f({in});
      CHECK(values(got[0]) == values(expected));
      CHECK(values(got[1]) == values(K::gradients(expected, {w})[0]));
    }
}

TEST_CASE("threads call one function with shapes of their own", "[shaped_plans]") {
  const Perceptron net;
  const Tensor x = K::placeholder({K::None, 3}, K::None, "float64"),
               y = K::placeholder({K::None, 2}, K::None, "float64");
  const Function f = K::function({x, y}, net.gradients(x, y));
  std::vector<std::thread> threads;
  std::vector<char> same(6, 0);
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      const Tensors in{filled({1 + t, 3}, 6), filled({1 + t, 2}, 7)}, expected = net.gradients(in[0], in[1]);
      bool all = true;
      for (int k = 0; k < 40; ++k) {
        const Tensors got = f(in);
        for (std::int64_t i = 0; i < got.size(); ++i) all = all && values(got[i]) == values(expected[i]);
      }
      same[static_cast<std::size_t>(t)] = all;
    });
  for (std::thread& t : threads) t.join();
  for (char all : same) CHECK(all);
}

TEST_CASE("an update and what makes its increment are neighbours", "[shaped_plans]") {
  const Tensor v = var64({1, 2}, {2}), w = var64({3, 4, 5}, {3});
  ProgramRequest request;
  request.inputs = {K::placeholder({2}, K::None, "float64"), K::placeholder({3}, K::None, "float64")};
  request.update_ops = {K::update_sub(v, 0.5 * request.inputs[0]), K::update_add(w, 2.0 * request.inputs[1])};
  const Ref<Plan> plan = Plan::build(request);
  CHECK(ops_of(plan->program()) == std::vector<std::string>{"multiply", "subtract", "multiply", "add"});
  const Tensors in{f64({2, 4}, {2}), f64({1, 2, 3}, {3})};
  for (int k = 0; k < 3; ++k) plan->run(in);
  CHECK(values(v) == Numbers{-2, -4});
  CHECK(values(w) == Numbers{9, 16, 23});
}

TEST_CASE("a sum that is wider than the convolution before it keeps its shape", "[function][conv]") {
  Tensor x = K::placeholder({K::None, 2, 2, 1}, K::None, "float64");
  Tensor w = var64({2}, {1, 1, 1, 1}), wide = var64({1, 2, 3}, {3});
  Function f = K::function({x}, {K::relu(K::conv2d(x, w) + wide)});
  const Tensor fed = f64({1, -1, 2, 0.5}, {1, 2, 2, 1});
  for (int call = 0; call < 4; ++call) {
    const Tensor y = f({fed})[0];
    REQUIRE(y.shape() == kassette::Shape({1, 2, 2, 3}));
    CHECK(values(y) == Numbers{3, 4, 5, 0, 0, 1, 5, 6, 7, 2, 3, 4});
  }
}
