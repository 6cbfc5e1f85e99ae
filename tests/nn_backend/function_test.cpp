// tests/nn_backend/function_test.cpp - function, gradients and stop_gradient as K functions.
// How they work is tested in autograd/tape/tape_test.
#include <kassette/backend.h>

#include <cmath>
#include <vector>

#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;
using Vec = std::vector<double>;

TEST_CASE("a function computes its outputs from the old values and then applies its updates", "[function]") {
  Tensor x = K::variable({{1, 2}, {3, 4}}), y = K::placeholder(None, 2);
  auto f = K::function({y}, {K::square(x) + y}, {{x, K::identity(x) * 2}});
  Tensor ones = K::ones({2, 2});
  CHECK(values(f({ones})[0]) == Vec{2, 5, 10, 17});
  CHECK(values(x) == Vec{2, 4, 6, 8});
  CHECK(values(f({ones})[0]) == Vec{5, 17, 37, 65});
  CHECK(values(x) == Vec{4, 8, 12, 16});
}

TEST_CASE("inputs and outputs may be lists, one tensor, or nothing", "[function]") {
  Tensor p = K::placeholder({2}), v = K::variable({1, 2});
  CHECK(K::function(p, p * 2)({{1, 2}}).size() == 1);
  Tensors out = K::function({p}, {p, v, K::constant(3), p + v})({{5, 6}});
  REQUIRE(out.size() == 4);
  CHECK(values(out[0]) == Vec{5, 6});
  CHECK(values(out[1]) == Vec{1, 2});
  CHECK(values(out[2]) == Vec{3});
  CHECK(values(out[3]) == Vec{6, 8});
  for (const Tensor& t : out) CHECK_FALSE(K::is_variable(t));
  CHECK(values(K::function({}, {v * 3})({})[0]) == Vec{3, 6});
  CHECK(values(K::function({}, {v * 3})()[0]) == Vec{3, 6});
  CHECK(K::function({p}, {}, {{v, p}})({{7, 8}}).empty());
  CHECK(values(v) == Vec{7, 8});
}

TEST_CASE("what is fed is cast to the placeholder's dtype: floats are truncated", "[function]") {
  Tensor n = K::placeholder({K::None}, None, "int32"), b = K::placeholder({}, None, "bool"),
         x = K::placeholder({2}, None, "float64");
  auto f = K::function({n, b, x}, {n, b, x});
  Tensors o = f({{1.9, -1.9, 1e12, NAN}, 2, {true, false}});
  CHECK(values(o[0]) == Vec{1, -1, 2147483647, 0});
  CHECK(o[0].dtype() == "int32");
  CHECK(values(o[1]) == Vec{1});
  CHECK(values(o[2]) == Vec{1, 0});
  CHECK(o[2].dtype() == "float64");
  o = f({std::vector<double>{2.5}, 0, std::vector<float>{0.5f, 1.5f}});
  CHECK(values(o[0]) == Vec{2});
  CHECK(values(o[2]) == Vec{0.5, 1.5});
  o = f({K::constant({3.99}, "float16"), K::constant(NAN), K::constant({1, 2}, "uint8")});
  CHECK(values(o[0]) == Vec{3});
  CHECK(values(o[1]) == Vec{1});  // NaN is not zero
}

TEST_CASE("rank and every known size of what is fed must match", "[function]") {
  Tensor p = K::placeholder({K::None, 3}, None, None, false, "rows"), any = K::placeholder(),
         scalar = K::placeholder({});
  auto f = K::function({p}, {K::sum(p)});
  CHECK_THROWS_WITH(f({{1, 2, 3}}), "function: input 0 'rows' is (3,), declared (None, 3)");
  CHECK_THROWS_WITH(f({{{1, 2}}}), "function: input 0 'rows' is (1, 2), declared (None, 3)");
  CHECK(number(f({K::zeros({0, 3})})[0]) == 0);
  CHECK_THROWS_WITH(K::function({scalar}, {scalar})({{1}}), "function: input 0 is (1,), declared ()");
  auto g = K::function({any}, {K::shape(any), any});
  CHECK(values(g({5})[0]).empty());
  CHECK(values(g({{{1, 2}}})[0]) == Vec{1, 2});
  CHECK(values(g({K::zeros({1, 1, 2, 1, 1, 1, 1, 3})})[0]) == Vec{1, 1, 2, 1, 1, 1, 1, 3});
}

