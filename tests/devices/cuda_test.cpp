// tests/devices/cuda_test.cpp - CUDA devices: what they refuse, their memory, copies between them. Runs on a GPU or,
// without one, on the emulated device (tests/emulated_cuda).
#include <kassette/backend.h>
#include <kassette/error.h>
#include <kassette/runtime.h>
#include <kassette/testing.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <initializer_list>

#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/environment.h"
#include "tests/results.h"
#include "tests/settings.h"
#include "tests/sweeps/sample.h"

using namespace kassette;
using namespace kassette::test;
namespace K = kassette::backend;

namespace {

/// While it lives, the emulated device is in the state after a kernel has failed.
struct FaultyDevice : Environment {
  FaultyDevice() : Environment("EMULATED_CUDA_FAULT", "1") {}
};

/// What error_of<DeviceError>(f) returns in another process: a device that has failed is lost to its own.
std::string said_in_a_child(const std::function<void()>& f) {
  int ends[2];
  if (pipe(ends)) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    const std::string said = error_of<DeviceError>(f);
    _exit(write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string said(4096, '\0');
  said.resize(static_cast<std::size_t>(std::max<ssize_t>(read(ends[0], said.data(), said.size()), 0)));
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return said;
}

}  // namespace

TEST_CASE("operands on two devices are refused in one line that names both", "[device]") {
  if (!has_device("cuda:0")) return;
  Tensor here = K::ones({2, 3}), there = K::ones({2, 3}).to("cuda:0");
  CHECK(error_of<DeviceError>([&] { here + there; }) == "add: x is on cpu, y on cuda:0; move one with .to(\"cpu\")");
  CHECK(error_of<DeviceError>([&] {
          K::dot(there, K::ones({3, 2}));
        }) == "dot: one operand is on cuda:0, another on cpu; move one with .to(\"cuda:0\")");
}

TEST_CASE("numbers and rank-0 tensors of the CPU go to the device of the tensors beside them", "[device]") {
  if (!has_device("cuda:0")) return;
  Tensor x = K::variable(K::constant({1, 2, 3}).to("cuda:0")), rate = K::variable(0.5);
  Tensor y = 2.0 * x + 1.0, z = y * rate;
  CHECK(y.device() == Device("cuda:0"));
  CHECK(floats(z) == std::vector<float>{1.5, 2.5, 3.5});
  Tensors g = K::gradients(K::sum(z), {x, rate});
  CHECK(floats(g[0]) == std::vector<float>{1, 1, 1});
  CHECK(g[1].device() == cpu);
  CHECK(g[1].item<float>() == 15);
  K::update_sub(x, rate * g[0]);
  CHECK(floats(x) == std::vector<float>{0.5, 1.5, 2.5});
}

TEST_CASE("the shape of draws on a device may be a tensor of int32", "[device]") {
  if (!has_device("cuda:0")) return;
  auto drawn = [] {
    Tensor x = K::ones({4, 3, 5}), shape = K::shape(K::ones({4, 3, 1}));
    return Tensors{K::dropout(x, 0.5, shape, 3),
                   K::random_uniform(shape, K::constant({{0}, {1}, {2}}), K::constant({5, 7}), None, 3)};
  };
  Tensors here = drawn(), there;
  {
    DeviceScope scope("cuda:0");
    there = drawn();
  }
  for (std::int64_t i = 0; i < here.size(); ++i) CHECK(same_bits(there[i].to("cpu"), here[i]));
}

TEST_CASE("inside a DeviceScope tensors are made on its device, with the numbers of the CPU", "[device]") {
  if (!has_device("cuda:0")) return;
  auto made = [] {
    return Tensors{K::constant({{1, 2}, {3, 4}}),
                   K::constant(7, "int32", {2, 3}),
                   K::variable({1, 2}),
                   K::zeros({2, 2}),
                   K::ones({3}, "int8"),
                   K::eye(3),
                   K::arange(2, 9, 3),
                   K::arange(0.5, 2.0, 0.25),
                   K::random_normal({40}, 1, 2, "float32", 3),
                   K::random_uniform({70}, -1, 1, "float64", 3),
                   K::truncated_normal({33}, 0, 1, "float16", 3),
                   K::random_uniform({70}, 0, 9, "int64", 3),
                   K::random_binomial({70}, 0.3, "bfloat16", 3),
                   K::random_normal_variable({20}, 0, 1, "float64", None, 3)};
  };
  Tensors here = made(), there;
  {
    DeviceScope scope("cuda:0");
    there = made();
    CHECK(K::placeholder({2}).device() == Device("cuda:0"));
  }
  CHECK(K::ones({2}).device() == cpu);
  check_same_on("cuda:0", there, here);
}

TEST_CASE("a function with a placeholder on a CUDA device takes feeds of the CPU", "[device]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope("cuda:0");
  Tensor x = K::placeholder({K::None, 2}), w = K::variable({{1, 2}, {3, 4}});
  auto f = K::function({x}, {K::dot(x, w) + 1.0, K::dropout(x, 0.5)});
  Tensors ys = f({K::eval(K::constant({{1, 1}})).to("cpu")});
  CHECK(ys[0].device() == Device("cuda:0"));
  CHECK(floats(ys[0]) == std::vector<float>{5, 7});
}

TEST_CASE("what feed_dict gives comes to the device of what it is given for", "[device]") {
  if (!has_device("cuda:0")) return;
  Tensor here = K::constant({1, 2}), wide = K::constant({3, 4}, "float64");
  DeviceScope scope("cuda:0");
  Tensor x = K::placeholder({K::None});
  CHECK(floats(K::function({}, {x * 2.0}, K::FunctionOptions{.feed_dict = {{x, here}}})({})[0]) ==
        std::vector<float>{2, 4});
  CHECK(floats(K::function({}, {x + K::ones({2})}, K::FunctionOptions{.feed_dict = {{x, wide}}})({})[0]) ==
        std::vector<float>{4, 5});
}

TEST_CASE("a CUDA device that is not there is an error that says how many there are", "[device]") {
  if (!has_device("cuda:0")) return;
  std::string said = error_of<DeviceError>([] { K::ones({2}).to("cuda:97"); });
  CHECK(said.rfind("cuda:97 is not available: there ", 0) == 0);
  CHECK(said.find('\n') == std::string::npos);
}

TEST_CASE("memory that a CUDA device does not have is an error, and what was there still is", "[device]") {
  if (!has_device("cuda:0")) return;
  Tensor x = K::ones({1000, 10}).to("cuda:0");
  MemoryStats before = memory_stats("cuda:0");
  std::string said = error_of<MemoryError>([&] {
    MemoryLimit scope(before.live + (1 << 20), "cuda:0");
    K::repeat_elements(x, 1000, 1);
  });
  INFO(said);
  CHECK(said.rfind("repeat_elements: out of memory on cuda:0: 38.1 MiB asked for", 0) == 0);
  CHECK(said.find('\n') == std::string::npos);
  CHECK(memory_stats("cuda:0").live == before.live);
  CHECK(K::sum(x).item<float>() == 10000);
}

TEST_CASE("a batch of more products than an axis of a grid is long", "[device]") {
  if (!has_device("cuda:0")) return;
  Tensor x = K::reshape(K::arange(0, 140000, 1, "float32"), {70000, 2, 1}), y = K::ones({70000, 1, 1}).to("cuda:0");
  CHECK(same_bits(K::batch_dot(x.to("cuda:0"), y).to("cpu"), x));
}

TEST_CASE("memory of a device is freed on that device, and the one that was current stays", "[device][cached]") {
  if (!has_device("cuda:3")) return;
  { Tensor x = K::ones({1 << 20}).to("cuda:3"); }
  Tensor here = K::ones({2}).to("cuda:0");
  const std::int64_t cached = memory_stats("cuda:3").cached;
  { MemoryLimit least(1, "cuda:3"); }  // the emulated device refuses frees and work for another than the current device
  CHECK(memory_stats("cuda:3").cached < cached);
  CHECK(floats(here + 1) == std::vector<float>{2, 2});
}

TEST_CASE("an error of a kernel is said where somebody waits, with the ops before; then the device is lost",
          "[device][cached]") {
  if (!has_device("cuda:0")) return;
  if (!std::getenv("KASSETTE_TEST_CUDA")) return skip("a GPU makes no errors on demand");
  const std::string before = "at or before 'exp', after 'square', 'exp', 'to'";
  CHECK(said_in_a_child([] {
          Tensor x = K::ones({2}).to("cuda:4"), y = K::exp(x);  // afterwards exp finds memory without asking CUDA
          y = K::square(x);
          FaultyDevice fault;
          y = K::exp(x);
          y.to("cpu");
        }) == "to: CUDA says: an illegal memory access was encountered " + before +
                  ", and cuda:4 is lost to this process; KASSETTE_CUDA_SYNC=1 tells which op it was");
  using Use = void (*)(const Tensor&);
  for (Use use : std::initializer_list<Use>{
           [](const Tensor& x) { K::exp(x); }, [](const Tensor& x) { x.to("cpu"); },
           [](const Tensor& x) { K::dot(x, x); }, [](const Tensor&) { K::ones({2}).to("cuda:4"); },
           [](const Tensor&) { synchronize("cuda:4"); }, [](const Tensor&) { empty_cache("cuda:4"); }})
    CHECK(said_in_a_child([&] {
            Tensor x = K::ones({2, 2}).to("cuda:4"), y = K::exp(x);
            y = K::square(x);
            y = K::exp(x);
            {
              FaultyDevice fault;
              error_of<DeviceError>([&] { y.to("cpu"); });
            }
            use(x);
          }) ==
          "cuda:4 is lost to this process since an error " + before + ": an illegal memory access was encountered");
}

TEST_CASE("an error of a kernel is not taken for a lack of memory", "[device]") {
  if (!has_device("cuda:0")) return;
  if (!std::getenv("KASSETTE_TEST_CUDA")) return skip("a GPU makes no errors on demand");
  const std::string said = said_in_a_child([] {
    Tensor x = K::ones({2}).to("cuda:4");
    FaultyDevice fault;
    K::zeros({1 << 20}).to("cuda:4");
  });
  CHECK(said.rfind("allocate: CUDA says: an illegal memory access was encountered at or before 'to'", 0) == 0);
}

TEST_CASE("with KASSETTE_CUDA_SYNC an error is said by the op that made it: kernels, products, copies, zeros",
          "[device][cached]") {
  if (!has_device("cuda:0")) return;
  if (!std::getenv("KASSETTE_TEST_CUDA")) return skip("a GPU makes no errors on demand");
  using Use = Tensor (*)(const Tensor&);
  const std::vector<std::pair<const char*, Use>> ops = {
      {"exp", [](const Tensor& x) { return K::exp(x); }},
      {"dot", [](const Tensor& x) { return K::dot(x, x); }},
      {"to", [](const Tensor& x) { return x.to("cuda:5"); }},
      {"to", [](const Tensor& x) { return x.to("cpu"); }},
      {"to",
       [](const Tensor&) {
         return K::constant({1, 2}).to("cuda:4");
       }},
      {"concatenate",
       [](const Tensor& x) {
         return K::concatenate({x, x}, 0);
       }},
      {"permute_dimensions",
       [](const Tensor& x) {
         return K::permute_dimensions(x, {1, 0});
       }},
      {"dot",
       [](const Tensor&) {  // empty sums
         return K::dot(K::zeros({2, 0}).to("cuda:4"), K::zeros({0, 2}).to("cuda:4"));
       }},
      {"temporal_padding",
       [](const Tensor& x) {
         return K::temporal_padding(K::reshape(x, {1, 2, 2}), {1, 1});
       }},
      {"cast", [](const Tensor& x) { return K::cast(x, "int32"); }}};
  for (const auto& [name, use] : ops) {
    const std::string said = said_in_a_child([use = use] {
      setenv("KASSETTE_CUDA_SYNC", "1", 1);  // read when a device is first used
      Tensor x = K::ones({2, 2}).to("cuda:4"), y;
      x.to("cuda:5");
      y = use(x);  // has its memory from now on
      y = Tensor();
      FaultyDevice fault;
      y = use(x);
    });
    CHECK(said == name + std::string(": CUDA says: an illegal memory access was encountered, and cuda:") +
                      (said.find("cuda:5") != said.npos ? "5" : "4") + " is lost to this process");
  }
  CHECK(said_in_a_child([] {
          setenv("KASSETTE_CUDA_SYNC", "0", 1);
          Tensor x = K::ones({2}).to("cuda:4"), y = K::exp(x);
          y = Tensor();
          FaultyDevice fault;
          y = K::exp(x);
        }) == "no error");
}

TEST_CASE("tensors on a CUDA device print, and give items and vectors", "[device]") {
  if (!has_device("cuda:0")) return;
  Tensor x = K::constant({{1, 2}, {3, 4}}).to("cuda:0");
  CHECK(K::max(x).item<float>() == 4);
  CHECK(floats(x[1]) == std::vector<float>{3, 4});
  CHECK(printed(x).find("cuda:0") != std::string::npos);
}

TEST_CASE("a small network trains on a CUDA device as on the CPU, by function too", "[device]") {
  if (!has_device("cuda:0")) return;
  auto train = [](Device device, bool by_function) {
    auto values = [](std::int64_t n, double scale) {
      std::vector<double> v;
      for (std::int64_t i = 0; i < n; ++i) v.push_back(scale * (static_cast<double>(i * 7 % 11) - 5));
      return v;
    };
    Tensor x = K::constant(values(12, 0.2), "float64", {4, 3}), t = K::one_hot(K::constant({0, 1, 1, 0}, "int32"), 2);
    Tensor w = K::variable(K::constant(values(15, 0.1), "float64", {3, 5}).to(device), "float64");
    Tensor u = K::variable(K::constant(values(10, 0.1), "float64", {5, 2}).to(device), "float64");
    Tensor target = K::cast(t, "float64").to(device);
    auto loss_of = [&](const Tensor& in) {
      return K::mean(K::categorical_crossentropy(target, K::dot(K::relu(K::dot(in, w)), u), true));
    };
    std::vector<double> losses;
    if (by_function) {
      Tensor in = K::placeholder({K::None, 3}, None, "float64");
      Tensor loss = loss_of(in.to(device));
      Tensors g = K::gradients(loss, {w, u});
      auto step = K::function({in}, {loss}, {{w, w - 0.5 * g[0]}, {u, u - 0.5 * g[1]}});
      for (int i = 0; i < 5; ++i) losses.push_back(step({x})[0].item<double>());
      return losses;
    }
    for (int i = 0; i < 5; ++i) {
      Tensor loss = loss_of(x.to(device));
      Tensors g = K::gradients(loss, {w, u});
      losses.push_back(loss.item<double>());
      K::update_sub(w, 0.5 * g[0]);
      K::update_sub(u, 0.5 * g[1]);
    }
    return losses;
  };
  std::vector<double> wanted = train("cpu", false);
  CHECK(wanted[4] < wanted[0]);
  for (bool by_function : {false, true}) {
    std::vector<double> got = train("cuda:0", by_function);
    for (int i = 0; i < 5; ++i) CHECK(got[i] == Approx(wanted[i]).epsilon(1e-12));
  }
}

TEST_CASE("pairs of a function bring single numbers of the CPU to the device of their variable, and refuse all else",
          "[device]") {
  if (!has_device("cuda:0")) return;
  Tensor rate = K::variable(0.25), row = K::variable({1, 2}), number = K::eval(K::constant(0.5));
  Tensor w, v;
  {
    DeviceScope scope("cuda:0");
    w = K::variable(1.0);
    v = K::variable({3, 4});
  }
  K::function({}, {}, {{w, number}})({});
  CHECK(w.device() == Device("cuda:0"));
  CHECK(floats(w) == std::vector<float>{0.5});
  CHECK(floats(K::eval(w * 2.0)) == std::vector<float>{1});
  auto follow = K::function({}, {}, {{w, rate}});
  follow({});
  CHECK(floats(w) == std::vector<float>{0.25});
  K::update(rate, 0.125);  // read at each call
  follow({});
  CHECK(floats(w) == std::vector<float>{0.125});
  Tensor x = K::placeholder(Shape{});  // of the CPU
  K::function({x}, {}, {{w, x * 2.0}})({K::constant(4)});
  CHECK(floats(w) == std::vector<float>{8});
  CHECK(error_of<DeviceError>([&] {
          K::function({}, {}, {{v, row}});
        }) == "function: update 0 is refused: the variable is on cuda:0, the value on cpu");
  CHECK(error_of<DeviceError>([&] {
          K::function({}, {}, {{row, v}});
        }) == "function: update 0 is refused: the variable is on cpu, the value on cuda:0");
  CHECK(floats(v) == std::vector<float>{3, 4});
}

TEST_CASE("a variable of feed_dict and the value of an unfed input are on the device that is declared", "[device]") {
  if (!has_device("cuda:0")) return;
  Tensor here = K::variable({1, 2});
  DeviceScope scope("cuda:0");
  Tensor x = K::placeholder({2}), there = K::variable({5, 6});
  CHECK(error_of<DeviceError>([&] {
          K::function({}, {x * 2.0}, K::FunctionOptions{.feed_dict = {{x, here}}});
        }) == "function: feed_dict gives a variable on cpu, and the tensor that it stands for is on cuda:0");
  CHECK(floats(K::function({}, {x * 2.0}, K::FunctionOptions{.feed_dict = {{x, there}}})({})[0]) ==
        std::vector<float>{10, 12});
  Tensor y = K::function({there}, {there + 1.0})({Tensor()})[0];  // a variable that is an input, unfed
  CHECK(y.device() == Device("cuda:0"));
  CHECK(floats(y) == std::vector<float>{6, 7});
}

TEST_CASE("loops and branches on a device read shapes and numbers of the CPU where they are", "[device]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope("cuda:0");
  Tensor x = K::placeholder({K::None}), n = K::shape(x)[0];
  // Sums of x[t] * (0 + 1 + ... + n - 1)
  auto triangle = [&](const Tensor& sum, const Tensor& e) {
    return sum + e * K::sum(K::cast(K::arange(n), "float32"));
  };
  auto fold = K::function({x}, {K::foldl(triangle, x, K::constant(0.0))});
  CHECK(floats(fold({K::constant({1, 2, 3})})[0]) == std::vector<float>{18});
  CHECK(floats(fold({K::constant({1, 2, 3, 4})})[0]) == std::vector<float>{60});
  // A shape of rank 1.
  auto sums = K::function({x}, {K::map_fn([&](const Tensor& e) { return e * K::sum(K::ones(K::shape(x))); }, x)});
  CHECK(floats(sums({K::constant({1, 2, 3})})[0]) == std::vector<float>{3, 6, 9});
  Tensor shape = K::shape(x);  // is used beside the element, so that it goes into the loop as it is
  auto shaped = K::function({x}, {K::map_fn([&](const Tensor& e) { return K::sum(K::reshape(x * e, shape)); }, x)});
  CHECK(floats(shaped({K::constant({1, 2, 3})})[0]) == std::vector<float>{6, 12, 18});
  auto branch = K::function(
      {x}, {K::switch_(
               K::sum(x) > 0.0, [&] { return K::sum(K::cast(K::arange(n), "float32")); }, [&] { return K::sum(x); })});
  CHECK(floats(branch({K::constant({1, 2, 3})})[0]) == std::vector<float>{3});
  CHECK(floats(branch({K::constant({-1, -2})})[0]) == std::vector<float>{-3});
  // The learning phase is on the CPU, and the result where the branches are.
  Tensor by_phase = K::in_train_phase([&] { return x * 2.0; }, [&] { return x * 3.0; });
  CHECK(by_phase.device() == Device("cuda:0"));
  CHECK(floats(K::function({x}, {by_phase + 1.0})({K::constant({1, 2})})[0]) == std::vector<float>{4, 7});
}

TEST_CASE("a gradient of one number is on the device of that number", "[device]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope("cuda:0");
  Tensor w = K::variable(2.0), x = K::placeholder(Shape{});
  CHECK(K::gradients(w, {w})[0].device() == Device("cuda:0"));
  CHECK(K::gradients(x, {x})[0].device() == Device("cuda:0"));
}

TEST_CASE("a number of the CPU beside elements of a device has the gradient that it has beside those of the CPU",
          "[device]") {
  if (!has_device("cuda:0")) return;
  for (const char* name : {"cpu", "cuda:0"}) {
    INFO(name);
    Tensor rate = K::variable(0.5), start = K::variable(2.0);  // of the CPU
    Tensor xs = K::constant({1, 2, 3}).to(name);
    auto step = [&](const Tensor& sum, const Tensor& e) { return sum * rate + e; };
    // s = ((2 r + 1) r + 2) r + 3: 6 r^2 + 2 r + 2 by r, r^3 by the start
    Tensor eager = K::foldl(step, xs, start);
    CHECK(floats(eager) == std::vector<float>{4.5});
    Tensors g = K::gradients(eager, {rate, start});
    CHECK(floats(g[0]) == std::vector<float>{4.5});
    CHECK(floats(g[1]) == std::vector<float>{0.125});
    DeviceScope scope(name);
    Tensor x = K::placeholder({K::None});
    Tensor loss = K::foldl(step, x, start);
    Tensors sym = K::gradients(loss, {rate, start});
    auto f = K::function({x}, {loss, sym[0], sym[1]});
    Tensors got = f({xs});
    CHECK(floats(got[0]) == std::vector<float>{4.5});
    CHECK(floats(got[1]) == std::vector<float>{4.5});
    CHECK(floats(got[2]) == std::vector<float>{0.125});
  }
  Tensor here = K::ones({3}), there = here.to("cuda:0");
  CHECK(error_of<DeviceError>([&] {
          K::foldl([](const Tensor& a, const Tensor& e) { return a + e; }, there, K::ones({3}));
        }).find("cuda:0") != std::string::npos);
  Tensor x = K::placeholder({3});
  CHECK(error_of<DeviceError>([&] { K::foldl([](const Tensor& a, const Tensor& e) { return a + e; }, x, there); }) ==
        "foldl: initializer is on cuda:0, elems on cpu; move one with .to(\"cpu\")");
}

TEST_CASE("a loop on two devices is refused in one line that names both", "[device]") {
  if (!has_device("cuda:0")) return;
  Tensor x = K::placeholder({5, 2}), there = K::ones({2}).to("cuda:0");
  auto latest = [](const Tensor&, const Tensor& e) { return e; };
  CHECK(error_of<DeviceError>([&] { K::foldl(latest, x, there); }) ==
        "foldl: initializer is on cuda:0, elems on cpu; move one with .to(\"cpu\")");
  Tensor sequences = K::ones({2, 5, 3}), mask = K::ones({2, 5}, "bool").to("cuda:0");
  auto step = [](const Tensors& e, const Tensors& s) { return K::Step{e[0], s}; };
  CHECK(error_of<DeviceError>([&] {
          K::rnn(step, {sequences, sequences.to("cuda:0")}, {K::ones({2, 3})});
        }) == "rnn: inputs is on cuda:0, others on cpu; move one with .to(\"cpu\")");
  CHECK(error_of<DeviceError>([&] {
          K::rnn(step, {sequences}, {K::ones({2, 3}).to("cuda:0")});
        }) == "rnn: initial_states is on cuda:0, inputs on cpu; move one with .to(\"cpu\")");
  CHECK(error_of<DeviceError>([&] {
          K::rnn(step, {sequences}, {K::ones({2, 3})}, {.mask = mask});
        }) == "rnn: mask is on cuda:0, inputs on cpu; move one with .to(\"cpu\")");
}

TEST_CASE("a state of a compiled loop stays on its device: a number is moved there, another tensor refused",
          "[device]") {
  if (!has_device("cuda:0")) return;
  DeviceScope scope("cuda:0");
  Tensor x = K::placeholder({K::None}), rows = K::placeholder({K::None, 2});
  auto away = [](const Tensor& sum, const Tensor& e) { return (sum + e).to("cpu"); };
  auto f = K::function({x}, {K::foldl(away, x, K::constant(0.5))});
  for (const auto& [in, sum] : {std::pair(K::zeros({0}), 0.5f), std::pair(K::constant({1, 2, 3}), 6.5f)}) {
    Tensor out = f({in})[0];
    CHECK(out.device() == Device("cuda:0"));
    CHECK(floats(out) == std::vector<float>{sum});
  }
  CHECK(error_of<DeviceError>([&] { K::foldl(away, rows, K::ones({2})); }) ==
        "foldl: the step returned state 0 on cpu, it was on cuda:0; the device must stay the same");
}

TEST_CASE("branches on two devices are refused in one line that names both", "[device]") {
  if (!has_device("cuda:0")) return;
  Tensor x = K::placeholder({2}), there = K::ones({2}).to("cuda:0");
  CHECK(error_of<DeviceError>([&] {
          K::switch_(
              K::sum(x) > 0.0, [&] { return x * 2.0; }, [&] { return there * 2.0; });
        }) == "switch_: one branch is on cpu, the other on cuda:0");
}
