// tests/nn_backend/first_use_test.cpp - whatever a process does first finds the configuration of keras.json loaded.
#include <kassette/backend.h>
#include <kassette/testing.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/catch.h"
#include "tests/io/folder.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

/// What a process may do first, and whether it saw floatx float64, epsilon 0.25 and channels_first.
struct First {
  const char* name;
  bool (*call)();
};
bool wide(const Tensor& x) { return x.dtype() == float64; }
const First kFirst[] = {
    {"a list of numbers", [] { return wide(Tensors{1.5, 2.5}[1]); }},
    {"a list of nested numbers", [] { return wide(Tensors{{1.5, 2.5}, {2, 3}}[0]); }},
    {"constant", [] { return wide(K::constant(1.5)); }},
    {"variable", [] { return wide(K::variable({1.5, 2.5})); }},
    {"placeholder", [] { return wide(K::placeholder({2})); }},
    {"zeros", [] { return wide(K::zeros({2})); }},
    {"ones", [] { return wide(K::ones({2})); }},
    {"eye", [] { return wide(K::eye(2)); }},
    {"random_uniform_variable", [] { return wide(K::random_uniform_variable({2}, 0, 1)); }},
    {"random_uniform", [] { return wide(K::random_uniform({2})); }},
    {"random_normal", [] { return wide(K::random_normal({2})); }},
    {"truncated_normal", [] { return wide(K::truncated_normal({2})); }},
    {"random_binomial", [] { return wide(K::random_binomial({2}, .5)); }},
    {"a number as an operand", [] { return wide(K::exp(1.5)); }},
    {"numbers as operands", [] { return wide(K::maximum({1.5, 2.5}, {2, 2})); }},
    {"sum of numbers", [] { return wide(K::sum({1.5, 2.5})); }},
    {"stack", [] { return wide(K::stack({1.5, 2.5})); }},
    {"sparse_coo", [] { return wide(K::sparse_coo({{0, 1}}, {1.5}, {2, 2})); }},
    {"cast_to_floatx", [] { return wide(K::cast_to_floatx({1, 2})); }},
    {"floatx", [] { return K::floatx() == float64; }},
    {"epsilon", [] { return K::epsilon() == 0.25; }},
    {"image_data_format", [] { return K::image_data_format() == "channels_first"; }},
    {"backend", [] { return K::backend() == "kassette"; }},
    {"an epsilon inside", [] { return testing::compare(K::binary_crossentropy({1.0}, {0.0}), {-std::log(.25)}, {.rtol = 1e-6}).ok; }},
    {"map_fn", [] { return wide(K::map_fn([](const Tensor& x) { return x; }, {{1.5, 2.5}})); }},
    {"foldl", [] { return wide(K::foldl([](const Tensor& a, const Tensor& x) { return a + x; }, {1.5, 2.5})); }},
};

}  // namespace

// Runs in a process of its own; the test below starts one for each.
TEST_CASE("the first call of a process", "[.first_use]") {
  const char* wish = std::getenv("KASSETTE_TEST_FIRST_USE");
  REQUIRE(wish);
  setenv("KERAS_HOME", std::getenv("KASSETTE_TEST_FIRST_HOME"), 1);
  CHECK(kFirst[std::atoi(wish)].call());
}

TEST_CASE("the first call of a process may be any, and finds keras.json read", "[config]") {
  Folder folder;
  std::ofstream(folder / "keras.json") << R"({"floatx": "float64", "epsilon": 0.25, "backend": "kassette", "image_data_format": "channels_first"})";
  std::string self = std::filesystem::read_symlink("/proc/self/exe").string(), home = std::filesystem::path(folder / "keras.json").parent_path().string();
  for (std::size_t i = 0; i < sizeof kFirst / sizeof *kFirst; ++i) {
    INFO(kFirst[i].name);
    pid_t child = fork();
    if (child == 0) {
      setenv("KASSETTE_TEST_FIRST_USE", std::to_string(i).c_str(), 1);
      setenv("KASSETTE_TEST_FIRST_HOME", home.c_str(), 1);
      dup2(open("/dev/null", O_WRONLY), 1);
      execl(self.c_str(), self.c_str(), "[.first_use]", static_cast<char*>(nullptr));
      _exit(2);
    }
    int status = 1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
}
