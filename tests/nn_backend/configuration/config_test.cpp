// tests/nn_backend/configuration/config_test.cpp - configuration values, names, the learning phase, and what runs
// eagerly or is symbolic.
#include <kassette/backend.h>

#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/settings.h"

using kassette::Tensor;
namespace K = kassette::backend;
using kassette::test::SettingsScope;

TEST_CASE("the backend is tensorflow", "[config]") { CHECK(K::backend() == "tensorflow"); }

TEST_CASE("epsilon is 1e-7 until it is set", "[config]") {
  SettingsScope restore;
  CHECK(K::epsilon() == 1e-7);
  K::set_epsilon(1e-3);
  CHECK(K::epsilon() == 1e-3);
}

TEST_CASE("floatx decides the dtype of what is made", "[config]") {
  CHECK(K::floatx() == "float32");
  SettingsScope restore;
  for (const char* name : {"float16", "float32", "float64"}) {
    K::set_floatx(std::string(name));
    CHECK(K::floatx() == std::string(name));
    CHECK(K::variable({10}).dtype() == std::string(name));
    CHECK(K::cast_to_floatx({1, 2}).dtype() == std::string(name));
  }
}

TEST_CASE("a bad floatx is a ValueError and changes nothing", "[config]") {
  CHECK_THROWS_AS(K::set_floatx(""), kassette::ValueError);
  CHECK_THROWS_AS(K::set_floatx(K::None), kassette::ValueError);
  CHECK_THROWS_WITH(K::set_floatx("beerfloat"),
                    "set_floatx: floatx is \"beerfloat\"; it must be \"float16\", \"float32\" or \"float64\"");
  CHECK(K::floatx() == "float32");
}

TEST_CASE("cast_to_floatx converts what it is given", "[config]") {
  Tensor x = K::constant({1, 2}, "int32");
  Tensor y = K::cast_to_floatx(x);
  CHECK(y.dtype() == kassette::float32);
  CHECK(std::vector<float>(y.to_vector<float>()) == std::vector<float>{1, 2});
  CHECK(K::cast_to_floatx(2.5).item<double>() == 2.5);
  CHECK_THROWS_WITH(K::cast_to_floatx(Tensor()),
                    "cast_to_floatx: x is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
}

TEST_CASE("the data format is one of two", "[config]") {
  SettingsScope restore;
  CHECK(K::image_data_format() == "channels_last");
  K::set_image_data_format("channels_first");
  CHECK(K::image_data_format() == "channels_first");
  CHECK(K::normalize_data_format() == "channels_first");
  CHECK(K::normalize_data_format("Channels_LAST") == "channels_last");
  CHECK_THROWS_WITH(
      K::set_image_data_format("Channels_last"),
      "set_image_data_format: data_format is \"Channels_last\"; it must be \"channels_last\" or \"channels_first\"");
  CHECK_THROWS_WITH(K::set_image_data_format("th"),
                    "set_image_data_format: data_format is \"th\"; it must be \"channels_last\" or \"channels_first\"");
  CHECK_THROWS_WITH(K::normalize_data_format("middle"),
                    "normalize_data_format: value is \"middle\"; it must be \"channels_last\" or \"channels_first\"");
  CHECK(K::image_data_format() == "channels_first");
}

TEST_CASE("uids count per prefix and start again", "[config]") {
  K::reset_uids();
  auto first = K::get_uid();
  CHECK(first == 1);
  CHECK(K::get_uid() == 2);
  CHECK(K::get_uid("dense") == 1);
  CHECK(K::get_uid("dense") == 2);
  K::reset_uids();
  CHECK(K::get_uid() == first);
  K::reset_uids();
}

TEST_CASE("uids are unique across threads", "[config]") {
  K::reset_uids();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 250; ++i) K::get_uid("t");
    });
  for (std::thread& t : threads) t.join();
  CHECK(K::get_uid("t") == 1001);
  K::reset_uids();
}

