// tests/devices/graph_cuda_test.cpp - from its second run for known shapes on, a function enqueues one graph on a CUDA
// device, with the bits of a run without graphs.
#include <kassette/backend.h>
#include <kassette/runtime.h>
#include <kassette/stream.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/fast_paths.h"
#include "core/log.h"
#include "devices/plugin.h"
#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/environment.h"
#include "tests/stderr_of.h"

using namespace kassette;
using namespace kassette::devices;
using namespace kassette::test;
namespace K = kassette::backend;

namespace {

// The call from which on there is a graph: the second makes the program for its shapes, and runs it once.
constexpr int kFirst = 3;

/// How often something was enqueued on the emulated device, a graph being one; -1 on a GPU.
std::int64_t enqueued() {
  static auto* asked = emulated<std::int64_t()>("emulated_enqueued");
  return asked ? asked() : -1;
}

/// Runs something with graphs switched on or off.
template <class F>
auto with_graphs(bool on, F run) {
  struct Switch {
    std::uint64_t before = fast_path_thresholds.off;
    ~Switch() { fast_path_thresholds.off = before; }
  } restore;
  if (!on) fast_path_thresholds.off |= std::uint64_t(1) << static_cast<int>(FastPath::device_graph);
  return run();
}

struct Counting {
  std::int64_t before = times_taken(FastPath::device_graph);
  Counting() { fast_path_counts.on = true; }
  ~Counting() { fast_path_counts.on = false; }
  std::int64_t graphs() const { return times_taken(FastPath::device_graph) - before; }
};

std::vector<float> values(const Tensor& t) { return floats(K::eval(t)); }

/// Two dense layers with dropout between, a cross-entropy, and Adam with its counter.
struct Mlp {
  Tensor x = K::placeholder({8, 5}), y = K::placeholder({8, 3});
  Tensors weights;
  Tensor rate = K::variable(0.01), iterations = K::variable(0, "int64");
  K::Updates updates;
  Function step;

  explicit Mlp(double dropout) {
    weights = {K::variable(K::random_uniform({5, 16}, -0.5, 0.5, "float32", 1)), K::variable(K::zeros({16})),
               K::variable(K::random_uniform({16, 3}, -0.5, 0.5, "float32", 2)), K::variable(K::zeros({3}))};
    Tensor hidden = K::relu(K::bias_add(K::dot(x, weights[0]), weights[1]));
    if (dropout > 0) hidden = K::dropout(hidden, dropout, K::None, /*seed=*/7);
    Tensor loss = K::mean(
        K::categorical_crossentropy(y, K::bias_add(K::dot(hidden, weights[2]), weights[3]), /*from_logits=*/true));
    Tensors g = K::gradients(loss, weights);
    Tensor t = K::cast(iterations, "float32") + 1.0;
    Tensor scaled = rate * K::sqrt(1.0 - K::pow(K::constant(0.999), t)) / (1.0 - K::pow(K::constant(0.9), t));
    updates.push_back({iterations, iterations + 1});
    for (int i = 0; i < 4; ++i) {
      Tensor m = K::variable(K::zeros(K::int_shape(weights[i]))), v = K::variable(K::zeros(K::int_shape(weights[i])));
      Tensor m_t = 0.9 * m + 0.1 * g[i], v_t = 0.999 * v + 0.001 * K::square(g[i]);
      updates.push_back({m, m_t});
      updates.push_back({v, v_t});
      updates.push_back({weights[i], weights[i] - scaled * m_t / (K::sqrt(v_t) + 1e-7)});
    }
    step = K::function({x, y}, {loss}, updates);
  }
};

/// What `run` returns with graphs and without.
template <class F>
void check_same(F run) {
  const auto alone = with_graphs(false, run);
  const Counting counting;
  const auto once = with_graphs(true, run);
  CHECK(counting.graphs() > 0);
  CHECK(alone == once);
}

Tensors batch(int k) {
  return {K::random_uniform({8, 5}, -1, 1, "float32", 100 + k),
          K::one_hot(K::random_uniform({8}, 0, 3, "int32", 200 + k), 3)};
}
void append(std::vector<float>& to, const Tensors& from) {
  for (const Tensor& t : from)
    for (float v : values(t)) to.push_back(v);
}

}  // namespace

