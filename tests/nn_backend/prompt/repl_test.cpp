// tests/nn_backend/prompt/repl_test.cpp - the text of values at a prompt.
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#define __CLING__  // declares the hooks of cling's prompt as well
#include <kassette/external_backend.h>
#include <kassette/io.h>
#include <kassette/repl.h>
#include <kassette/testing.h>

#include "autograd/loops/checkpoint.h"
#include "devices/cpu/threads.h"
#include "tests/catch.h"
#include "tests/settings.h"

using namespace kassette;
namespace K = kassette::backend;

namespace {

template <class T>
std::string shown(const T& value) {
  std::ostringstream os;
  repl::show(value, &os);
  return os.str();
}

/// What operator<< writes.
template <class T>
std::string text_of(const T& value) {
  std::ostringstream os;
  os << value;
  return os.str();
}

struct Point {
  int x, y;
};
std::ostream& operator<<(std::ostream& os, Point p) { return os << p.x << '/' << p.y; }
struct Silent {};
enum class Colour : unsigned char { red, green };

}  // namespace

TEST_CASE("a prompt shows numbers with the digits that give them back", "[repl]") {
  CHECK(shown(0.1 + 0.2) == "0.30000000000000004");
  CHECK(shown(0.1f) == "0.1");
  CHECK(shown(2.0) == "2.0");
  CHECK(shown(-0.0) == "-0.0");
  CHECK(shown(1.0 / 0.0) == "inf");
  CHECK(shown(true) == "true");
  CHECK(shown('a') == "'a'");
  CHECK(shown(static_cast<unsigned char>(200)) == "200");
  CHECK(shown(-5) == "-5");
  CHECK(shown(static_cast<long long>(1) << 62) == "4611686018427387904");
  CHECK(shown(nullptr) == "nullptr");
  CHECK(shown(None) == "None");
  CHECK(shown(Half{0x3c00}) == "1.0");
  CHECK(shown(Colour::green) == "1");
}

TEST_CASE("a prompt shows text in quotes, so that its borders are seen", "[repl]") {
  CHECK(shown("two\nlines") == "\"two\\nlines\"");
  CHECK(shown(std::string("a \"b\" \x01")) == "\"a \\\"b\\\" \\x01\"");
  CHECK(shown(std::string_view("abc", 2)) == "\"ab\"");
  CHECK(shown(Text("as it is")) == "as it is");
}

TEST_CASE("a prompt shows containers with their elements", "[repl]") {
  CHECK(shown(std::vector<int>{1, 2, 3}) == "{1, 2, 3}");
  CHECK(shown(std::vector<int>{}) == "{}");
  CHECK(shown(std::vector<bool>{true, false}) == "{true, false}");
  CHECK(shown(std::map<std::string, double>{{"a", 1.5}}) == "{{\"a\", 1.5}}");
  CHECK(shown(std::set<char>{'x'}) == "{'x'}");
  CHECK(shown(std::array<float, 2>{0.5f, 1.0f}) == "{0.5, 1.0}");
  CHECK(shown(std::tuple<int, std::string, double>{1, "b", 2}) == "{1, \"b\", 2.0}");
  CHECK(shown(std::vector<std::vector<int>>{{1}, {2, 3}}) == "{{1}, {2, 3}}");
  int plain[] = {4, 5};
  CHECK(shown(plain) == "{4, 5}");
  const int many[1000] = {};
  CHECK(shown(many) == shown(std::vector<int>(1000, 0)));
  CHECK(shown(std::optional<int>(3)) == "3");
  CHECK(shown(std::optional<int>()) == "nullopt");
  CHECK(shown(std::unique_ptr<int>()) == "nullptr");
  CHECK(shown(std::vector<int>(1000, 7)).size() == 317);
  CHECK(shown(std::vector<int>(1000, 7)).substr(292) == "7, 7, 7, ... 1000 in all}");
  CHECK(shown(std::vector<Tensor>{K::constant({1, 2}), Tensor()}) == "{[1. 2.] (2,) float32 cpu, Tensor()}");
  CHECK(shown(std::pair<Shape, DType>{{2, 3}, int32}) == "{(2, 3), int32}");
}

TEST_CASE("a prompt shows what has an operator<<, and the type of what has none", "[repl]") {
  CHECK(shown(Point{1, 2}) == "1/2");
  CHECK(shown(std::vector<Point>{{1, 2}, {3, 4}}) == "{1/2, 3/4}");
  CHECK(shown(Silent{}).find("Silent) at 0x") != std::string::npos);
  CHECK(shown([](int i) { return i; }).find("lambda) at 0x") != std::string::npos);
}