TEST_CASE("under manual initialisation a variable has no value until it is given one", "[config]") {
  SettingsScope restore;
  K::manual_variable_initialization(true);
  Tensor v = K::variable({1, 2}, "float32", "v"), z = K::zeros({2}), r = K::random_normal_variable({2}, 0, 1);
  Tensor c = K::constant({3, 4});
  K::manual_variable_initialization(false);
  CHECK(c.to_vector<float>()[0] == 3);
  for (const Tensor& t : {v, z, r}) {
    CHECK(K::is_variable(t));
    CHECK(t.shape() == kassette::Shape{2});
    CHECK_THROWS_AS(K::eval(t), kassette::RuntimeError);
    CHECK_THROWS_AS(K::get_value(t), kassette::RuntimeError);
    CHECK_THROWS_AS(t + 1, kassette::RuntimeError);
    CHECK_THROWS_AS(K::sum(t), kassette::RuntimeError);
    CHECK_THROWS_AS(t[0], kassette::RuntimeError);
    CHECK_THROWS_AS(K::reshape(t, {2, 1}), kassette::RuntimeError);
    CHECK_THROWS_AS(K::identity(t), kassette::RuntimeError);
    CHECK_THROWS_AS(K::update_add(t, {1, 1}), kassette::RuntimeError);
    CHECK_THROWS_AS(K::variable(t), kassette::RuntimeError);
  }
  CHECK_THROWS_WITH(v + 1, "add: the variable 'v' (2,) has no value yet; give it one with K::set_value");
  Tensor x = K::placeholder({2});
  auto f = K::function({x}, {x * v});
  auto g = K::function({}, {v});
  CHECK_THROWS_AS(f({c}), kassette::RuntimeError);
  CHECK_THROWS_AS(g(), kassette::RuntimeError);
  K::set_value(v, {5, 6});
  K::update(z, {7, 8});
  CHECK(f({c})[0].to_vector<float>()[1] == 24);
  CHECK(g()[0].to_vector<float>()[0] == 5);
  CHECK((v + z).to_vector<float>()[0] == 12);
  CHECK(K::variable({1, 2}).to_vector<float>()[1] == 2);
}

TEST_CASE("what has no value is refused in the name of the function, increments in a function too", "[config]") {
  SettingsScope restore;
  K::manual_variable_initialization(true);
  Tensor n = K::variable(2, "int32"), v = K::variable({1, 2}), truth = K::variable(true, "bool");
  K::manual_variable_initialization(false);
  const std::string none = ": the variable () has no value yet; give it one with K::set_value";
  Tensor x = K::constant({1, 2});
  CHECK_THROWS_WITH(K::zeros({n, 2}), "zeros" + none);
  CHECK_THROWS_WITH(K::reshape(x, {n, 1}), "reshape" + none);
  CHECK_THROWS_WITH(n.item<int>(), "item" + none);
  CHECK_THROWS_WITH(K::switch_(n, 1.0, 2.0), "switch_" + none);
  CHECK_THROWS_WITH(K::switch_(
                        n, [&] { return x; }, [&] { return x + 1; }),
                    "switch_" + none);
  CHECK_THROWS_WITH(K::switch_(
                        truth, [&] { return x; }, [&] { return x + 1; }),
                    "switch_" + none);
  CHECK_THROWS_WITH(K::in_train_phase(x, x, n), "in_train_phase" + none);
  CHECK_THROWS_WITH(K::moving_average_update(K::variable({1, 2}), v, 0.9),
                    "moving_average_update: the variable (2,) has no value yet; give it one with K::set_value");
  const Tensor target = K::variable(x);
  CHECK_THROWS_WITH(K::update(target, v),
                    "update: new_x is refused: the variable (2,) has no value yet; give it one with K::set_value");
  CHECK_THROWS_WITH(K::update_add(target, v), Catch::Contains("update_add: increment is refused: the variable (2,)"));
  CHECK_THROWS_WITH(K::update_sub(target, v), Catch::Contains("update_sub: decrement is refused: the variable (2,)"));
  CHECK(target.to_vector<float>()[1] == 2);
  Tensor add = K::symbolic([&] { return K::update_add(n, 1); })(), add_v = K::symbolic([&] {
                                                                     return K::update_add(v, {1, 1});
                                                                   })();
  auto f = K::function({}, {x}, {add}), g = K::function({}, {x}, {{n, 5}, add}), h = K::function({}, {x}, {add_v});
  CHECK_THROWS_WITH(f(), "update_add" + none);
  CHECK_THROWS_AS(h(), kassette::RuntimeError);
  g();
  CHECK(n.item<int>() == 6);
  f();
  CHECK(n.item<int>() == 7);
}

