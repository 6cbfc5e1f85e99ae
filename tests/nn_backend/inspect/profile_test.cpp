// tests/nn_backend/inspect/profile_test.cpp - what a profile records, and what it leaves as it was.
#include <kassette/profile.h>

#include <kassette/backend.h>
#include <kassette/error.h>
#include <kassette/interrupt.h>

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/fast_paths.h"
#include "core/source_lines.h"
#include "ops/engine/observe.h"
#include "ops/engine/recorder.h"
#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/io/folder.h"
#include "tests/settings.h"
#include "tests/sweeps/sample.h"

namespace K = kassette::backend;
using namespace kassette;
using kassette::ops::RecordedEvent;
using kassette::ops::Recording;
using kassette::test::same_bits;

namespace {

/// What is recorded while f runs.
template <class F>
Recording recorded(F f) {
  const std::int64_t begin = ops::start_recording();
  f();
  return ops::stop_recording(begin);
}

/// The events of one thread as they nest, those inside of another in brackets: "gradients(adjoint of sum(fill) ...)".
std::string nested(const Recording& r, std::int32_t thread = 0) {
  std::vector<std::string> at(64);
  std::string outer;
  for (const RecordedEvent& e : r.events) {  // in the order of their ends
    if (thread == 0) thread = e.thread;
    if (e.thread != thread) continue;
    const auto depth = static_cast<std::size_t>(e.depth);
    std::string& inside = at[depth + 1];
    std::string& around = depth ? at[depth] : outer;
    around += (around.empty() ? "" : " ") + std::string(e.name) + (inside.empty() ? "" : "(" + inside + ")");
    inside.clear();
  }
  return outer;
}

std::map<std::string, int> counts(const Recording& r) {
  std::map<std::string, int> n;
  for (const RecordedEvent& e : r.events) ++n[e.name];
  return n;
}

const RecordedEvent& event(const Recording& r, const std::string& name) {
  const auto found = std::ranges::find_if(r.events, [&](const RecordedEvent& e) { return e.name == name; });
  REQUIRE(found != r.events.end());
  return *found;
}

Tensor ramp(const Shape& shape) { return K::reshape(K::arange(0, shape.numel(), 1, "float32") * 0.01 - 0.05, shape); }

/// A recurrent layer over (2, 4, 3) whose weights are w: its outputs.
Tensor recurrent(const Tensor& xs, const Tensor& w) {
  return K::rnn(
             [&](const Tensor& x, const Tensors& s) -> K::Step {
               Tensor h = K::tanh(K::dot(x, w) + s[0]);
               return {h, {h}};
             },
             xs, {K::zeros({2, 5})})
      .outputs;
}

}  // namespace

TEST_CASE("a profile has each op with shapes, bytes, device and time, and those around it", "[profile]") {
  Tensor x = K::variable(ramp({2, 3})), y;
  const Recording r = recorded([&] { y = K::gradients(K::sum(K::square(x)), {x})[0]; });
  INFO(nested(r));
  CHECK(nested(r).find("square sum gradients(") == 0);
  CHECK(nested(r).find("adjoint of sum") != std::string::npos);
  CHECK(nested(r).find("adjoint of square(") != std::string::npos);
  const RecordedEvent& square = event(r, "square");
  CHECK(square.kind == RecordedEvent::op);
  CHECK(r.shapes_text(square) == "(2, 3) float32 -> (2, 3) float32");
  CHECK(square.bytes == 48);
  CHECK(square.device == cpu);
  CHECK_FALSE(square.failed);
  for (const RecordedEvent& e : r.events) {
    CHECK(e.begin >= r.begin);
    CHECK(e.end >= e.begin);
    CHECK(e.end <= r.end);
  }
  CHECK_FALSE(ops::observed());
}

