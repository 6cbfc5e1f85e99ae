// tests/nn_backend/state_test.cpp - updates, and reading and writing values.
#include <kassette/backend.h>

#include <cmath>
#include <vector>

#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;
using Vec = std::vector<double>;

namespace {

/// Runs f so that changes of variables are only recorded.
template <class F>
Tensor recorded(F f) {
  return K::symbolic(f)();
}

}  // namespace

TEST_CASE("an update sets, adds and subtracts, at once, and returns its variable", "[state]") {
  Tensor x = K::variable(K::ones({3, 4}));
  Vec step(12);
  for (std::size_t i = 0; i < 12; ++i) step[i] = static_cast<double>(i) - 5;
  Tensor array = K::constant(step, "float32", {3, 4});
  Tensor set = K::update(x, array);
  CHECK(K::is_variable(set));
  CHECK(values(x) == step);
  K::update_add(x, array);
  for (double& v : step) v *= 2;
  CHECK(values(x) == step);
  CHECK(values(K::update_sub(x, x)) == Vec(12, 0));
  CHECK(values(K::update(x, K::ones({3, 4}))) == Vec(12, 1));
  Tensor n = K::variable(5, "int16");
  CHECK(values(K::update_sub(n, 7)) == Vec{-2});
  Tensor flag = K::variable({true, false}, "bool");
  CHECK(values(K::update(flag, {false, true})) == Vec{0, 1});
}

TEST_CASE("a recorded update waits, repeats its effect and gives the new value", "[state]") {
  Tensor x = K::variable(K::ones({3, 4}));
  Tensor op = recorded([&] { return K::update_add(x, K::ones({3, 4})); });
  CHECK(op.symbolic());
  CHECK(K::int_shape(op) == Shape{3, 4});
  CHECK(values(x) == Vec(12, 1));
  CHECK(values(op) == Vec(12, 2));
  CHECK(values(op) == Vec(12, 3));
  CHECK(values(x) == Vec(12, 3));
  Tensor p = K::placeholder({3, 4});
  Tensor fed = K::update_sub(x, p);  // depends on a placeholder: waits in every scope
  CHECK(values(x) == Vec(12, 3));
  auto f = K::function({p}, {fed});
  CHECK(values(f({K::ones({3, 4})})[0]) == Vec(12, 2));
  CHECK(values(x) == Vec(12, 2));
}

TEST_CASE("a moving average takes momentum from the variable and the rest from the value", "[state]") {
  Tensor x = K::variable(1, "float64");
  CHECK(values(K::moving_average_update(x, 3, 0.9))[0] == Approx(1.2).epsilon(1e-12));
  Tensor y = K::variable({1, 2}, "float32");
  // Cast to the variable's dtype.
  K::moving_average_update(y, K::constant({3, 6}, "int32"), K::constant(0.5, "float64"));
  CHECK(values(y) == Vec{2, 4});
  CHECK(K::dtype(y) == "float32");
  Tensor p = K::placeholder({K::None}), m = K::placeholder({});
  auto f = K::function({p, m}, {K::moving_average_update(y, p, m)});
  CHECK(values(f({{4, 8}, 0.75})[0]) == Vec{2.5, 5});
  CHECK_THROWS_WITH(f({{4}, 0.75}),
                    "moving_average_update: the variable is (2,), the value (1,); shapes must be equal");
  CHECK(values(y) == Vec{2.5, 5});
  // As many elements in another shape are not enough, also where the rank is not known before.
  Tensor w = K::variable({{1, 2}, {3, 4}}), any = K::placeholder();
  auto g = K::function({any}, {K::moving_average_update(w, any, 0.5)});
  CHECK_THROWS_WITH(g({{1, 2, 3, 4}}),
                    "moving_average_update: the variable is (2, 2), the value (4,); shapes must be equal");
  CHECK(values(g({{{3, 2}, {1, 0}}})[0]) == Vec{2, 2, 2, 2});
}

