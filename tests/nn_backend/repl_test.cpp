// tests/nn_backend/repl_test.cpp - the text of values at a prompt.
#include <pthread.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#define __CLING__   // declares the hooks of cling's prompt as well
#include <kassette/engine.h>
#include <kassette/io.h>
#include <kassette/repl.h>
#include <kassette/testing.h>

#include "autograd/checkpoint.h"
#include "devices/cpu/threads.h"
#include "tests/catch.h"

using namespace kassette;
namespace K = kassette::backend;

namespace {

template <class T>
std::string shown(const T& value) {
  std::ostringstream os;
  repl::show(value, &os);
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
  CHECK(kassette::checkpoint_steps() == 3);
  repl::return_to_scopes();   // no destructor has run
  CHECK(shown(named()).find("\"outer/x\"") != std::string::npos);
  CHECK(report().find("KASSETTE_TEST_SEED=7") == std::string::npos);
  CHECK(report().find("KASSETTE_TEST_SEED=5") != std::string::npos);
  CHECK(kassette::checkpoint_steps() == kNoCheckpoints);
  delete random, delete checkpoints, delete scope;
}

TEST_CASE("no prompt jumps out of work that other threads share", "[repl]") {
  const int before = num_threads();
  set_num_threads(2);
  CHECK(repl::may_jump());
  const pthread_t self = pthread_self();
  std::atomic<int> parts{0}, wrong{0};
  parallel_for(1000, 10, [&](std::int64_t, std::int64_t) {
    ++parts;
    if (pthread_equal(self, pthread_self()) && repl::may_jump()) ++wrong;
  });
  CHECK(parts > 1);
  CHECK(wrong == 0);
  CHECK(repl::may_jump());
  CHECK_THROWS_AS(parallel_for(1000, 10, [](std::int64_t, std::int64_t) { throw ValueError("no"); }), ValueError);
  CHECK(repl::may_jump());
  set_num_threads(before);
}

TEST_CASE("a prompt shows each type of the library as operator<< writes it, inside a container too", "[repl]") {
  const auto same = [](const auto& value) {
    std::ostringstream os;
    os << value;
    CHECK(os.str() != "");
    CHECK(shown(value) == os.str());
    CHECK(shown(std::make_pair(1, &value)).find("{1, ") == 0);
    return os.str();
  };
  Timing t;
  t.median = 1.5e-3, t.least = 1.25e-3, t.spread = 2e-5, t.runs = 7, t.loops = 3;
  CHECK(same(t) == "1.5 ms a call (least 1.25 ms, half of the runs within 20 us; 7 runs of 3)");
  t.allocations = 1;
  CHECK(same(t) == "1.5 ms a call (least 1.25 ms, half of the runs within 20 us; 7 runs of 3), 1 block of memory from the system");
  t.allocations = 2, t.kept_nodes = 1, t.kept_bytes = 0;
  CHECK(same(t).find(", 2 blocks of memory from the system, leaves 1 node and 0 bytes alive") != std::string::npos);
  t.kept_nodes = 2, t.kept_bytes = 2048;
  CHECK(same(t).find(", leaves 2 nodes and 2.0 KiB alive") != std::string::npos);
  MemoryReport m;
  m.nodes = 1;
  CHECK(same(m).find("tape: 1 node, 0 bytes kept for gradients and replays") != std::string::npos);
  same(MemoryStats());
  same(describe(K::constant({1, 2, 4})));
  same(Tensors{K::constant(1), K::constant(2)});
  same(Shape{2, 3});
  same(float64);
  same(cpu);
  same(engine::Value::list({1, "a"}));
  same(testing::compare(K::ones({1}), K::zeros({1})));
  same(testing::compare(K::ones({1}), K::ones({1})));
  same(K::sparse_parts(K::to_sparse(K::constant({{0, 2}}))));
  same(K::ctc_decode(K::constant({{{.4, .6}}}), K::constant({1}, int32)));
  same(K::normalize_batch_in_training(K::constant({{1, 2}, {3, 4}}), None, None, {0}));
  same(K::rnn([](const Tensor& x, const Tensors& s) { return K::Step{x, s}; }, K::ones({1, 2, 1}), {K::zeros({1, 1})}));
}