TEST_CASE("a profile sees the ops of a function, of its chains and of functions in it", "[profile]") {
  Tensor x = K::placeholder({K::None, 3}), w = K::variable(ramp({3, 4}));
  auto inner = K::function({x}, {K::exp(K::dot(x, w)) * 2.0 + 1.0});
  Tensor in = K::placeholder({K::None, 3});
  auto f = K::function({in}, {K::sum(inner({in})[0], 1)});
  const Tensor fed = ramp({50, 3});
  const Tensor before = f({fed})[0];
  test::Thresholds all([] {
    FastPathThresholds t = fast_path_thresholds;
    t.chain_part = 0;
    return t;
  }());
  Tensor during;
  for (int i = 0; i < 3; ++i) {  // the third runs a program for these shapes
    const Recording r = recorded([&] { during = f({fed})[0]; });
    INFO(nested(r));
    CHECK(nested(r) == "function(matmul exp + multiply + add sum)");
    CHECK(same_bits(before, during));
    const RecordedEvent& chain = event(r, "exp + multiply + add");
    CHECK(chain.kind == RecordedEvent::fused);
    CHECK(r.shapes_text(chain) == "(50, 4) float32, () float32, () float32 -> (50, 4) float32");
    CHECK(ops::origin_of(event(r, "matmul").origin).function == std::string("dot"));
  }
}

TEST_CASE("a profile sees each step of a loop, compiled and recorded, forward and backward", "[profile]") {
  Tensor xs = K::placeholder({2, 4, 3}), w = K::variable(ramp({3, 5}));
  auto f = K::function({xs}, K::gradients(K::sum(K::square(recurrent(xs, w))), {w}));
  const Tensor fed = ramp({2, 4, 3});
  const Tensor before = f({fed})[0];
  Tensor compiled, eager;
  const Recording r = recorded([&] { compiled = f({fed})[0]; });
  INFO(nested(r));
  CHECK(same_bits(before, compiled));
  auto n = counts(r);
  CHECK(n["rnn"] == 1);
  CHECK(n["the backward pass of rnn"] == 1);
  CHECK(n["matmul"] == 4 + 4);  // a step's, and its adjoint's for w
  CHECK(n["tanh"] == 4);
  const Recording e = recorded([&] { eager = K::gradients(K::sum(K::square(recurrent(fed, w))), {w})[0]; });
  INFO(nested(e));
  n = counts(e);
  CHECK(n["rnn"] == 1);
  CHECK(n["gradients"] == 1);
  CHECK(n["tanh"] == 4);
  CHECK(n["adjoint of tanh"] == 4);
  CHECK(n["matmul"] == 4 + 4);
}

TEST_CASE("the ops of an adjoint know the op that they differentiate, to the second order", "[profile]") {
  Tensor x = K::variable(ramp({2, 3}));
  const Recording r = recorded([&] {
    Tensor g = K::gradients(K::sum(K::exp(x)), {x})[0];
    K::gradients(K::sum(K::square(g)), {x});
  });
  INFO(nested(r));
  CHECK(counts(r)["gradients"] == 2);
  CHECK(std::ranges::any_of(r.events, [](const RecordedEvent& e) {
    const char* of = ops::origin_of(e.origin).adjoint_of;
    return e.kind == RecordedEvent::op && of && std::string(of) == "exp";
  }));
}

TEST_CASE("a profile leaves all bits as they are, and nothing alive", "[profile]") {
  for (const test::Sample& s : test::op_samples()) {
    if (s.traits.draws) continue;
    const test::Shapes shapes = test::cases_of(s).front();
    const DType dtype = test::dtypes_of(s.takes).front();
    const Tensors in = test::make_inputs(s, shapes, dtype), plain = test::call(s, in);
    const test::Ledger ledger;
    {
      Tensors seen;
      const Recording r = recorded([&] { seen = test::call(s, in); });
      INFO(test::title(s, shapes, dtype));
      for (std::int64_t i = 0; i < plain.size(); ++i) CHECK(same_bits(K::eval(plain[i]), K::eval(seen[i])));
    }
    INFO(test::title(s, shapes, dtype));
    CHECK(ledger.change().empty());
  }
}