TEST_CASE("a prompt shows tensors as operator<< does", "[repl]") {
  Tensor x = K::constant({{1, 2}, {3, 4}});
  std::ostringstream os;
  os << x;
  CHECK(shown(x) == os.str());
  CHECK(cling::printValue(&x) == os.str());
  CHECK(kassette::printValue(&x) == os.str());
  CHECK(shown(x.shape()[0]) == "2");
  NamedTensors named{{"w", x}};
  std::ostringstream list;
  list << named;
  CHECK(shown(named) == list.str());
  CHECK(cling::printValue(&named) == list.str());
  CHECK(shown(Function()) == cling::printValue(std::make_unique<Function>().get()));
}

namespace {

/// What a line of the prompt writes on standard output.
template <class T>
std::string line_of(const T& value) {
  std::fflush(stdout);
  std::FILE* file = std::tmpfile();
  const int terminal = dup(STDOUT_FILENO);
  dup2(fileno(file), STDOUT_FILENO);
  repl::show(value);
  std::fflush(stdout);
  dup2(terminal, STDOUT_FILENO);
  close(terminal);
  std::rewind(file);
  std::string text(1 << 16, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}
/// Inside of a container, as a line, and in cling: the same text.
template <class T>
void check_shown(const T& value, const std::string& expected) {
  INFO(expected);
  CHECK(shown(value) == expected);
  CHECK(line_of(value) == expected + '\n');
  CHECK(cling::printValue(&value) == expected);
}

}  // namespace

TEST_CASE("a prompt shows each kind of result", "[repl]") {
  Tensor x = K::constant({1, 2});
  const std::string x_text = "[1. 2.] (2,) float32 cpu";
  check_shown(x, x_text);
  check_shown(Tensor(), "Tensor()");
  check_shown(Tensors{x, x}, "[" + x_text + ",\n " + x_text + "]");
  check_shown(Shape{2, 3}, "(2, 3)");
  check_shown(K::placeholder({None, 3}).shape(), "(None, 3)");
  check_shown(Extent(3), "3");
  check_shown(K::placeholder({None}).shape()[0], "None");
  check_shown(float32, "float32");
  check_shown(DType(), "none");
  check_shown(cpu, "cpu");
  check_shown(Device("cuda:3"), "cuda:3");
  check_shown(None, "None");
  check_shown(Half{0x3e00}, "1.5");
  check_shown(BFloat16{0x3fc0}, "1.5");
  check_shown(Text("as it is"), "as it is");
  check_shown(Timing{.median = 1.5e-5, .least = 1.25e-5, .spread = 2e-7, .runs = 7, .loops = 100},
              "15 us a call (least 12.5 us, half of the runs within 200 ns; 7 runs of 100)");
  check_shown(Timing{.median = 2, .least = 1, .spread = 0.5, .runs = 5, .loops = 1, .allocations = 1},
              "2 s a call (least 1 s, half of the runs within 500 ms; 5 runs of 1), 1 block of memory from the system");
  check_shown(
      Timing{.median = 2e-3,
             .least = 1e-3,
             .spread = 0,
             .runs = 5,
             .loops = 2,
             .allocations = 3,
             .kept_bytes = 2048,
             .kept_nodes = 2},
      "2 ms a call (least 1 ms, half of the runs within 0 ns; 5 runs of 2), 3 blocks of memory from the system, leaves 2 nodes and 2.0 KiB alive");
  Timing keeps_one = {.median = 1, .least = 1, .spread = 0, .runs = 5, .loops = 1};
  keeps_one.kept_nodes = 1;
  CHECK(shown(keeps_one).find(", leaves 1 node and 0 bytes alive") != std::string::npos);
  Description d = describe(x);
  check_shown(d, text_of(d));
  MemoryReport report;
  report.nodes = 1;
  report.saved = 1024;
  check_shown(report, text_of(report));
  CHECK(shown(report).find("tape: 1 node, 1.0 KiB kept for gradients and replays") != std::string::npos);
  check_shown(memory_stats(), text_of(memory_stats()));
  CHECK(shown(MemoryStats{4096, 1024, 8192, 0, 3}) == text_of(MemoryStats{4096, 1024, 8192, 0, 3}));
  Picture picture = plot({1, 2, 3}, {.width = 30, .height = 5, .style = Style::ascii});
  check_shown(picture, text_of(picture));
  CHECK(shown(picture).find('\n') != std::string::npos);
  check_shown(Picture(), text_of(Picture()));
  check_shown(PrintOptions(), text_of(PrintOptions()));
  CHECK(shown(PrintOptions()).find("PrintOptions(precision=") == 0);
  Function f = K::function({K::placeholder({2})}, {x});
  check_shown(f, text_of(f));
  check_shown(Constraint([](const Tensor& w) { return w; }), text_of(Constraint([](const Tensor& w) { return w; })));
  check_shown(K::Step{x, {x}}, text_of(K::Step{x, {x}}));
  K::RnnResult rnn{x, x + 1, {x}};
  check_shown(rnn, text_of(rnn));
  CHECK(shown(rnn).find("[2. 3.]") != std::string::npos);
  K::NormalizedBatch batch{x, x, x};
  check_shown(batch, text_of(batch));
  K::CtcDecoded decoded{{x}, x};
  check_shown(decoded, text_of(decoded));
  K::SparseParts parts = K::sparse_parts(K::to_sparse(x));
  check_shown(parts, text_of(parts));
  check_shown(testing::compare(1, 1), "equal within the tolerance");
  check_shown(testing::compare(x, x + 1), testing::compare(x, x + 1).report);
  check_shown(external::Value::list({1, "a"}), text_of(external::Value::list({1, "a"})));
  check_shown(external::Value("text"), "'text'");
  check_shown(external::Value(2.5), text_of(external::Value(2.5)));
}

TEST_CASE("a prompt shows every kind of number, inside of a container and alone", "[repl]") {
  auto both = [](const auto& value, const std::string& expected) {
    CHECK(shown(value) == expected);
    CHECK(line_of(value) == expected + '\n');
  };
  both(false, "false");
  both('\'', "'\\''");
  both(static_cast<signed char>(-3), "-3");
  both(static_cast<unsigned char>(255), "255");
  both(static_cast<short>(-300), "-300");
  both(static_cast<unsigned short>(65535), "65535");
  both(INT32_MIN, "-2147483648");
  both(UINT32_MAX, "4294967295");
  both(std::int64_t(INT64_MIN), "-9223372036854775808");
  both(std::uint64_t(UINT64_MAX), "18446744073709551615");
  both(static_cast<long long>(-1), "-1");
  both(static_cast<unsigned long long>(1), "1");
  both(0.1f, "0.1");
  both(1e300, "1e+300");
  both(0.1L, "0.1");
  both(std::numeric_limits<double>::quiet_NaN(), "nan");
  both(-std::numeric_limits<float>::infinity(), "-inf");
  both(static_cast<const char*>("quoted\t"), "\"quoted\\t\"");
  both(static_cast<const char*>(nullptr), "nullptr");
  both(nullptr, "nullptr");
}

TEST_CASE("after a jump out of a line its scopes are over", "[repl]") {
  testing::Random before(5);
  auto outer = K::name_scope("outer");
  repl::remember_scopes();
  auto* scope = new K::NameScope("inner");
  auto* checkpoints = new K::CheckpointScope(3);
  auto* random = new testing::Random(7);
  const auto named = [] { return K::placeholder({2}, None, None, false, "x"); };
  const auto report = [] { return testing::compare(K::ones({1}), K::zeros({1})).report; };
  CHECK(shown(named()).find("\"outer/inner/x\"") != std::string::npos);
  CHECK(report().find("KASSETTE_TEST_SEED=7") != std::string::npos);
  CHECK(autograd::checkpoint_steps() == 3);
  repl::return_to_scopes();  // no destructor has run
  CHECK(shown(named()).find("\"outer/x\"") != std::string::npos);
  CHECK(report().find("KASSETTE_TEST_SEED=7") == std::string::npos);
  CHECK(report().find("KASSETTE_TEST_SEED=5") != std::string::npos);
  CHECK(autograd::checkpoint_steps() == autograd::kNoCheckpoints);
  delete random, delete checkpoints, delete scope;
}

TEST_CASE("no prompt jumps out of work that other threads share", "[repl]") {
  const test::Threads two(2);
  CHECK(repl::may_jump());
  const pthread_t self = pthread_self();
  std::atomic<int> parts{0}, wrong{0};
  devices::parallel_for(1000, 10, [&](std::int64_t, std::int64_t) {
    ++parts;
    if (pthread_equal(self, pthread_self()) && repl::may_jump()) ++wrong;
  });
  CHECK(parts > 1);
  CHECK(wrong == 0);
  CHECK(repl::may_jump());
  CHECK_THROWS_AS(devices::parallel_for(1000, 10, [](std::int64_t, std::int64_t) { throw ValueError("no"); }),
                  ValueError);
  CHECK(repl::may_jump());
}
