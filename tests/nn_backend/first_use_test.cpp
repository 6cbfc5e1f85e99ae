// tests/nn_backend/first_use_test.cpp - whatever a program calls first, the settings of keras.json are in effect.
#include <kassette/backend.h>
#include <kassette/inspect.h>
#include <kassette/dlpack.h>
#include <kassette/io.h>
#include <kassette/repl.h>
#include <kassette/runtime.h>
#include <kassette/testing.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/environment.h"
#include "tests/io/folder.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

constexpr const char* kSettings =
    R"({"floatx": "float64", "epsilon": 0.25, "backend": "tensorflow", "image_data_format": "channels_first"})";
constexpr float kMemory[] = {1, 2, 3};

/// Memory of the program's own is a tensor without any setting.
Tensor made() { return from_memory(kMemory, "float32", {3}); }
bool is64(const Tensor& x) { return x.dtype() == float64; }
template <class F>
bool throws(F&& f) {
  try {
    f();
  } catch (const Error&) {
    return true;
  }
  return false;
}

/// What may be the first call of a program; each runs in a process of its own.
struct FirstUse {
  const char* name;
  bool (*use)(const std::string& folder);
};
// clang-format off
const FirstUse kFirstUses[] = {
    {"a list of tensors", [](const std::string&) { Tensors list{1.5, 2.5}; return is64(list[0]) && is64(list[1]) && list[1].item<double>() == 2.5; }},
    {"a constant", [](const std::string&) { return is64(K::constant(1.5)); }},
    {"a list", [](const std::string&) { return is64(K::constant({1, 2})); }},
    {"a container", [](const std::string&) { return is64(K::constant(std::vector<float>{1, 2})); }},
    {"a nested container", [](const std::string&) { return is64(K::constant(std::vector<std::vector<float>>{{1, 2}})); }},
    {"a variable", [](const std::string&) { return is64(K::variable({1, 2})); }},
    {"a placeholder", [](const std::string&) { return is64(K::placeholder({K::None})); }},
    {"zeros", [](const std::string&) { return is64(K::zeros({2})); }},
    {"zeros of unknown size", [](const std::string&) { return is64(K::zeros(K::shape(K::placeholder({K::None})))); }},
    {"eye", [](const std::string&) { return is64(K::eye(2)); }},
    {"ones_like", [](const std::string&) { return is64(K::ones_like(made())); }},
    {"random_normal", [](const std::string&) { return is64(K::random_normal({2})); }},
    {"random_binomial", [](const std::string&) { return is64(K::random_binomial({2}, 0.5)); }},
    {"random_uniform_variable", [](const std::string&) { return is64(K::random_uniform_variable({2}, 0, 1)); }},
    {"a sum of operands", [](const std::string&) { const Operand a = 1, b = 2; return is64(a + b) && is64(-a); }},
    {"a comparison of numbers", [](const std::string&) { return K::equal(0.1, 0.1).item<bool>() && K::cast(0.1, "float64").item<double>() == 0.1; }},
    {"a reduction of numbers", [](const std::string&) { return is64(K::sum({1.5, 2})); }},
    {"a mean of bools", [](const std::string&) { const bool b[] = {true, false}; return is64(K::mean(from_memory(b, "bool", {2}))); }},
    {"cast_to_floatx", [](const std::string&) { return is64(K::cast_to_floatx(made())); }},
    {"one_hot", [](const std::string&) { const int i = 1; return K::one_hot(from_memory(&i, "int32", {1}), 2).defined(); }},
    {"a tensor and a number", [](const std::string&) { return (made() + 0.5).dtype() == float32; }},
    {"an index", [](const std::string&) { return made()[1].item<float>() == 2; }},
    {"floatx", [](const std::string&) { return K::floatx() == float64; }},
    {"epsilon", [](const std::string&) { return K::epsilon() == 0.25; }},
    {"epsilon in a loss", [](const std::string&) { Tensor no = made() * 0; return std::fabs(K::mean(K::binary_crossentropy(no + 1, no)).item<double>() - std::log(4)) < 1e-6; }},
    {"image_data_format", [](const std::string&) { return K::image_data_format() == "channels_first" && K::normalize_data_format(K::None) == "channels_first"; }},
    {"set_floatx", [](const std::string&) { K::set_floatx("float16"); return K::constant(1).dtype() == float16 && K::epsilon() == 0.25; }},
    {"set_epsilon", [](const std::string&) { K::set_epsilon(0.5); return K::epsilon() == 0.5 && is64(K::constant(1)); }},
    {"the name of the backend", [](const std::string&) { return K::backend() == "tensorflow" && is64(K::constant(1)); }},
    {"the learning phase", [](const std::string&) { return K::learning_phase().defined() && is64(K::constant(1)); }},
    {"clear_session", [](const std::string&) { K::clear_session(); return is64(K::constant(1)); }},
    {"in_train_phase", [](const std::string&) { return is64(K::in_train_phase([] { return K::zeros({2}); }, 1.5)); }},
    {"switch_ over numbers", [](const std::string&) { return is64(K::switch_(true, 1, 2)); }},
    {"a scope of names", [](const std::string&) { auto scope = K::name_scope("a"); return is64(K::variable(1)); }},
    {"a scope of a device", [](const std::string&) { DeviceScope scope("cpu"); return is64(K::constant(1.5)) && is64(Tensors{1.5}[0]); }},
    {"a scope without gradients", [](const std::string&) { auto scope = K::no_gradient(); return is64(K::variable(1)); }},
    {"a function", [](const std::string&) {
       auto f = K::function([](const Tensors& in) { return Tensors{in[0] * 2}; }, {1.5});
       return is64(f({2.5})[0]);
     }},
    {"a symbolic function", [](const std::string&) { return is64(K::eval(K::symbolic([] { return K::zeros({2}) + 1; })())); }},
    {"map_fn", [](const std::string&) { return is64(K::map_fn([](const Tensor& x) { return x * 2; }, Tensors{K::constant({1, 2})})); }},
    {"dropout", [](const std::string&) { return K::dropout(made(), 0.5).dtype() == float32 && is64(K::constant(1)); }},
    {"a sparse tensor", [](const std::string&) { return is64(K::sparse_coo({0, 1}, {1.5, 2.5}, {2})); }},
    {"printing a tensor", [](const std::string&) { return printed(made()) == "[1. 2. 3.] (3,) float32 cpu" && is64(K::constant(1)); }},
    {"printing a list", [](const std::string&) { return printed(Tensors{1.5}).find("float64") != std::string::npos; }},
    {"print_tensor", [](const std::string&) { return is64(K::print_tensor(1.5)); }},
    {"set_value", [](const std::string&) { Tensor v = K::variable(made()); K::set_value(v, {2.5, 0, 0}); return is64(v) && v[0].item<double>() == 2.5; }},
    {"a comparison of the tests", [](const std::string&) { return testing::compare(0.1, 0.1, {.rtol = 0, .atol = 0}) && is64(K::constant(1)); }},
    {"a random tensor of the tests", [](const std::string&) { testing::Random r(1); return is64(r.uniform({2})) && is64(K::constant(1)); }},
    {"gradcheck", [](const std::string&) { return bool(testing::gradcheck([](const Tensors& x) { return K::square(x[0]); }, {1.5})); }},
    {"a golden file", [](const std::string& folder) {
       testing::expect_golden("first", made(), {.folder = folder});
       return is64(K::constant(1));
     }},
    {"writing and reading a file", [](const std::string& folder) {
       save_npy(folder + "/first.npy", made());
       return load_npy(folder + "/first.npy").dtype() == float32 && is64(K::constant(1));
     }},
    {"named tensors", [](const std::string&) { NamedTensors named{{"a", K::constant(1)}}; return is64(named["a"]); }},
    {"a description", [](const std::string&) { return describe(0.1).dtype == float64 && describe(0.1).max == 0.1; }},
    {"a plot", [](const std::string&) { return plot({1, 2, 4}).text().size() > 0 && is64(K::constant(1)); }},
    {"timeit", [](const std::string&) { return timeit([] { return K::constant(1); }, {.runs = 1, .loops = 1}).runs == 1 && is64(K::constant(1)); }},
    {"a prompt's value", [](const std::string&) { std::ostringstream os; repl::show(Tensors{1.5}, &os); return os.str().find("float64") != std::string::npos; }},
    {"the tape's size", [](const std::string&) { return live_nodes() == 0 && saved_bytes() == 0 && is64(K::constant(1)); }},
    {"memory and threads", [](const std::string&) { return num_threads() >= 1 && memory_stats().limit == 0 && is64(K::constant(1)); }},
    {"an error", [](const std::string&) { return throws([] { K::zeros({2}, "float"); }) && is64(K::constant(1)); }},
    {"another library's tensor", [](const std::string&) { return from_dlpack(to_dlpack(made())).dtype() == float32 && is64(K::constant(1)); }},
};
// clang-format on