TEST_CASE("updates in place, half types and splats are in a profile", "[profile]") {
  Tensor v = K::variable(ramp({40})), x = K::placeholder({40});
  auto f = K::function({x}, {K::sum(x)}, {{v, v * 0.5 + x}});
  f({ramp({40})});
  auto n = counts(recorded([&] { f({ramp({40})}); }));
  CHECK(n["multiply + add"] == 1);
  n = counts(recorded([&] { K::update_add(v, ramp({40})); }));
  CHECK(n["add"] == 1);
  const Recording r = recorded([&] { K::cast(v, "float16") * 2.0; });
  CHECK(r.shapes_text(event(r, "multiply")) == "(40,) float16, () float16 -> (40,) float16");
  Tensor g;
  const Recording back = recorded([&] { g = K::gradients(K::mean(v), {v})[0]; });
  INFO(nested(back));
  CHECK(nested(back).find("adjoint of mean(unreduce)") != std::string::npos);
  CHECK(back.shapes_text(event(back, "unreduce")).find("-> (40,) float32") != std::string::npos);
}

TEST_CASE("each thread has its own events, and a thread that has ended is not forgotten", "[profile]") {
  const Tensor x = ramp({2, 3});
  const Recording r = recorded([&] {
    std::thread one([&] { K::exp(x); }), two([&] { K::log(x + 1.0); });
    one.join();
    two.join();
    K::sqrt(x + 1.0);
  });
  CHECK(r.n_threads == 3);
  CHECK(event(r, "exp").thread != event(r, "log").thread);
  CHECK(event(r, "exp").thread != event(r, "sqrt").thread);
  CHECK(event(r, "add").depth == 0);
}

TEST_CASE("an op that throws is marked, and so is what is around it", "[profile]") {
  Tensor x = K::placeholder({3}), i = K::placeholder({2}, K::None, "int32");
  auto f = K::function({x, i}, {K::gather(x * 2.0, i)});
  const Recording r = recorded([&] { CHECK_THROWS_AS(f({{1, 2, 3}, {0, 7}}), ValueError); });
  INFO(nested(r));
  CHECK(nested(r) == "function(multiply gather)");
  CHECK(event(r, "gather").failed);
  CHECK(event(r, "function").failed);
  CHECK_FALSE(event(r, "multiply").failed);
  const Recording after = recorded([&] {
    request_interrupt();
    CHECK_THROWS_AS(f({{1, 2, 3}, {0, 1}}), Interrupted);
    f({{1, 2, 3}, {0, 1}});
  });
  INFO(nested(after));
  CHECK(event(after, "gather").depth == 1);  // the depth is that of before
}

TEST_CASE("a profile within another has its own part, and the outer one has all", "[profile]") {
  const Tensor x = ramp({2, 3});
  Recording inner;
  const Recording outer = recorded([&] {
    K::exp(x);
    inner = recorded([&] { K::square(x); });
    K::tanh(x);
  });
  CHECK(nested(inner) == "square");
  CHECK(nested(outer) == "exp square tanh");
  CHECK_FALSE(ops::observed());
}

TEST_CASE("a profile and a search for NaN switch fast paths back on when neither needs them off", "[profile]") {
  const std::uint64_t before = fast_path_thresholds.off, graphs = fast_path_bit(FastPath::device_graph),
                      chains = fast_path_bit(FastPath::chain);
  REQUIRE_FALSE(before & (graphs | chains));
  {
    const auto guard = detect_nan();
    { const auto p = profile(); }
    CHECK((fast_path_thresholds.off & (graphs | chains)) == (graphs | chains));
  }
  CHECK(fast_path_thresholds.off == before);
  {
    const auto p = profile();
    { const auto guard = detect_nan(); }
    CHECK((fast_path_thresholds.off & (graphs | chains)) == graphs);
  }
  CHECK(fast_path_thresholds.off == before);
  {
    std::optional<DetectNan> guard(std::in_place, DetectNanOptions());
    const auto p = profile();
    guard.reset();
    CHECK((fast_path_thresholds.off & (graphs | chains)) == graphs);
  }
  CHECK(fast_path_thresholds.off == before);
  const test::Thresholds without([&] {
    FastPathThresholds t = fast_path_thresholds;
    t.off |= graphs;
    return t;
  }());
  { const auto p = profile(); }
  CHECK(fast_path_thresholds.off == (before | graphs));
}