TEST_CASE("a missing feed is a ValueError at the call, None stands for a default", "[function]") {
  Tensor p = K::placeholder({2}), q = K::placeholder({2});
  CHECK_THROWS_WITH(K::function({p}, {p + q})({{1, 2}}),
                    "function: the placeholder (2,) is not fed; list it among the inputs of a K::function");
  CHECK_THROWS_WITH(K::function({p}, {p})({None}),
                    "function: input 0 is an empty Tensor, and the placeholder (2,) has no default");
  CHECK_THROWS_WITH(K::function({p, q}, {p})({{1, 2}}), "function: 1 value for 2 inputs");
  CHECK_THROWS_WITH(K::function({p}, {p})({{1, 2}, 3}),
                    "function: 2 values for 1 input; a list is one value in braces of its own, as in f({{1, 2}})");
  auto f = K::function({p, K::learning_phase()}, {p * K::cast(K::learning_phase(), "float32")});
  CHECK(values(f({{1, 2}, None})[0]) == Vec{0, 0});  // test is the default
  CHECK(values(f({{1, 2}, 1})[0]) == Vec{1, 2});
  CHECK(values(f({{1, 2}, true})[0]) == Vec{1, 2});
  Tensor v = K::variable({1, 2});
  CHECK(values(K::function({v}, {v * 2})({None})[0]) == Vec{2, 4});
  CHECK(values(K::function({p, q}, {p})({{1, 2}, {0, 0}})[0]) == Vec{1, 2});  // an input that nobody needs
}