TEST_CASE("a training step of a network costs one launch from its third call on", "[device][graph]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope("cuda:0");
  for (double dropout : {0.0, 0.5}) {
    check_same([&] {
      Mlp net(dropout);
      std::vector<float> seen;
      std::vector<Tensors> others;
      const bool graphs = may_take(FastPath::device_graph);
      for (int k = 1; k <= 30; ++k) {
        const Tensors fed = batch(1);
        if (k % 3 != 0) others.push_back(fed);  // what comes next has another address
        const std::int64_t before = enqueued();
        const Counting counting;
        Tensor loss = net.step(fed)[0];
        if (before >= 0 && k >= kFirst) CHECK((enqueued() - before == 1) == graphs);
        if (graphs) CHECK(counting.graphs() == (k >= kFirst ? 1 : 0));
        append(seen, {loss});
      }
      CHECK(seen[29] < seen[0]);
      CHECK(K::eval(net.iterations).item<std::int64_t>() == 30);
      append(seen, net.weights);
      return seen;
    });
  }
}

TEST_CASE("graphs read variables as they are, whoever changed them", "[device][graph]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope("cuda:0");
  check_same([] {
    Mlp net(0.5);
    Function predict = K::function({net.x}, {K::softmax(K::dot(net.x, net.weights[0]) + net.weights[1])});
    std::vector<float> seen;
    std::vector<Tensor> held;
    for (int k = 0; k < 40; ++k) {
      const Tensors fed = batch(k);
      append(seen, net.step(fed));
      append(seen, predict({fed[0]}));  // reads what the other function updates
      if (k % 7 == 3) K::set_value(net.rate, 0.01 / k);
      if (k % 9 == 4) K::update(net.weights[1], K::ones({16}) * 0.01 * k);
      if (k % 5 == 2) held.push_back(K::eval(net.weights[0]));  // the update in place has to leave this alone
      if (k % 6 == 5) held.clear();
      if (k == 20) K::clear_session();
    }
    append(seen, Tensors(std::initializer_list<Tensor>{net.weights[0], net.weights[3]}));
    for (const Tensor& t : held) append(seen, {t});
    return seen;
  });
}

TEST_CASE("a function with graphs is called from two threads, on one stream or two", "[device][graph]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope("cuda:0");
  for (bool two : {false, true}) {
    Tensor x = K::placeholder({32, 32}), w = K::variable(K::random_uniform({32, 32}, -0.2, 0.2, "float32", 5)),
           n = K::variable(0.0);
    Function f = K::symbolic([&] {
      return K::function({x}, {K::dot(K::tanh(K::dot(x, w)), w) + 1.0, K::sum(K::tanh(K::dot(w, x)))},
                         {K::update_add(n, 1.0)});
    })();
    // Their updates change nothing, but where they are: both hold, drop and give back what others read.
    Function shake = K::function({}, {}, {{w, K::reverse(K::reverse(w, 0), 0)}});
    constexpr int kCalls = 60;
    std::vector<std::vector<float>> expected, got[2];
    auto fed = [](int k) { return K::random_uniform({32, 32}, -1, 1, "float32", 300 + k); };
    with_graphs(false, [&] {
      for (int k = 0; k < kCalls; ++k) append(expected.emplace_back(), f({fed(k)}));
    });
    const Counting counting;
    std::vector<std::thread> threads;
    for (auto& results : got)
      threads.emplace_back([&] {
        DeviceScope here("cuda:0");
        std::unique_ptr<Stream> stream;
        std::unique_ptr<StreamScope> on;
        if (two) {
          stream = std::make_unique<Stream>("cuda:0");
          on = std::make_unique<StreamScope>(*stream);
        }
        for (int k = 0; k < kCalls; ++k) {
          append(results.emplace_back(), f({fed(k)}));
          if (!two) shake({});
          append(results.back(), {fed(k) * 2.0});  // a single call in between
          results.back().resize(expected[static_cast<std::size_t>(k)].size());
        }
        if (two) stream->synchronize();
      });
    for (std::thread& t : threads) t.join();
    CHECK(counting.graphs() > 0);
    CHECK(got[0] == expected);
    CHECK(got[1] == expected);
    if (!two) CHECK(values(n)[0] == 3 * kCalls);
  }
}