TEST_CASE("only ops that are recorded symbolically look for the line of the user, if nobody observes", "[profile]") {
  static int walks;
  set_find_line(nullptr, []() -> const void* {
    ++walks;
    return nullptr;  // no other language: the stack is walked
  });
  const auto walks_of = [](const auto& f) {
    const int before = walks;
    f();
    return walks - before;
  };
  Tensor v = K::variable(ramp({2, 3})), w = K::variable(ramp({3, 5})), x = K::placeholder({2, 3}), y;
  CHECK(walks_of([&] {
          Tensor g = K::gradients(K::sum(K::exp(v)), {v})[0];
          K::gradients(K::sum(K::square(g)), {v});
          K::gradients(K::sum(recurrent(ramp({2, 4, 3}), w)), {w});
        }) == 0);
  CHECK(walks_of([&] { y = K::exp(x); }) == 1);
  CHECK(walks_of([&] { y = K::sum(y); }) == 1);
  Tensors g;
  const int found = walks_of([&] { g = K::gradients(y, {x}); });
  CHECK(found <= 2);  // for the cotangent of the loss, not for the ops of adjoints
  auto f = K::function({x}, {y, g[0]}, {{v, v * 0.5}});
  CHECK(walks_of([&] {
          for (int i = 0; i < 3; ++i) f({ramp({2, 3})});
        }) == 0);
  CHECK(walks_of([&] {
          const auto p = profile();
          K::exp(v);
        }) == 1);
  set_find_line(nullptr, nullptr);
}

TEST_CASE("the tables of a profile count calls, and an op's own time once", "[profile]") {
  Tensor x = K::placeholder({2, 4, 3}), w = K::variable(ramp({3, 5}));
  auto f = K::function({x}, {recurrent(x, w)});
  auto p = profile();
  f({ramp({2, 4, 3})});
  p.stop();
  std::ostringstream os;
  os << p;
  const std::string said = os.str();
  INFO(said);
  CHECK(said.find(" in kassette\n\nop ") != std::string::npos);
  const auto row = [&](const std::string& name) {  // the calls in a row
    const auto at = said.rfind("\n" + name + " ");
    REQUIRE(at != std::string::npos);
    return std::stoi(said.substr(at + 1 + name.size()));
  };
  CHECK(row("tanh") == 4);
  CHECK(row("matmul") == 4);
  CHECK(row("rnn") == 1);
  CHECK(row("function") == 1);
  // Each event has a row in the last table: their own times add up to the time in kassette, to three digits each.
  const auto seconds = [](const std::string& number_and_unit) {
    std::istringstream in(number_and_unit);
    double number = 0;
    std::string unit;
    in >> number >> unit;
    return number * (unit == "s" ? 1 : unit == "ms" ? 1e-3 : unit == "us" ? 1e-6 : 1e-9);
  };
  std::istringstream table(said.substr(said.find("\nfunction ") + 1));
  std::string line;
  std::getline(table, line);
  const std::size_t end = line.find("self") + 4, width = 11;
  double own = 0;
  while (std::getline(table, line)) own += seconds(line.substr(end - width, width));
  const double all = seconds(said.substr(said.find("of which ") + 9));
  CHECK(own > 0.97 * all);
  CHECK(own < 1.03 * all);
  CHECK(os.str() == std::string(p.text().c_str()));
}

