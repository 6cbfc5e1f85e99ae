// tests/core/locale_test.cpp - no text that is written or read depends on a locale or on the state of a stream.
#include <kassette/backend.h>
#include <kassette/external_backend.h>
#include <kassette/inspect.h>
#include <kassette/io.h>
#include <kassette/repl.h>
#include <kassette/runtime.h>
#include <kassette/testing.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iomanip>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/text.h"
#include "devices/cpu/cpus.h"
#include "devices/plugin_file.h"
#include "nn_backend/inspect/progress_text.h"
#include "tests/io/folder.h"
#include "tests/locales.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

/// Texts and files, by what they are.
using Said = std::vector<std::pair<std::string, std::string>>;

template <class T>
std::string at_the_prompt(const T& value) {
  PlainStream os;
  repl::show(value, &os);
  return os.str();
}

/// Writes everything to streams that `make` makes.
template <class Make>
void print_all(Said& said, Make&& make) {
  auto add = [&](const char* what, const auto& value) {
    auto os = make();
    os << value;
    said.emplace_back(what, os.str());
  };
  Tensor x = K::constant({{1234567.25, -0.5, 1e-7}, {3, 4e20, 1.0 / 3}}, "float64");
  Tensor v = K::variable(K::zeros({1500, 2}), None, "v1000");
  add("a tensor", x);
  add("integers", K::constant({{1234567, -2}, {16, 255}}, "int64"));
  add("bools", K::constant({true, false}, "bool"));
  add("a long tensor", K::arange(123456));
  add("a symbolic tensor", K::placeholder({K::None, 1500}));
  add("a variable", v);
  add("tensors", Tensors{x, K::arange(3000)});
  add("a shape", K::zeros({1500, 16}).shape());
  add("an extent", K::zeros({1500}).shape()[0]);
  add("a dtype", DType("float32"));
  add("a device", Device("cpu"));
  add("a device of CUDA", Device("cuda:200"));
  add("print options", PrintOptions{});
  add("named tensors", NamedTensors{{"w", K::zeros({1500, 2})}});
  add("a sparse tensor", K::to_sparse(K::constant({{0, 1500.5}, {0, 0}})));
  add("parts", K::sparse_parts(K::to_sparse(K::constant({{0, 1500.5}, {0, 0}}))));
  add("a function", K::function({}, {x}));
  add("a value", external::Value(std::int64_t(1234567)));
  add("a float value", external::Value(1234567.5));
  add("a description", describe(x));
  add("a description of nothing", describe(K::placeholder({1500})));
  add("memory", MemoryStats{3 << 20, 1500, 1 << 30, 0, 123456});
  add("a report", MemoryReport{{3 << 20, 1500, 1 << 30, 1234567, 123456}, {}, false, 123456, 1234567, 12345678});
  add("a timing", Timing{0.0012345, 1234.5, 1e-7, 12345, 16, 4096, 1234567, 2345});
  add("a comparison", testing::compare(x, x + 0.5));
  add("a plot", plot(K::constant({1000.5, 2000.25, 3000}), {.width = 40, .height = 5, .style = Style::ascii}));
  add("a histogram", hist(K::constant({1000.5, 2000.25, 3000}), {.width = 40, .height = 5, .style = Style::ascii}));
}

/// What the prompt, errors and the system say.
void say_more(Said& said) {
  said.emplace_back("prompt: double", at_the_prompt(1234567.5));
  said.emplace_back("prompt: float", at_the_prompt(0.5f));
  said.emplace_back("prompt: long double", at_the_prompt(1234567.5L));
  said.emplace_back("prompt: long", at_the_prompt(1234567L));
  said.emplace_back("prompt: bool", at_the_prompt(true));
  said.emplace_back("prompt: containers", at_the_prompt(std::vector<std::pair<int, double>>(1200, {12345, 1.5})));
  said.emplace_back("prompt: a tensor", at_the_prompt(K::arange(1500)));
  auto error = [&](const char* what, auto&& f) { said.emplace_back(what, error_of([&] { f(); })); };
  error("an error with shapes", [] { (void)K::eval(K::dot(K::zeros({1500, 16}), K::zeros({3, 2000}))); });
  error("an error with a number", [] { (void)K::zeros({2}).shape()[1234567]; });
  error("an error with a float", [] { (void)K::eval(K::dropout(K::zeros({2}), 1234.5)); });
  error("an error of the system", [] { (void)load_npy("/no/such/folder/x.npy"); });
  error("an error of a writer", [] { save_npy("/no/such/folder/x.npy", K::zeros({1})); });
  std::string why;
  devices::open_library("/no/such/folder/x.so", 0, &why);
  said.emplace_back("an error of the loader", why);
  why.clear();
  devices::open_next_to_library("libkassette_none.so", &why);
  said.emplace_back("a library that is missing", why);
  said.emplace_back("progress", inspect::progress_text("step", 12345, 1234567, 1234.5, 79, false));
  said.emplace_back("an index", printed(K::arange(12345)["1234:12340:2345"]));
  std::string old = K::image_data_format().c_str();
  said.emplace_back("a name in capitals", K::normalize_data_format("CHANNELS_FIRST").c_str());
}