TEST_CASE("an error in a function with graphs changes nothing, and the next call is right", "[device][graph]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope("cuda:0");
  check_same([] {
    Tensor x = K::placeholder({4}), i = K::placeholder({1}, K::None, "int32"),
           w = K::variable(K::constant({1, 2, 3, 4}));
    Function f = K::function({x, i}, {K::sum(w * x), K::gather(w, i)}, {{w, w * 0.5 + x}});
    std::vector<float> seen;
    int thrown = 0;
    for (int k = 0; k < 30; ++k) {
      try {
        append(seen, f({K::ones({4}) * k, K::constant({k % 11 == 10 ? 9 : k % 4}, "int32")}));
      } catch (const ValueError& e) {
        CHECK(
            std::string(e.what()) ==
            "gather: indices hold 9, which is out of range for an axis of size 4; KASSETTE_CUDA_SYNC=1 stops at the op itself");
        ++thrown;
      }
      append(seen, {w});
    }
    CHECK(thrown == 2);
    return seen;
  });
}

TEST_CASE("with memory nearly out a function with graphs gives the same or says so", "[device][graph]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope("cuda:0");
  auto run = [](std::int64_t more) {
    Mlp net(0.5);
    const Tensors fed = batch(1);
    std::vector<float> seen;
    int refused = 0;
    for (int k = 0; k < 12; ++k) {
      if (k >= 3) set_memory_limit(memory_stats("cuda:0").live + more, "cuda:0");
      try {
        append(seen, net.step(fed));
      } catch (const MemoryError&) {
        ++refused;
      }
    }
    set_memory_limit(0, "cuda:0");
    append(seen, net.weights);
    return std::pair(seen, refused);
  };
  const auto whole = run(1 << 30);
  CHECK(whole.second == 0);
  bool some = false, all = false;
  for (std::int64_t more = 512; more <= 32 << 10; more += 1536) {
    const auto got = run(more);
    some = some || got.second > 0;
    all = all || got.second == 0;
    if (got.second == 0) CHECK(got.first == whole.first);
    if (got.second == 9)
      CHECK(std::vector<float>(got.first.begin(), got.first.begin() + 3) ==
            std::vector<float>(whole.first.begin(), whole.first.begin() + 3));
  }
  CHECK(some);
  CHECK(all);
}

TEST_CASE("a loop in a function is part of its graph", "[device][graph]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope("cuda:0");
  check_same([] {
    Tensor x = K::placeholder({2, 6, 4}), w = K::variable(K::random_uniform({4, 4}, -0.5, 0.5, "float32", 9));
    auto step = [&](const Tensor& in, const Tensors& states) -> K::Step {
      Tensor h = K::tanh(in + K::dot(states[0], w));
      return K::Step{h, {h}};
    };
    Tensor loss = K::sum(K::rnn(step, x, {K::zeros({2, 4})}).last_output);
    Function f = K::function({x}, {loss}, {{w, w - 0.05 * K::gradients(loss, {w})[0]}});
    std::vector<float> seen;
    for (int k = 0; k < 20; ++k) append(seen, f({K::random_uniform({2, 6, 4}, -1, 1, "float32", 50 + k)}));
    append(seen, {w});
    return seen;
  });
}