TEST_CASE("a trace is written when a profile ends, and where it cannot be stop() throws", "[profile]") {
  const test::Folder folder;
  const std::string file = (folder / "trace.json");
  const auto content = [](const std::string& path) {
    std::ifstream in(path);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  {
    auto p = profile(Name(file.c_str()));
    K::exp(ramp({2, 3}));
    CHECK_FALSE(std::ifstream(file).good());
  }
  const std::string trace = content(file);
  CHECK(trace.find("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{\"name\":") == 0);
  CHECK(trace.find("{\"name\":\"exp\",\"cat\":\"op\",\"ph\":\"X\",\"pid\":1,\"tid\":") != std::string::npos);
  CHECK(trace.find("\"shapes\":\"(2, 3) float32 -> (2, 3) float32\",\"bytes\":48,\"device\":\"cpu\"") !=
        std::string::npos);
  CHECK(trace.find("{\"name\":\"memory of cpu\",\"ph\":\"C\"") != std::string::npos);
  auto p = profile("/nonexistent/trace.json");
  CHECK_THROWS_AS(p.stop(), RuntimeError);
  CHECK_FALSE(ops::observed());
  p.stop();  // it has ended
  CHECK_THROWS_AS(p.save("/nonexistent/trace.json"), RuntimeError);
  p.save(Name((folder / "later.json").c_str()));
  CHECK(content((folder / "later.json")).find("traceEvents") != std::string::npos);
}

TEST_CASE("work on a CUDA device has the times of its events", "[profile][device]") {
  if (!test::has_device("cuda:0")) return;
  const Device device("cuda:0");
  const Tensor a = ramp({64, 64}).to(device);
  Tensor x = K::placeholder({64, 64});
  Tensor on = K::dot(a, a);
  const Recording r = recorded([&] {
    K::exp(K::dot(a, a));
    a.to(cpu);
  });
  const RecordedEvent& dot = event(r, "matmul");
  CHECK(dot.device == device);
  CHECK(dot.device_begin >= r.begin);
  CHECK(dot.device_end >= dot.device_begin);
  CHECK(event(r, "exp").device_begin >= dot.device_end - 1000);
  CHECK(std::ranges::any_of(r.memory, [&](const ops::MemorySample& s) { return s.device == device && s.bytes > 0; }));
}

TEST_CASE("what a profile costs: CPU time of an op without and with it", "[.profile_cost]") {
  const test::Threads one(1);
  const auto cpu_time = [] {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
  };
  Tensor small = ramp({8}), square = ramp({240, 240}), in = K::placeholder({240, 240});
  auto f = K::function({in}, {K::dot(K::dot(K::dot(K::dot(in, square), square), square), square)});
  struct Row {
    const char* name;
    std::function<void()> run;
    int ops, times;
  };
  const Row rows[] = {
      {"4 products, eagerly", [&] { K::dot(K::dot(K::dot(K::dot(square, square), square), square), square); }, 4, 20},
      {"4 products, a function", [&] { f({square}); }, 4, 20},
      {"an op on 8 elements", [&] { K::exp(small); }, 1, 2000},
      {"recording an op", [&] { K::exp(in); }, 1, 2000}};
  std::printf("us of CPU time an op          without     with\n");
  for (const Row& row : rows) {
    double least[2] = {1e9, 1e9};
    for (int round = 0; round < 30; ++round)  // in turns, so that both meet the same disturbances
      for (int with = 0; with < 2; ++with) {
        const std::int64_t begin = with ? ops::start_recording() : 0;
        const double before = cpu_time();
        for (int i = 0; i < row.times; ++i) row.run();
        least[with] = std::min(least[with], (cpu_time() - before) / (row.times * row.ops));
        if (with) ops::stop_recording(begin);
      }
    std::printf("%-25s %11.2f %8.2f   %+.1f %%\n", row.name, least[0], least[1], 100 * (least[1] / least[0] - 1));
  }
}