/// What the writers write and the readers read.
void use_files(Said& said) {
  Folder folder;
  const std::string path = folder / "x";
  Tensor x = K::reshape(K::cast(K::arange(6000), "float32") * 1.5, {1500, 4}),
         small = K::constant({{1234.5, -1e-7}, {1e20, 0.25}}, "float64");
  auto add = [&](const std::string& what, const auto& again) {
    said.emplace_back(what + " (bytes)", read_file(path));
    said.emplace_back(what + " (read)", printed(again));
  };
  save_npy(path, x);
  add("npy", load_npy(path));
  save_npy(path, x, {.fortran_order = true, .big_endian = true});
  add("npy, big", load_npy(path));
  save_npz(path, {{"w", x}, {"i", K::arange(123456)}}, {.compress = true});
  add("npz", load_npz(path));
  NamedTensors model{{"w", x}, {"i", K::arange(123456)}};
  model.set_metadata("steps", "1234567");
  save_safetensors(path, model);
  add("safetensors", load_safetensors(path));
  save_csv(path, small, {.header = "a;b", .delimiter = ';'});
  add("csv", load_csv(path, {.delimiter = ';', .skip_rows = 1}));
  add("csv by name", load_csv(path, {.delimiter = ';', .columns = {"b"}}));
  save_csv(path, K::reshape(K::arange(3000), {1500, 2}));
  add("csv of integers", load_csv(path, {.dtype = int32}));
  save_idx(path, K::zeros({1500, 3}, "uint8"));
  add("idx", load_idx(path));
  save_png(path, K::zeros({16, 1500, 3}));
  add("png", load_png(path));
  write_file(path, "1234567,0.5e3,inf,1e400\n,nan,-1e-400,+1.25\n");
  add("csv of every kind", load_csv(path));
  said.emplace_back("an error of a file", refusal("load_csv", "1234567\n1,2\n",
                                                  [](const std::string& p) { load_csv(p, {.max_bytes = 1234567}); }));
}

Said everything() {
  Said said;
  print_all(said, [] { return std::ostringstream(); });
  say_more(said);
  use_files(said);
  return said;
}

void check_same(const Said& got, const Said& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO(expected[i].first);
    CHECK(got[i].second == expected[i].second);
  }
}

}  // namespace

TEST_CASE("texts and files are the same in every locale", "[print][io][error][repl][locale]") {
  const Said expected = everything();
  // What they are in C's: against numbers that this test writes itself.
  auto text_of = [&](const std::string& what) {
    for (const auto& [name, text] : expected)
      if (name == what) return text;
    return std::string("nothing");
  };
  CHECK(text_of("a shape") == "(1500, 16)");
  CHECK(text_of("prompt: double") == "1234567.5");
  CHECK(text_of("an error of the system") == "load_npy: /no/such/folder/x.npy: No such file or directory");
  CHECK(text_of("npy (bytes)").find("'shape': (1500, 4)") != std::string::npos);
  CHECK(text_of("csv (bytes)") == "a;b\n1234.5;-1e-07\n1e+20;0.25\n");
  Locales locales;
  if (locales.of_the_system == 0) WARN("no locale of the system: localedef is not installed, or has no sources");
  for (const LocalePair& pair : locales.all) {
    INFO((pair.name.empty() ? "facets of the test" : pair.name) << ", streams: " << pair.streams.name());
    Said got;
    {
      InLocale in(pair);
      got = everything();
    }
    check_same(got, expected);
  }
}

TEST_CASE("flags, width and locale of a stream do not reach into texts, but a width pads the whole",
          "[print][locale]") {
  Said expected, got;
  print_all(expected, [] { return std::ostringstream(); });
  print_all(got, [] {
    std::ostringstream os;
    os.imbue(std::locale(std::locale::classic(), new GroupedNumbers(',', '.')));
    os << std::hex << std::showbase << std::showpos << std::scientific << std::boolalpha << std::uppercase
       << std::setprecision(2) << std::setfill('*');
    return os;
  });
  check_same(got, expected);
  std::ostringstream os;
  os << std::setw(10) << K::zeros({2, 3}).shape() << '|' << std::left << std::setw(8) << Device("cuda:1") << '|';
  CHECK(os.str() == "    (2, 3)|cuda:1  |");
}

TEST_CASE("numbers of the environment and of the system are read in every locale", "[locale]") {
  Folder folder;
  std::filesystem::create_directory(folder / "sub");
  write_file(folder / "sub/cpu.max", "150000 100000\n");
  Locales locales;
  // French: a blank between thousands.
  locales.all.push_back({"", std::locale(std::locale::classic(), new GroupedNumbers(',', ' '))});
  for (const LocalePair& pair : locales.all) {
    InLocale in(pair);
    CHECK(devices::cgroup_cpus("0::/sub\n", folder / "") == 2);
    CHECK(Device("cuda:12").index() == 12);
  }
  CHECK_THROWS_AS(Device("cuda:1.5"), DeviceError);
  CHECK_THROWS_AS(Device("cuda:-1"), DeviceError);
}
