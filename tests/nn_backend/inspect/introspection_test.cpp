// tests/nn_backend/inspect/introspection_test.cpp - asking tensors what they are.
#include <kassette/backend.h>

#include <cmath>
#include <vector>

#include "tests/catch.h"
#include "tests/results.h"
#include "tests/settings.h"

namespace K = kassette::backend;
using namespace kassette;

TEST_CASE("numbers are read as another dtype by the rules of cast", "[introspection]") {
  const std::vector<double> given{NAN, 1e30, -1e30, 2.7, -2.7, 0};
  auto as = [&](auto null) {
    using T = decltype(null);
    return std::vector<T>(K::constant(given, "float64").to_vector<T>());
  };
  CHECK(as(std::int32_t()) == std::vector<std::int32_t>{0, 2147483647, -2147483647 - 1, 2, -2, 0});
  CHECK(as(std::uint8_t()) == std::vector<std::uint8_t>{0, 255, 0, 2, 0, 0});
  CHECK(K::constant(NAN).item<std::int64_t>() == 0);
  CHECK(K::constant(NAN).item<bool>());
  CHECK(K::constant(1e300, "float64").item<float>() == INFINITY);
}

TEST_CASE("cast truncates, saturates and keeps; NaN is 0, or true", "[introspection]") {
  auto as = [](std::initializer_list<Operand> list, const char* from, const char* to) {
    return std::vector<double>(
        K::cast(K::constant(Operand(list), std::string(from)), std::string(to)).to_vector<double>());
  };
  using Vec = std::vector<double>;
  CHECK(as({-2.7, 2.7, 1e30, -1e30, INFINITY, NAN}, "float32", "int32") ==
        Vec{-2, 2, 2147483647, -2147483648.0, 2147483647, 0});
  CHECK(as({-1, 256.7, 3, NAN}, "float64", "uint8") == Vec{0, 255, 3, 0});
  CHECK(as({NAN, 0, -0.0, 0.1}, "float32", "bool") == Vec{1, 0, 0, 1});
  CHECK(as({true, false}, "bool", "float16") == Vec{1, 0});
  CHECK(as({300, -1}, "int32", "uint8") == Vec{44, 255});  // integers wrap
  CHECK(as({70000, 1.0009765625}, "float64", "float16") == Vec{INFINITY, 1.0009765625});
  CHECK(K::cast(K::zeros({0, 3}), "int8").shape() == Shape{0, 3});
  CHECK(K::int_shape(K::cast(K::placeholder({K::None, 3}), "bool")) == Shape{-1, 3});
  Tensor v = K::variable({1, 2});
  CHECK_FALSE(K::is_variable(K::cast(v, "float64")));
  CHECK(K::dtype(v) == "float32");  // not in place
  CHECK_THROWS_WITH(K::cast(v, None), "cast: dtype is None");
  CHECK_THROWS_WITH(K::cast(Tensor(), "bool"),
                    "cast: x is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
}

TEST_CASE("a variable of (4, 2) has its value, 8 elements and its shape", "[introspection]") {
  Tensor v = K::variable(K::ones({4, 2}));
  CHECK(std::vector<double>(K::get_value(v).to_vector<double>()) == std::vector<double>(8, 1));
  CHECK(K::count_params(v) == 8);
  CHECK(K::int_shape(v) == Shape{4, 2});
  CHECK(K::count_params(K::zeros({0, 3})) == 0);
  CHECK(K::count_params(K::variable(1)) == 1);
}

TEST_CASE("what is unknown is None", "[introspection]") {
  Tensor any = K::placeholder(), rows = K::placeholder({K::None, 3});
  CHECK(K::int_shape(any) == None);
  CHECK(K::int_shape(rows) != None);
  CHECK(K::ndim(any) == None);
  CHECK(K::ndim(rows) == 2);
  CHECK(K::ndim(3.0) == 0);
  CHECK(K::int_shape(rows)[0] == None);
  CHECK_THROWS_AS(std::int64_t(K::int_shape(rows)[0]), ValueError);
  CHECK_THROWS_WITH(K::count_params(any), "count_params: x of shape (...) has an unknown size; use K::size(x)");
  CHECK_THROWS_WITH(K::int_shape(Tensor()),
                    "int_shape: x is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK_THROWS_WITH(K::ndim(Tensor()),
                    "ndim: x is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK_THROWS_WITH(K::dtype(Tensor()),
                    "dtype: x is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK_THROWS_AS(K::shape(Tensor()), ValueError);
  CHECK_THROWS_AS(K::size(Tensor()), ValueError);
}

TEST_CASE("predicates answer for what is no tensor", "[introspection]") {
  for (const Operand& x : {Operand(1), Operand(1.5), Operand(true), Operand(None), Operand(std::vector<float>())}) {
    CHECK_FALSE(K::is_variable(x));
    CHECK_FALSE(K::is_placeholder(x));
    CHECK_FALSE(K::is_tensor(x));
    CHECK_THROWS_AS(K::is_keras_tensor(x), ValueError);
  }
  CHECK_FALSE(K::is_placeholder(K::placeholder({2}) * 1));
  CHECK_FALSE(K::is_placeholder(K::learning_phase()));
  CHECK_FALSE(K::is_variable(K::variable(1) * 1));
  CHECK_FALSE(K::is_variable(K::identity(K::variable(1))));
  CHECK(K::is_tensor(K::placeholder({2})));
  CHECK_THROWS_WITH(K::is_keras_tensor(1.5), "is_keras_tensor: x is 1.5; it must be a tensor");
  CHECK_THROWS_WITH(K::is_keras_tensor(None), "is_keras_tensor: x is None; it must be a tensor");
}

TEST_CASE("tensors know what they are", "[introspection]") {
  Tensor v = K::variable({{1, 2}, {3, 4}, {5, 6}, {7, 8}}), p = K::placeholder({K::None, 2}), c = K::constant({1, 2});
  CHECK(K::is_variable(v));
  CHECK_FALSE(K::is_variable(p));
  CHECK_FALSE(K::is_variable(1));
  CHECK(K::is_placeholder(p));
  CHECK_FALSE(K::is_placeholder(v));
  CHECK_FALSE(K::is_placeholder({1, 2}));
  CHECK(K::is_tensor(c));
  CHECK_FALSE(K::is_tensor({1, 2}));
  CHECK_FALSE(K::is_tensor(Tensor()));
  CHECK_FALSE(K::is_keras_tensor(v));
  CHECK_FALSE(K::is_keras_tensor(p));
  CHECK_THROWS_WITH(K::is_keras_tensor({1, 2}), "is_keras_tensor: x is a list; it must be a tensor");
  CHECK(K::count_params(v) == 8);
  CHECK(K::count_params(3.0) == 1);
  CHECK(K::int_shape(v) == Shape{4, 2});
  CHECK(K::int_shape({{1, 2, 3}, {4, 5, 6}}) == Shape{2, 3});
  CHECK(K::ndim(p) == 2);
  CHECK(K::dtype(v) == float32);
  CHECK_THROWS_WITH(K::count_params(p), "count_params: x of shape (None, 2) has an unknown size; use K::size(x)");
}

TEST_CASE("cast, round and clip of a variable that they leave as it is return its current value", "[introspection]") {
  Tensor v = K::variable({1, 2}), n = K::variable({1, 2}, "int32");
  Tensors same{K::cast(v, "float32"), K::cast_to_floatx(v), K::cast(n, "int32"), K::round(n), K::clip(n, None, None)};
  K::update(v, {5, 6});
  K::update_add(n, {4, 4});
  for (const Tensor& t : same) {
    CHECK_FALSE(K::is_variable(t));
    CHECK(test::values(t) == std::vector<double>{1, 2});
  }
  Tensor c = K::cast(v, "float32");
  CHECK(test::values(K::gradients(K::sum(c * c), {v})[0]) == std::vector<double>{10, 12});
  auto f = K::function({}, {K::cast(v, "float32") * 1.0});  // on the tape it is a read of the variable
  K::update(v, {7, 8});
  CHECK(test::values(f()[0]) == std::vector<double>{7, 8});
}

TEST_CASE("an id is that of all copies of a tensor, and of no other", "[introspection]") {
  Tensor a = K::constant({1, 2}), b = a, c = K::constant({1, 2});
  CHECK(a.id() == b.id());
  CHECK(a.id() != c.id());
  CHECK(Tensor().id() == 0);
  std::vector<Tensor> list{a, c};
  CHECK(list[0].id() == a.id());
}

TEST_CASE("name_of gives back the names of variables and placeholders, with their scopes", "[introspection]") {
  CHECK(name_of(K::variable(1, K::None, "w")) == "w");
  auto outer = K::name_scope("encoder");
  CHECK(name_of(K::variable(1, K::None, "w")) == "encoder/w");
  CHECK(name_of(K::placeholder({2}, K::None, K::None, false, "x")) == "encoder/x");
  CHECK(name_of(K::placeholder({2, 3}, K::None, K::None, true, "s")) == "encoder/s");
  CHECK(name_of(K::variable(1)).empty());
  CHECK(name_of(K::constant(1) + 1).empty());
  CHECK_THROWS_WITH(name_of(Tensor()),
                    "name_of: x is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
}

TEST_CASE("depends_on sees through ops, loops, branches and functions", "[introspection]") {
  Tensor x = K::placeholder({K::None, 3, 2}), h = K::placeholder({K::None, 2}), w = K::variable({{1, 0}, {0, 1}}),
         other = K::variable(1);
  Tensor y = K::dot(x, w);
  CHECK(depends_on(y, x));
  CHECK(depends_on(y, w));
  CHECK(depends_on(y, y));
  CHECK_FALSE(depends_on(y, other));
  CHECK_FALSE(depends_on(x, y));
  CHECK(depends_on(K::stop_gradient(y), x));  // no gradient, but the value
  CHECK_FALSE(depends_on(K::constant(1), x));
  CHECK_FALSE(depends_on(y, K::constant(1)));
  // What only the step of a loop reads.
  Tensor scale = K::placeholder({});
  auto looped = K::rnn(
      [&](const Tensor& x_t, const Tensors& states) {
        return K::Step{x_t * scale + states[0], {states[0]}};
      },
      {x}, {h});
  CHECK(depends_on(looped.outputs, scale));
  CHECK(depends_on(looped.outputs, h));
  CHECK_FALSE(depends_on(looped.outputs, w));
  Tensor chosen = K::switch_(
      K::placeholder({}, K::None, "bool"), [&] { return w * 2; }, [&] { return w * scale; });
  CHECK(depends_on(chosen, scale));
  auto f = K::function({h, scale}, {h * scale});
  CHECK(depends_on(f({h + 1, scale})[0], scale));
  CHECK(depends_on(K::to_dense(K::placeholder({2, 2}, K::None, K::None, true)) * scale, scale));
  CHECK_THROWS_WITH(depends_on(y, Tensor()),
                    "depends_on: x is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
}

TEST_CASE("depends_on the learning phase, where it is a symbol and where it is frozen", "[introspection]") {
  Tensor x = K::placeholder({2});
  Tensor y = K::in_train_phase([&] { return x * 2; }, x);
  CHECK(depends_on(K::exp(y), K::learning_phase()));
  CHECK_FALSE(depends_on(K::exp(x), K::learning_phase()));
  Tensor sequence = K::placeholder({2, 3, 4}), h = K::placeholder({2, 4});
  auto r = K::rnn(
      [](const Tensor& x_t, const Tensors& s) {
        return K::Step{K::in_train_phase(x_t * 2, x_t), {s[0] + x_t}};
      },
      {sequence}, {h});
  CHECK(depends_on(r.last_output, K::learning_phase()));
  CHECK_FALSE(depends_on(r.new_states[0], x));
}

TEST_CASE("gradients depend on the learning phase that their loss depends on, also where two are one tensor",
          "[introspection]") {
  const test::SettingsScope restore;
  K::set_learning_phase(1);
  const Tensor scale = K::cast(K::learning_phase(), "float64"), a = K::variable({1, 2}, "float64"),
               b = K::variable({3, 4}, "float64");
  for (const Tensor& g : K::gradients(K::sum((a + b) * scale), {a, b})) {
    CHECK(depends_on(g, K::learning_phase()));
    CHECK(test::values(g) == std::vector<double>{1, 1});
  }
  for (const Tensor& g : K::gradients(K::sum(a + b), {a, b})) CHECK_FALSE(depends_on(g, K::learning_phase()));
}

TEST_CASE("depends_on the learning phase through functions, short and long", "[introspection][nested]") {
  Tensor x = K::placeholder({2}), phase = K::learning_phase();
  for (int length : {1, 200}) {  // a long function is called as one node
    INFO(length);
    Tensor y = K::in_train_phase(x * 2, x), plain = x;
    for (int i = 0; i < length; ++i) {
      y = y + 1;
      plain = plain + 1;
    }
    Tensor p = K::placeholder({2});
    Tensors z = K::function({x}, {y, plain})({p});
    CHECK(depends_on(z[0], phase));
    CHECK_FALSE(depends_on(z[1], phase));
    CHECK(depends_on(K::function({p}, {z[0]})({K::placeholder({2})})[0], phase));
    // The phase is an input: what is given for it counts.
    auto fed = K::function({x, phase}, {y});
    CHECK_FALSE(depends_on(fed({p, 1})[0], phase));
    CHECK(depends_on(fed({p, phase})[0], phase));
    CHECK(K::function({p, phase}, {z[0]})({K::constant({1, 2}), 1})[0].to_vector<float>()[1] == 4.f + length);
    CHECK(K::function({p, phase}, {z[0]})({K::constant({1, 2}), 0})[0].to_vector<float>()[1] == 2.f + length);
  }
}

TEST_CASE("an operand is a list made at run time, of numbers, lists and tensors", "[introspection]") {
  Tensor four = K::constant(4);
  std::vector<Operand> row{1, 2.5, four}, other{7, 8, 9}, rows{row, other};
  CHECK(K::eval(rows).to_vector<double>()[2] == 4);
  CHECK(K::constant(std::vector<Operand>{1, 2, 3}, "int32").shape() == Shape({3}));
  CHECK(K::eval(K::constant(1.0) + rows).shape() == Shape({2, 3}));
  CHECK(K::constant(std::vector<Operand>{}).shape() == Shape({0}));
}
