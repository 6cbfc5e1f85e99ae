// tests/nn_backend/corners_test.cpp - corner cases of the K functions in which mutants survived (tests/mutation), each
// checked by its definition.
#include <kassette/backend.h>
#include <kassette/testing.h>

#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "core/context.h"
#include "core/log.h"
#include "devices/plugin.h"
#include "nn_backend/configuration/settings.h"
#include "tests/catch.h"
#include "tests/environment.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;
using Vec = std::vector<double>;

TEST_CASE("KERAS_HOME may name the home of a user, and stays as it is where there is no such user", "[settings]") {
  passwd* user = getpwuid(getuid());
  REQUIRE(user);
  Environment other("HOME", "/nowhere");
  {
    Environment named("KERAS_HOME", (std::string("~") + user->pw_name + "/k").c_str());
    CHECK(K::detail::keras_directory() == std::string(user->pw_dir) + "/k");
  }
  Environment nobody("KERAS_HOME", "~no-such-user/k");
  CHECK(K::detail::keras_directory() == "~no-such-user/k");
}

TEST_CASE("the log names the backend in use in the words of Keras, and says which names run on the built-in backend",
          "[external]") {
  const auto said_of = [](const char* name) {
    int pipes[2];
    REQUIRE(pipe(pipes) == 0);
    pid_t child = fork();
    if (child == 0) {
      dup2(pipes[1], 2);
      set_log_level(LogLevel::info);
      ::setenv("KERAS_BACKEND", name, 1);
      try {
        K::reload();
      } catch (const Error&) {
      }
      _exit(0);
    }
    close(pipes[1]);
    std::string said(4096, '\0');
    std::size_t n = 0;
    for (ssize_t got; n < said.size() && (got = read(pipes[0], &said[n], said.size() - n)) > 0;)
      n += static_cast<std::size_t>(got);
    close(pipes[0]);
    waitpid(child, nullptr, 0);
    said.resize(n);
    return said;
  };
  CHECK_THAT(said_of("tensorflow"),
             Catch::Contains("Using TensorFlow backend.") && !Catch::Contains("built-in backend"));
  CHECK_THAT(said_of("kassette"), Catch::Contains("Using kassette backend.") && !Catch::Contains("built-in backend"));
  CHECK_THAT(said_of("theano"), Catch::Contains("Using Theano backend.") &&
                                    Catch::Contains("backend 'theano' runs on the built-in backend"));
  CHECK_THAT(said_of("kassette.keras"), Catch::Contains("Using kassette backend.") && !Catch::Contains("runs on"));
  CHECK_THAT(said_of("cntk"),
             Catch::Contains("Using CNTK backend") && Catch::Contains("backend 'cntk' runs on the built-in backend"));
}

TEST_CASE("a list of updates holds its tensors as long as it lives, and no longer") {
  Tensor v = K::variable({1, 2});
  auto before = totals();
  {
    K::Updates updates;
    for (int i = 0; i < 9; ++i) updates.push_back({v, v + i});
    K::Updates copy = updates;
    K::function({}, {v * 2}, updates);
    K::function({}, {v * 2}, copy)(Tensors{});
  }
  K::set_value(v, {1, 2});
  auto after = totals();
  CHECK(after.live_tensors == before.live_tensors);
  CHECK(after.live_nodes == before.live_nodes);
}

TEST_CASE("integer bounds that are tensors are checked before a seed is taken, symbolic ones when they have values",
          "[random]") {
  Tensor low = K::constant(2, int64), high = K::constant(5, int64), p = K::placeholder(Shape{}, None, int64);
  CHECK_THROWS_WITH(K::random_uniform({3}, high, low, int64), Catch::Contains("minval 5 is not below maxval 2"));
  CHECK_THROWS_WITH(K::random_uniform({3}, 5, low, int64), Catch::Contains("minval 5 is not below maxval 2"));
  Tensor drawn = K::random_uniform({200}, p, high, int64, 4);
  auto f = K::function({p}, {drawn});
  Tensor got = f({low})[0];
  CHECK(number(K::min(got)) == 2);
  CHECK(number(K::max(got)) == 4);
  CHECK(number(K::min(K::random_uniform({200}, low, 4, int64, 1))) == 2);
  CHECK(number(K::max(K::random_uniform({200}, low, 4, int64, 1))) == 3);
  CHECK_THROWS_WITH(K::random_uniform({100, 2}, K::constant({0, 10}, int64), 12, int64, 2),
                    Catch::Contains("integer bounds must be scalars"));
}