TEST_CASE("updates refuse what is no variable, other shapes and other dtypes, and change nothing", "[state]") {
  Tensor x = K::variable({{1, 2, 3}, {4, 5, 6}}), p = K::placeholder({2, 3}), n = K::variable({1, 2}, "int32");
  CHECK_THROWS_WITH(K::update(p, p), "update: x is not a variable; make it with K::variable");
  CHECK_THROWS_WITH(K::update_add(K::constant(1), 1), "update_add: x is not a variable; make it with K::variable");
  CHECK_THROWS_WITH(K::update_sub(x * 1, x), "update_sub: x is not a variable; make it with K::variable");
  CHECK_THROWS_WITH(K::update(Tensor(), 1),
                    "update: x is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK_THROWS_WITH(K::update(x, Tensor()),
                    "update: new_x is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK_THROWS_WITH(K::update(x, 1), "update: the variable is (2, 3), the value (); shapes must be equal");
  CHECK_THROWS_WITH(K::update(K::variable({1, 2}, None, "w"), 1),
                    "update: the variable 'w' is (2,), the value (); shapes must be equal");
  CHECK_THROWS_WITH(K::update_add(x, {1, 2, 3}),
                    "update_add: the variable is (2, 3), the value (3,); shapes must be equal");
  CHECK_THROWS_WITH(K::update_sub(x, K::placeholder({K::None, 2})),
                    "update_sub: the variable is (2, 3), the value (None, 2); shapes must be equal");
  CHECK_THROWS_WITH(K::moving_average_update(x, {1, 2, 3}, 0.9),
                    "moving_average_update: the variable is (2, 3), the value (3,); shapes must be equal");
  CHECK_THROWS_WITH(K::moving_average_update(x, x, {0.9, 0.9, 0.9}),
                    "moving_average_update: momentum has shape (3,); it must be a number or a scalar");
  CHECK_THROWS_WITH(
      K::moving_average_update(x, Tensor(), 0.9),
      "moving_average_update: value is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK_THROWS_WITH(K::update(n, K::constant({1.0, 2.0})),
                    "update: the variable is int32, the value float32; cast it (K::cast)");
  CHECK_THROWS_AS(K::update(n, {1.5, 2}), TypeError);
  Tensor b = K::variable({true, false}, "bool");
  CHECK_THROWS_WITH(K::update_add(b, {true, true}), "update_add: x is bool, not a number; K::update sets it");
  CHECK_THROWS_WITH(K::update_sub(b, K::placeholder({2}, kassette::None, "bool")),
                    "update_sub: x is bool, not a number; K::update sets it");
  CHECK(values(b) == Vec{1, 0});
  CHECK(values(x) == Vec{1, 2, 3, 4, 5, 6});
  CHECK(values(n) == Vec{1, 2});
}

TEST_CASE("no gradient goes through an update", "[state]") {
  Tensor x = K::variable({1, 2}), y = K::variable({3, 4});
  Tensor op = recorded([&] { return K::update(x, K::square(y)); });
  CHECK_FALSE(K::gradients(K::sum(op), {y})[0].defined());
}

TEST_CASE("eval gives the value of whatever there is", "[state]") {
  Tensor v = K::variable({{1, 2}, {3, 4}}, "float32"), p = K::placeholder({2});
  CHECK(values(v + 1) == Vec{2, 3, 4, 5});
  CHECK_FALSE(K::is_variable(K::eval(v)));
  CHECK(K::eval(3).shape() == Shape{});
  CHECK(K::eval({1, 2}).dtype() == "float32");
  CHECK(K::eval(K::variable(2)).shape() == Shape{});  // a scalar's value has rank 0
  Tensor lazy = recorded([&] { return v * v; });
  CHECK(lazy.symbolic());
  CHECK(values(lazy) == Vec{1, 4, 9, 16});
  Tensor read = K::eval(v);
  K::set_value(v, {{0, 0}, {0, 0}});
  CHECK(values(read) == Vec{1, 2, 3, 4});  // what was read stays
  CHECK(values(lazy) == Vec(4, 0));
  CHECK_THROWS_WITH(K::eval(p * 2), "eval: the placeholder (2,) is not fed; list it among the inputs of a K::function");
  CHECK_THROWS_WITH(K::eval(Tensor()),
                    "eval: x is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK_THROWS_WITH(K::get_value(p),
                    "get_value: the placeholder (2,) is not fed; list it among the inputs of a K::function");
  CHECK_THROWS_WITH(
      K::batch_get_value({Tensor()}),
      "batch_get_value: op 0 is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
}

TEST_CASE("get_value takes any tensor, batch_get_value keeps the order", "[state]") {
  Tensor v = K::variable({{1, 2}, {3, 4}, {5, 6}, {7, 8}}), w = K::variable(9, "int64");
  CHECK(values(K::get_value(v)) == Vec{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(values(K::get_value(v * 2)) == Vec{2, 4, 6, 8, 10, 12, 14, 16});
  Tensors got = K::batch_get_value({w, v});
  REQUIRE(got.size() == 2);
  CHECK(got[0].dtype() == "int64");
  CHECK(values(got[0]) == Vec{9});
  CHECK(got[1].shape() == Shape{4, 2});
  CHECK(K::batch_get_value({}).empty());
}

TEST_CASE("set_value casts to the variable's dtype and needs its shape", "[state]") {
  Tensor v = K::variable({1, 2}), n = K::variable({1, 2}, "int32");
  K::set_value(v, K::constant({3, 4}, "int64"));
  CHECK(values(v) == Vec{3, 4});
  K::set_value(n, {1.5, -2.5});  // as a cast: truncated
  CHECK(values(n) == Vec{1, -2});
  K::set_value(n, K::constant({7.9, 1e30}, "float64"));
  CHECK(values(n) == Vec{7, 2147483647});
  CHECK_THROWS_WITH(K::set_value(v, 1), "set_value: the variable is (2,), the value (); shapes must be equal");
  CHECK_THROWS_WITH(K::set_value(v, {{1, 2}}),
                    "set_value: the variable is (2,), the value (1, 2); shapes must be equal");
  CHECK_THROWS_WITH(K::set_value(K::constant({1, 2}), {1, 2}),
                    "set_value: x is not a variable; make it with K::variable");
  CHECK_THROWS_AS(K::set_value(v, K::placeholder({2})), ValueError);
  CHECK_THROWS_WITH(K::set_value(v, Tensor()),
                    "set_value: value is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK(values(v) == Vec{3, 4});
  recorded([&] {
    K::set_value(v, {5, 6});  // at once in every scope
    return Tensor();
  });
  CHECK(values(v) == Vec{5, 6});
  Tensor none = K::variable(K::zeros({0, 3}));
  K::set_value(none, K::zeros({0, 3}));
  CHECK(K::eval(none).shape() == Shape{0, 3});
}

TEST_CASE("batch_set_value checks all pairs before it writes any", "[state]") {
  Tensor v = K::variable({1, 2}), w = K::variable(3);
  K::batch_set_value({{v, {5, 6}}, {w, 7}});
  CHECK(values(v) == Vec{5, 6});
  CHECK(values(w) == Vec{7});
  K::batch_set_value({});
  CHECK_THROWS_WITH(K::batch_set_value({{v, {0, 0}}, {w, {1, 2}}}),
                    "batch_set_value: pair 1 is refused: the variable is (), the value (2,); shapes must be equal");
  CHECK_THROWS_WITH(K::batch_set_value(Tensors{v, w}, Tensors{K::constant({0, 0})}),
                    "batch_set_value: 2 variables, 1 values; there must be one for each");
  CHECK(values(v) == Vec{5, 6});
  K::batch_set_value(Tensors{v, w}, K::batch_get_value({K::constant({8, 9}), K::constant(1)}));
  CHECK(values(v) == Vec{8, 9});
}

TEST_CASE("NaN, infinities and tensors of rank 8 go in and out of variables", "[state]") {
  Tensor v = K::variable({0, 0, 0});
  K::set_value(v, {std::nan(""), INFINITY, -0.0});
  Vec got = values(v);
  CHECK(std::isnan(got[0]));
  CHECK(got[1] == INFINITY);
  CHECK(std::signbit(got[2]));
  Tensor deep = K::variable(K::ones({1, 2, 1, 2, 1, 2, 1, 2}));
  CHECK(values(K::update_add(deep, deep)) == Vec(16, 2));
  CHECK(values(K::moving_average_update(deep, K::zeros_like(deep), 0.5)) == Vec(16, 1));
}