/// Runs the use of that number in a process of its own, with its output written to a file, and returns the exit status,
/// which is 0 if there was no error.
int run_alone(std::size_t i, const std::string& folder, const std::string& output) {
  Environment number("KASSETTE_FIRST_USE", std::to_string(i).c_str()),
      where("KASSETTE_FIRST_USE_FOLDER", folder.c_str());
  pid_t child = fork();
  if (child == 0) {
    if (!std::freopen(output.c_str(), "w", stdout)) _exit(126);
    execl("/proc/self/exe", "kassette_tests", "[.first_use]", static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

}  // namespace

TEST_CASE("the first use in a process of its own", "[.first_use]") {
  const char* number = std::getenv("KASSETTE_FIRST_USE");
  const char* folder = std::getenv("KASSETTE_FIRST_USE_FOLDER");
  if (!number || !folder) return skip("it is run by another test");
  const Environment home("KERAS_HOME", folder), update("KASSETTE_UPDATE_GOLDEN", "1");
  const FirstUse& first = kFirstUses[std::stoul(number)];
  INFO(first.name);
  CHECK(first.use(folder));
}

TEST_CASE("whatever a process does first, the settings of keras.json hold", "[first_use][serial]") {
  Folder folder;
  std::ofstream(folder / "keras.json") << kSettings;
  for (std::size_t i = 0; i < std::size(kFirstUses); ++i) {
    const std::string output = folder / "output";
    const int status = run_alone(i, folder / ".", output);
    INFO(kFirstUses[i].name << ":\n" << text_of(output));
    CHECK(status == 0);
  }
}