TEST_CASE("a variable whose value is a part of another tensor is that part, in every op and function") {
  Tensor x = K::constant({{1, 2}, {3, 4}, {5, 6}}), v = K::variable({0, 0});
  Tensor twice = v * 2;
  auto f = K::function({}, {v * 2, K::sum(v)});
  Tensor p = K::placeholder({2});
  auto g = K::function({p}, {p * v, K::concatenate({p, v}, 0)});
  K::update(v, x(1));
  CHECK(values(v) == Vec{3, 4});
  CHECK(values(v * 2) == Vec{6, 8});
  CHECK(values(twice) == Vec{0, 0});
  CHECK(values(f(Tensors{})[0]) == Vec{6, 8});
  CHECK(values(f(Tensors{})[1]) == Vec{7});
  CHECK(values(g({x(2)})[0]) == Vec{15, 24});
  CHECK(values(g({x(2)})[1]) == Vec{5, 6, 3, 4});
  CHECK(values(K::gradients(K::sum(K::square(v)), {v})[0]) == Vec{6, 8});
  CHECK(values(K::foldl([&](const Tensor& sum, const Tensor& e) { return sum + e * v; }, x, K::zeros({2}))) ==
        Vec{27, 48});
  K::set_value(v, x(2));
  CHECK(values(v + v) == Vec{10, 12});
  K::update_add(v, x(1));
  CHECK(values(v) == Vec{8, 10});
  CHECK(values(x) == Vec{1, 2, 3, 4, 5, 6});
}

TEST_CASE("a symbolic input of a function has the dtype that was declared, or is refused by its place", "[function]") {
  Tensor p = K::placeholder({2}), q = K::placeholder(Shape{2}, None, float32, false, "slope"),
         wrong = K::placeholder(Shape{2}, None, int32);
  auto f = K::function({p, q}, {p + q});
  CHECK(error_of<TypeError>([&] {
          f({q, wrong});
        }) == "function: input 1 'slope' is int32, declared float32; cast it (K::cast)");
  CHECK(values(f({K::constant({1, 2}, int32), K::constant({3, 4}, float64)})[0]) == Vec{4, 6});
}

TEST_CASE("operands of eight axes that stretch each other give what their flat rows give") {
  // (2, 1, 1, 1, 1, 1, 1, 3) and (1, 1, 1, 1, 1, 1, 2, 3), and a third for the ops of three operands.
  Tensor a = K::constant({1, 2, 3, 4, 5, 6}, float64, {2, 1, 1, 1, 1, 1, 1, 3}),
         b = K::constant({10, 20, 30, 40, 50, 60}, float64, {1, 1, 1, 1, 1, 1, 2, 3});
  Tensor c = K::constant({0, 1, 1}, float64, {1, 1, 1, 1, 1, 1, 1, 3});
  Tensor sum = a + b;
  CHECK(sum.shape() == Shape{2, 1, 1, 1, 1, 1, 2, 3});
  CHECK(values(sum) == Vec{11, 22, 33, 41, 52, 63, 14, 25, 36, 44, 55, 66});
  CHECK(values(b - a) == Vec{9, 18, 27, 39, 48, 57, 6, 15, 24, 36, 45, 54});
  CHECK(values(K::switch_(K::greater(c, 0.5), a + 0 * b, b + 0 * a)) == Vec{10, 2, 3, 40, 2, 3, 10, 5, 6, 40, 5, 6});
  CHECK(values(a * c + b) == Vec{10, 22, 33, 40, 52, 63, 10, 25, 36, 40, 55, 66});
}

TEST_CASE("where the library of a device is missing, the message says which file", "[devices]") {
  if (std::getenv("KASSETTE_TEST_CUDA")) return;
  const char* why = device_absent(Device("cuda:0"));
  if (!why || !std::strstr(why, "libkassette_cuda.so")) return;  // there is one, or a GPU
  CHECK(std::string(why) == "there is no libkassette_cuda.so beside the library");
}

TEST_CASE("functions and variables refuse what is empty or sparse in their own words") {
  Tensor x = K::placeholder({2}), y = x * 2, v = K::variable({1, 2});
  CHECK(error_of<ValueError>([&] { K::function({x}, {Tensor()}, K::FunctionOptions{.fetches = {y}}); }) ==
        "function: outputs hold an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK(error_of<ValueError>([&] { K::function({x}, {y}, K::FunctionOptions{.fetches = {Tensor()}}); }) ==
        "function: fetches hold an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK(
      error_of<ValueError>([&] {
        K::function({}, {y}, K::FunctionOptions{.feed_dict = {{Tensor(), v}}});
      }) ==
      "function: feed_dict has a key that is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK(
      error_of<ValueError>([&] { K::function({}, {y}, K::FunctionOptions{.feed_dict = {x}}); }) ==
      "function: feed_dict has a value that is an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  Tensor sparse = K::to_sparse(K::constant({1, 2}));
  CHECK(error_of<TypeError>([&] { K::update(v, sparse); }).find("update: ") == 0);
  CHECK(error_of<TypeError>([&] { K::update_add(v, sparse); }).find("update_add: ") == 0);
  CHECK(error_of<TypeError>([&] { K::update_sub(v, sparse); }).find("update_sub: ") == 0);
}