TEST_CASE("a function over two devices has the values that it has on one", "[device][graph]") {
  if (!has_device("cuda:0")) return;
  // The first layer is on one device, the second on another: values go over, and their gradients come back.
  auto trained = [](const char* first, const char* second) {
    auto number_on = [](const char* device, const Shape& shape, int seed) {
      return K::variable(K::random_uniform(shape, -0.5, 0.5, "float64", seed).to(device), float64);
    };
    Tensor x = K::placeholder({3, 5}, None, float64), w = number_on(first, {5, 4}, 1), v = number_on(second, {4, 2}, 2),
           steps = K::variable(K::zeros({}, "float64").to(second), float64);
    Tensor hidden = K::tanh(K::dot(x.to(first), w) * 2.0),
           out = K::sigmoid(K::dot(hidden.to(second), v) - steps * 0.01);
    Tensor loss = K::mean(K::square(out - 0.25));
    Tensors g = K::gradients(loss, {w, v});
    K::Updates updates;
    updates.push_back({w, w - 0.5 * g[0]});
    updates.push_back({v, v - 0.5 * g[1]});
    updates.push_back({steps, steps + 1.0});
    Function f = K::function({x}, {loss, hidden}, updates);
    std::vector<double> seen;
    auto see = [&](const Tensor& t) {
      for (double number : K::eval(t).to(cpu).to_vector<double>()) seen.push_back(number);
    };
    for (int k = 0; k < 12; ++k) {
      const Tensors results = f({K::random_uniform({3, 5}, -1, 1, "float64", 300 + k)});
      CHECK(results[0].device() == Device(second));
      CHECK(results[1].device() == Device(first));
      for (const Tensor& t : Tensors{results[0], results[1], w, v, steps}) see(t);
    }
    return seen;
  };
  const std::vector<double> wanted = trained("cpu", "cpu");
  std::vector<std::pair<const char*, const char*>> pairs{{"cuda:0", "cpu"}, {"cpu", "cuda:0"}};
  if (!device_absent(Device("cuda:1"))) pairs.insert(pairs.end(), {{"cuda:0", "cuda:1"}, {"cuda:1", "cuda:0"}});
  for (const auto& pair : pairs) {
    const char *first = pair.first, *second = pair.second;
    INFO(first << " and " << second);
    const auto alone = with_graphs(false, [&] { return trained(first, second); });
    CHECK(alone == with_graphs(true, [&] { return trained(first, second); }));
    REQUIRE(alone.size() == wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(alone[i] == Approx(wanted[i]).epsilon(1e-12));
  }
}

TEST_CASE("a function that goes while its graph waits to run has run", "[device][graph]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope("cuda:0");
  const Tensor in = K::ones({3, 2});
  Tensors kept;
  const Counting counting;
  for (int k = 0; k < 4; ++k) {
    Tensor x = K::placeholder({3, 2}), w = K::variable(K::ones({2, 2}) * k);
    Function f = K::function({x}, {K::dot(x, w) + 1.0});
    for (int i = 0; i < kFirst; ++i) kept.push_back(f({in})[0]);
  }
  CHECK(counting.graphs() == 4);
  for (int k = 0; k < 4; ++k)
    CHECK(values(kept[kFirst * k + kFirst - 1]) == std::vector<float>(6, static_cast<float>(2 * k + 1)));
}

TEST_CASE("where CUDA refuses a graph the function runs without, and the log says so once", "[device][graph]") {
  if (!has_device("cuda:0") || enqueued() < 0) return;
  DeviceScope scope("cuda:0");
  const Environment refused("EMULATED_CUDA_NO_GRAPH", "1");
  auto train = [] {
    Mlp net(0.5);
    std::vector<float> seen;
    for (int k = 0; k < 8; ++k) append(seen, net.step(batch(k)));
    append(seen, net.weights);
    return seen;
  };
  const auto alone = with_graphs(false, train);
  const Counting counting;
  CHECK(with_graphs(true, train) == alone);
  CHECK(counting.graphs() == 0);
  struct Debug {
    LogLevel before = log_level();
    Debug() { set_log_level(LogLevel::debug); }
    ~Debug() { set_log_level(before); }
  };
  const std::string said = stderr_of([&] {
    const Debug level;
    train();
  });
  CHECK(said == "kassette: debug: function: runs without a CUDA graph, because CUDA refused it: an emulated error\n");
}

TEST_CASE("where CUDA or cuBLAS refuses a call while it captures the function runs without a graph",
          "[device][graph]") {
  if (!has_device("cuda:0") || enqueued() < 0) return;
  DeviceScope scope("cuda:0");
  auto train = [] {
    Mlp net(0.5);
    Tensor x = K::placeholder({3}), y = K::placeholder({3});
    Function join = K::function({x, y}, {K::concatenate({K::exp(x), y}, 0) * 2.0});  // a copy on the device is captured
    std::vector<float> seen;
    for (int k = 0; k < 8; ++k) {
      append(seen, net.step(batch(k)));
      append(seen, join({K::ones({3}) * k, K::constant({1, 2, 3})}));
    }
    append(seen, net.weights);
    CHECK(K::eval(net.iterations).item<std::int64_t>() == 8);  // no step was taken twice
    return seen;
  };
  const auto alone = with_graphs(false, train);
  int without = 0;
  for (int call = 1; call <= 60; ++call) {  // a step captures some forty
    INFO("call " << call);
    const Environment refused("EMULATED_CUDA_NO_CAPTURE", std::to_string(call).c_str());
    const Counting counting;
    CHECK(with_graphs(true, train) == alone);
    without += counting.graphs() == 0;
  }
  CHECK(without > 0);
}

TEST_CASE("what is freed while a thread captures goes to nobody else before the graph is launched", "[device][graph]") {
  if (!has_device("cuda:0")) return;
  CudaDeviceApi& device = cuda_device_api("cuda:0");
  const std::vector<std::byte> ones(12345, std::byte{1}), twos(ones.size(), std::byte{2});
  const auto bytes = static_cast<std::int64_t>(ones.size());
  DeviceGraph* graph = nullptr;
  REQUIRE_FALSE(device.begin_capture(graph));  // the first run is a plain one
  for (bool by_other : {false, true}) {
    void *from = device.allocate(bytes), *to = device.allocate(bytes), *again = nullptr, *beside = nullptr;
    device.copy_from_host(from, ones.data(), bytes);
    REQUIRE(device.begin_capture(graph));
    device.copy(to, from, bytes);
    if (!by_other) device.release(from, bytes);
    std::thread([&] {
      if (by_other) device.release(from, bytes);
      CHECK_FALSE(device.begin_capture(graph));
      beside = device.allocate(bytes);
      device.copy_from_host(beside, twos.data(), bytes);
    }).join();
    CHECK(beside != from);
    set_memory_limit(memory_stats("cuda:0").live, "cuda:0");  // gives back what is free, but for that block
    set_memory_limit(0, "cuda:0");
    again = device.allocate(bytes);
    CHECK(again == from);
    CHECK(device.launch_captured());
    CHECK(device.end_capture() == nullptr);
    std::vector<std::byte> got(ones.size());
    device.copy_to_host(got.data(), to, bytes);
    CHECK(got == ones);
    for (void* block : {to, again, beside}) device.release(block, bytes);
  }
  device.destroy(graph);
}

TEST_CASE("bytes of the host that are copied while a thread captures are those of the call", "[device][graph]") {
  if (!has_device("cuda:0")) return;
  CudaDeviceApi& device = cuda_device_api("cuda:0");
  DeviceGraph* graph = nullptr;
  REQUIRE_FALSE(device.begin_capture(graph));
  void *to = device.allocate(1000), *copy = device.allocate(1000);
  for (int k = 1; k < 5; ++k) {
    std::vector<std::byte> given(1000, static_cast<std::byte>(k)), got(1000);
    REQUIRE(device.begin_capture(graph));
    device.copy_from_host(to, given.data(), 1000);
    device.copy(copy, to, 1000);
    std::ranges::fill(given, std::byte{99});
    CHECK(device.launch_captured());
    CHECK_FALSE(device.end_capture());
    device.copy_from_host(to, given.data(), 1000);
    device.copy_to_host(got.data(), copy, 1000);
    CHECK(got == std::vector<std::byte>(1000, static_cast<std::byte>(k)));
  }
  for (void* block : {to, copy}) device.release(block, 1000);
  device.destroy(graph);
}

TEST_CASE("what a thread waits for while it captures is there, and the rest is captured no longer", "[device][graph]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope("cuda:0");
  const auto run = [] {
    Tensor x = K::placeholder({3, 2}), w = K::variable(K::ones({2}));
    Tensor doubled = K::tanh(K::dot(x, K::ones({2, 2}))) * w;
    Function f =
        K::function({x}, {K::switch_(K::sum(doubled) > 0.0, doubled * 2.0, doubled - 1.0) + w}, {{w, w * 1.5 + 0.25}});
    std::vector<float> seen;
    for (int k = 0; k < 12; ++k) append(seen, f({K::random_uniform({3, 2}, -1, 1, "float32", 70 + k)}));
    append(seen, {w});
    return seen;
  };
  const auto alone = with_graphs(false, run);
  CHECK(with_graphs(true, run) == alone);
  CudaDeviceApi& device = cuda_device_api("cuda:0");
  DeviceGraph* graph = nullptr;
  REQUIRE_FALSE(device.begin_capture(graph));
  const Tensor one = K::ones({3});
  for (int k = 0; k < 3; ++k) {
    REQUIRE(device.begin_capture(graph));
    CHECK(values(one * 3.0 + 1.0) == std::vector<float>(3, 4.0f));
    CHECK_FALSE(device.launch_captured());
    CHECK_FALSE(device.end_capture());
  }
  CHECK_FALSE(device.begin_capture(graph));  // three times it came to nothing
  device.destroy(graph);
}

TEST_CASE("graphs take no memory from the cache, and wait for nothing", "[device][graph]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope("cuda:0");
  static auto* waits = emulated<std::int64_t()>("emulated_waits");
  Mlp net(0.5);
  const Tensors fed = batch(1);
  for (int k = 0; k < 2; ++k) net.step(fed);
  const MemoryStats before = memory_stats("cuda:0");
  const std::int64_t waited = waits ? waits() : 0;
  for (int k = 0; k < 10; ++k) net.step(fed);
  const MemoryStats after = memory_stats("cuda:0");
  CHECK(after.live == before.live);
  CHECK(after.cached == before.cached);
  CHECK(after.allocations == before.allocations);
  CHECK((waits ? waits() : 0) == waited);
}