TEST_CASE("clear_session forgets uids and the phase, and old values stay readable", "[config]") {
  Tensor v = K::variable({1, 2}), y = v * 2;
  SettingsScope restore;
  K::get_uid("a");
  K::set_learning_phase(true);
  CHECK(K::learning_phase().item<int>() == 1);
  K::clear_session();
  CHECK(K::get_uid("a") == 1);
  CHECK(K::learning_phase().symbolic());
  CHECK(y.to_vector<float>()[1] == 4);
  CHECK(K::get_value(v).to_vector<float>()[1] == 2);
  K::reset_uids();
}

TEST_CASE("a learning phase that is set may be an input of a function, and what is fed for it does not count",
          "[config]") {
  SettingsScope restore;
  Tensor p = K::placeholder({2});
  for (int phase : {1, 0}) {
    K::set_learning_phase(phase);
    auto f = K::function({p, K::learning_phase()}, {K::in_train_phase(p * 2, p)});
    CHECK(f({K::constant({1, 2}), 1 - phase})[0].to_vector<float>()[1] == (phase ? 4 : 2));
  }
}

TEST_CASE("name scopes nest, and end with an exception too", "[config]") {
  auto name = [](const Tensor& t) {
    std::ostringstream os;
    os << t;
    return os.str().substr(0, os.str().find(','));
  };
  CHECK(name(K::placeholder({2}, K::None, K::None, false, "x")) == "Tensor(\"x\"");
  try {
    auto outer = K::name_scope("outer");
    CHECK(name(K::placeholder({2}, K::None, K::None, false, "x")) == "Tensor(\"outer/x\"");
    auto inner = K::name_scope("inner");
    CHECK(name(K::placeholder({2}, K::None, K::None, false, "x")) == "Tensor(\"outer/inner/x\"");
    CHECK(name(K::placeholder({2})) == "Tensor(shape=(2");
    {
      auto none = K::name_scope(K::None);  // names begin anew
      CHECK(name(K::placeholder({2}, K::None, K::None, false, "x")) == "Tensor(\"x\"");
      auto anew = K::name_scope("anew");
      CHECK(name(K::placeholder({2}, K::None, K::None, false, "x")) == "Tensor(\"anew/x\"");
    }
    CHECK(name(K::placeholder({2}, K::None, K::None, false, "x")) == "Tensor(\"outer/inner/x\"");
    throw 1;
  } catch (int) {
  }
  CHECK(name(K::placeholder({2}, K::None, K::None, false, "x")) == "Tensor(\"x\"");
  CHECK_THROWS_WITH(K::name_scope(""), "name_scope: name is empty; it must have at least one character");
}

TEST_CASE("symbolic and eager wrap callables of any signature, nest, and end with an exception too", "[config]") {
  auto symbolic_here = [] { return (K::variable(1.0) + 1).symbolic(); };
  CHECK_FALSE(symbolic_here());
  CHECK(K::symbolic(symbolic_here)());
  CHECK_FALSE(K::symbolic(K::eager(symbolic_here))());
  CHECK(K::eager(K::symbolic(symbolic_here))());
  auto thrower = K::symbolic([](int i, const std::string&) -> int { throw i; });
  CHECK_THROWS_AS(thrower(1, "x"), int);
  CHECK_FALSE(symbolic_here());
  auto counter = K::eager([n = 0](int& by) mutable { return n += by; });
  int two = 2;
  CHECK(counter(two) == 2);
  CHECK(counter(two) == 4);
  CHECK(K::get_variable_shape(K::variable({{1, 2}})) == kassette::Shape{1, 2});
}