TEST_CASE("what function refuses, it refuses in one line", "[function]") {
  Tensor p = K::placeholder({2}), v = K::variable({1, 2});
  CHECK_THROWS_WITH(
      K::function({K::constant(1)}, {p}),
      "function: input 0 of shape () is a constant; inputs are placeholders or other tensors on the tape");
  CHECK_THROWS_WITH(K::function({p, p}, {p}), "function: input 1 of shape (2,) is given twice");
  CHECK_THROWS_WITH(K::function({Tensor()}, {p}),
                    "function: input 0 is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK_THROWS_AS(K::function({p}, {Tensor()}), ValueError);
  CHECK_THROWS_WITH(K::function({p}, {p}, K::FunctionOptions{.fetches = {v, Tensor()}}),
                    "function: fetches hold an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK_THROWS_WITH(
      K::function({p}, {p}, {{v, Tensor()}}),
      "function: updates hold a pair whose value is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK_THROWS_WITH(K::function({p}, {p}, {{K::constant(1), p}}),
                    "function: update 0 does not begin with a variable; make it with K::variable");
  CHECK_THROWS_WITH(K::function({p}, {p}, {p * 2}),
                    "function: update 0 of shape (2,) is not an update op; pass {variable, new_value}");
  CHECK_THROWS_WITH(K::function({p}, {p}, {{v, p}, {v, K::placeholder({3})}}),
                    "function: update 1 is refused: the variable is (2,), the value (3,); shapes must be equal");
  CHECK_THROWS_WITH(K::function({p}, {p}, {{v, K::placeholder({2}, None, "int32")}}),
                    "function: update 0 is refused: the variable is float32, the value int32; cast it (K::cast)");
  CHECK_THROWS_WITH(K::function({p}, {p}, {{v, K::placeholder({2, 2}, None, None, true)}}),
                    "function: update 0 is refused: the tensor (2, 2) is sparse; densify it first: K::to_dense(x)");
  CHECK_THROWS_WITH(
      K::function({p}, {p}, {v}),
      "function: update 0 already ran when it was made; pass {variable, new_value}, or make it inside K::symbolic "
      "or from something that depends on a placeholder");
}

TEST_CASE("updates read the values at entry; increments add up and the last pair wins", "[function]") {
  Tensor x = K::variable(10), y = K::variable(1), p = K::placeholder({});
  auto f = K::function({p}, {x + y}, {K::update_add(x, p), K::update_add(x, p), {y, x}});
  CHECK(number(f({5})[0]) == 11);
  CHECK(number(x) == 20);
  CHECK(number(y) == 10);
  auto g = K::function({}, Tensors(), {{x, 1}, {x, 2}});
  g({});
  CHECK(number(x) == 2);
}

TEST_CASE("an update among the outputs is applied and gives the new value", "[function]") {
  Tensor x = K::variable({1, 2}), p = K::placeholder({2});
  auto f = K::function({p}, {K::update_add(x, p)});
  CHECK(values(f({{1, 1}})[0]) == Vec{2, 3});
  CHECK(values(f({{1, 1}})[0]) == Vec{3, 4});
  CHECK(values(x) == Vec{3, 4});
}

TEST_CASE("a draw has one value within a call, whoever uses it", "[function]") {
  Tensor p = K::placeholder({}), u = K::random_uniform({50});
  auto f = K::function({p}, {u, (u + p) * 2});
  Tensors a = f({1}), b = f({1});
  Vec first = values(a[0]), second = values(a[1]);
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(second[i] == Approx(2 * first[i] + 2));
  CHECK(values(b[0]) != first);
}

TEST_CASE("fetches are computed and not returned, updates among them are applied", "[function]") {
  Tensor a = K::placeholder({}), b = K::placeholder({}), x = K::variable(0), y = K::variable(0);
  Tensor fetched = K::symbolic([&] { return K::update(y, 5); })();
  auto f = K::function({a, b}, {a + b}, K::FunctionOptions{.updates = {{x, a + 1}}, .fetches = {fetched}});
  Tensors out = f({10, 20});
  REQUIRE(out.size() == 1);
  CHECK(number(out[0]) == 30);
  CHECK(number(x) == 11);
  CHECK(number(y) == 5);
}

TEST_CASE("feed_dict stands for placeholders that are no inputs, a variable in it is read at each call", "[function]") {
  Tensor x = K::variable(0), y = K::variable(0), a = K::placeholder({}), b = K::placeholder({}), given = K::variable(3);
  auto f = K::function({a}, {a + b}, K::FunctionOptions{.updates = {{x, a}, {y, b}}, .feed_dict = {{b, given}}});
  CHECK(number(f({8})[0]) == 11);
  K::set_value(given, 4);
  CHECK(number(f({17})[0]) == 21);
  CHECK(number(x) == 17);
  CHECK(number(y) == 4);
  auto fixed = K::function({a}, {a + b}, K::FunctionOptions{.feed_dict = {{b, K::constant(2, "int32")}}});
  CHECK(number(fixed({1})[0]) == 3);
  CHECK_THROWS_WITH(K::function({a}, {a + b}, K::FunctionOptions{.feed_dict = {{b, {1, 2}}}}),
                    "function: feed_dict gives (2,), declared ()");
  CHECK_THROWS_WITH(K::function({a}, {a + b}, K::FunctionOptions{.feed_dict = {{b, K::variable(1, "int32")}}}),
                    "function: feed_dict gives a variable of int32, declared float32");
  CHECK_THROWS_WITH(K::function({a}, {a + b}, K::FunctionOptions{.feed_dict = {{K::constant(1), 1}}}),
                    "function: feed_dict has a constant as a key; keys are placeholders");
  CHECK_THROWS_WITH(
      K::function({a}, {a + b}, K::FunctionOptions{.feed_dict = {{Tensor(), 1}}}),
      "function: feed_dict has a key that is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
}

TEST_CASE("a symbolic argument connects a function to the tape", "[function]") {
  Tensor p = K::placeholder({2}), q = K::placeholder({2}), v = K::variable({1, 2});
  auto f = K::function({p}, {p * v});
  Tensor y = f({q * 10})[0];
  CHECK(y.symbolic());
  CHECK(values(K::function({q}, {y})({{1, 2}})[0]) == Vec{10, 40});
  CHECK(values(K::function({q}, {K::gradients(K::sum(y), {v})[0]})({{1, 2}})[0]) == Vec{10, 20});
  auto g = K::function({p}, {p}, {{v, p}});
  CHECK_THROWS_WITH(g({q}),
                    "function: a symbolic argument connects the function to the tape, but it has updates; feed values");
}

TEST_CASE("a function prints how many inputs and outputs it has; an empty one cannot be called", "[function]") {
  Function f;
  CHECK(printed(f) == "Function()");
  CHECK(printed(K::function({K::placeholder({})}, {K::constant(1), K::constant(2)})) == "Function(1 input, 2 outputs)");
  CHECK_FALSE(f.defined());
  CHECK_THROWS_WITH(f({1}), "function: an empty Function (an uninitialised variable?)");
}

// ---- gradients and stop_gradient ------------------------------------------------------------------------------------

TEST_CASE("the gradient for an intermediate tensor is the same with a stopped loss added", "[gradients]") {
  Tensor x = K::placeholder({4, 2}, None, "float64");
  Tensor e = x * K::exp(x), loss = K::sum(e), blocked = loss + K::stop_gradient(loss);
  auto f = K::function({x}, {K::gradients(loss, {e})[0], K::gradients(blocked, {e})[0], K::gradients(blocked, {x})[0]});
  Vec in{0.1, -0.2, 0.3, -0.4, 0.5, -0.1, 0.2, -0.3};
  Tensors g = f({K::constant(in, "float64", {4, 2})});
  CHECK(values(g[0]) == Vec(8, 1));
  CHECK(values(g[1]) == Vec(8, 1));
  Vec dx = values(g[2]);
  for (std::size_t i = 0; i < 8; ++i) CHECK(dx[i] == Approx((1 + in[i]) * std::exp(in[i])));
}

TEST_CASE("a loss that is no scalar stands for the sum of its elements", "[gradients]") {
  Tensor x = K::variable({1, 2, 3}), b = K::variable(2);
  Tensors g = K::gradients(K::square(x) * b, {x, b});
  CHECK(values(g[0]) == Vec{4, 8, 12});
  CHECK(values(g[1]) == Vec{14});
  CHECK(g[1].shape() == Shape{});
  CHECK(K::gradients(x * x, x).size() == 1);  // one tensor in place of the list: still a list
  CHECK(values(K::gradients(x, {x})[0]) == Vec{1, 1, 1});
}

TEST_CASE("entries that the loss does not reach are None, each in its place", "[gradients]") {
  Tensor x = K::variable({1.5, -2.5}), y = K::variable({1, 2}), n = K::variable({0, 1}, "int32");
  Tensors g = K::gradients(K::sum(x * K::stop_gradient(y)), {y, x, n});
  REQUIRE(g.size() == 3);
  CHECK_FALSE(g[0].defined());
  CHECK(values(g[1]) == Vec{1, 2});
  CHECK_FALSE(g[2].defined());
  // Section 3: these cut the path.
  for (const Tensor& loss : {K::round(x), K::cast(K::argmax(x), "float32"), K::cast(K::greater(x, y), "float32"),
                             K::cast(K::shape(x), "float32"), K::cast(K::size(x), "float32"), K::zeros_like(x),
                             K::ones_like(x), K::cast(K::cast(x, "int32"), "float32")})
    CHECK_FALSE(K::gradients(K::sum(loss), {x})[0].defined());
  CHECK(values(K::gradients(K::sum(K::sign(x)), {x})[0]) == Vec{0, 0});
}

TEST_CASE("a cast between floats passes the gradient on in the dtype of its input", "[gradients]") {
  Tensor x = K::variable({1, 2}, "float32");
  Tensor g = K::gradients(K::sum(K::square(K::cast(x, "float64"))), {x})[0];
  CHECK(g.dtype() == "float32");
  CHECK(values(g) == Vec{2, 4});
  Tensor h = K::gradients(K::sum(K::cast(x, "float16")), {x})[0];
  CHECK(h.dtype() == "float32");
}

TEST_CASE("gradients refuses constants and empty tensors", "[gradients]") {
  Tensor x = K::variable({1, 2});
  CHECK_THROWS_WITH(
      K::gradients(x * x, {K::constant({1, 2})}),
      "gradients: variable 0 of shape (2,) was not recorded (it is a constant); make it a K::variable or a K::placeholder");
  CHECK_THROWS_AS(K::gradients(Tensor(), {x}), ValueError);
  CHECK_THROWS_AS(K::gradients(x, {Tensor()}), ValueError);
  CHECK(K::gradients(x, {}).empty());
}

TEST_CASE("stop_gradient takes one tensor or a list and keeps values, shapes and order", "[gradients]") {
  Tensor a = K::variable({1, 2}), b = K::placeholder({K::None, 3}), n = K::variable({true, false}, "bool");
  Tensors list = K::stop_gradient({a, b, n});
  REQUIRE(list.size() == 3);
  CHECK(values(list[0]) == Vec{1, 2});
  CHECK(K::int_shape(list[1]) == Shape{-1, 3});
  CHECK(list[2].dtype() == "bool");
  CHECK(values(K::stop_gradient(a)) == Vec{1, 2});
  CHECK_FALSE(K::gradients(K::sum(K::stop_gradient(a)), {a})[0].defined());
  CHECK(K::stop_gradient(Tensors()).empty());
  CHECK_THROWS_AS(K::stop_gradient(Tensor()), ValueError);
}

// ---- phases and scopes ----------------------------------------------------------------------------------------------

TEST_CASE("in_train_phase and in_test_phase take a host phase and any shapes, and run one branch", "[phase]") {
  Tensor x = K::constant(1, None, {3, 3}), alt = K::constant(2, None, {2, 2});
  int train_runs = 0, test_runs = 0;
  auto train = [&] { return ++train_runs, x; };
  auto test = [&] { return ++test_runs, alt; };
  for (const Operand& on : {Operand(true), Operand(1)}) {
    CHECK(K::in_train_phase(train, test, on).shape() == Shape{3, 3});
    CHECK(K::in_test_phase(train, test, on).shape() == Shape{2, 2});
  }
  CHECK(train_runs == 2);
  CHECK(test_runs == 2);
  CHECK(K::in_train_phase(x, alt, 0).shape() == Shape{2, 2});
  CHECK(K::in_test_phase(x, alt, false).shape() == Shape{3, 3});
  CHECK(values(K::in_test_phase(x, x * 2)) == values(x));  // unset is test
  Tensor phase = K::learning_phase(), y = K::in_test_phase(K::constant({1, 2}), K::constant({3, 4}), phase);
  auto f = K::function({phase}, {y});
  CHECK(values(f({0})[0]) == Vec{1, 2});
  CHECK(values(f({1})[0]) == Vec{3, 4});
}

TEST_CASE("K::eager runs at once inside K::symbolic, and the scope comes back when it throws", "[phase]") {
  Tensor v = K::variable(1);
  auto add = [&] { return K::update_add(v, 1); };
  Tensor waiting = K::symbolic([&] {
    K::eager(add)();
    CHECK(number(v) == 2);
    CHECK_THROWS_AS(K::eager([&] { return K::update(v, {1, 2}); })(), ValueError);
    CHECK_THROWS_AS(K::eager(K::symbolic([&] { return K::update(v, {1, 2}); }))(), ValueError);
    return add();
  })();
  CHECK(waiting.symbolic());
  CHECK(number(v) == 2);
  CHECK(number(waiting) == 3);
  CHECK_FALSE((v + 1).symbolic());
}
