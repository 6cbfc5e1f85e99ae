// tests/devices/cudnn_cuda_test.cpp - convolution and pooling by cuDNN: what it takes, its values against the CPU's,
// its memory, and what happens where it refuses. On the emulated device a cuDNN is there if KASSETTE_CUDNN names it.
#include <kassette/backend.h>
#include <kassette/runtime.h>
#include <kassette/show_config.h>
#include <kassette/stream.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "core/fast_paths.h"
#include "core/log.h"
#include "devices/plugin.h"
#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/results.h"
#include "tests/settings.h"
#include "tests/stderr_of.h"

using namespace kassette;
using namespace kassette::test;
namespace K = kassette::backend;

namespace {

std::string cudnn() {
  char words[256];
  devices::device_library()->describe_cudnn(words, sizeof words);
  return words;
}
bool has_cudnn() {
  if (!has_device("cuda:0")) return false;
  const std::string version = cudnn();
  const bool found = version.rfind("none", 0) != 0;
  if (!found) skip("no cuDNN (" + version + ")");
  return found;
}

/// A counter of the emulated cuDNN; -1 where a real one computes.
std::int64_t count(const char* name) {
  auto* asked = emulated<std::int64_t()>(name);
  return asked ? asked() : -1;
}
/// How many calls cuDNN computes while something runs; `wanted` where they are not counted.
template <class F>
std::int64_t calls_of(F run, std::int64_t wanted) {
  const std::int64_t before = count("emulated_cudnn_calls");
  run();
  return before < 0 ? wanted : count("emulated_cudnn_calls") - before;
}

Tensor drawn(const std::vector<std::int64_t>& shape, DType dtype, std::uint64_t seed) {
  std::size_t n = 1;
  for (std::int64_t d : shape) n *= static_cast<std::size_t>(d);
  return K::eval(K::cast(f64(numbers(n, seed), shape), dtype));
}
std::vector<double> wide(const Tensor& t) { return values(K::cast(K::eval(t).to("cpu"), float64)); }

using Layer = std::function<Tensor(const Tensors& in)>;

/// The value of a layer, and its gradients by all inputs, as seen through weights that differ.
Tensors with_gradients(const Layer& layer, const Tensors& in, const Device& device, DType dtype) {
  DeviceScope scope(device);
  Tensors held;
  for (const Tensor& t : in) held.push_back(K::variable(K::cast(t, dtype).to(device), dtype));
  const Tensor y = layer(held);
  std::vector<double> by;
  for (std::int64_t i = 0; i < y.size(); ++i) by.push_back(0.5 + static_cast<double>(i % 7) / 8);
  const Tensor weights = K::cast(K::constant(by, float64, y.shape()), dtype).to(device);
  Tensors all{y};
  for (const Tensor& g : K::gradients(K::sum(y * weights), held)) all.push_back(g);
  return all;
}

/// Checks a layer on the device against the CPU's float64, and that cuDNN makes `calls` calls for it. Inputs are
/// exact in every dtype.
void check_layer(const Layer& layer, const Tensors& in, DType dtype, std::int64_t calls) {
  Tensors got;
  CHECK(calls_of([&] { got = with_gradients(layer, in, "cuda:0", dtype); }, calls) == calls);
  const Tensors wanted = with_gradients(layer, in, cpu, float64);
  const double off = dtype == float64 ? 1e-13 : dtype == float32 ? 1e-5 : dtype == float16 ? 2e-3 : 1.6e-2;
  for (std::int64_t i = 0; i < wanted.size(); ++i) {
    INFO("result " << i);
    check_close(wide(got[i]), wide(wanted[i]), off, off);
  }
  const Tensors again = with_gradients(layer, in, "cuda:0", dtype);
  for (std::int64_t i = 0; i < got.size(); ++i) CHECK(same_bits(again[i].to("cpu"), got[i].to("cpu")));
}

/// A convolution, and whether cuDNN takes it.
struct Case {
  std::vector<std::int64_t> space, taps;
  const char* padding;
  std::int64_t stride, dilation;
  bool taken;
};
Tensor convolve(const Tensors& in, const Case& c, const char* format) {
  const auto axes = c.taps.size();
  const Dims strides(std::vector<std::int64_t>(axes, c.stride)), dilation(std::vector<std::int64_t>(axes, c.dilation));
  if (axes == 1) return K::conv1d(in[0], in[1], strides, c.padding, format, dilation);
  if (axes == 2) return K::conv2d(in[0], in[1], strides, c.padding, format, dilation);
  return K::conv3d(in[0], in[1], strides, c.padding, format, dilation);
}
/// Numbers that bfloat16 holds: x of a batch of 2 and 3 channels, and a kernel for 4.
Tensors operands(const Case& c, const std::string& format, std::int64_t channels_out = 4) {
  std::vector<std::int64_t> x{2}, w = c.taps;
  if (format == "channels_first") x.push_back(3);
  x.insert(x.end(), c.space.begin(), c.space.end());
  if (format == "channels_last") x.push_back(3);
  w.insert(w.end(), {3, channels_out});
  return {drawn(x, bfloat16, 1), drawn(w, bfloat16, 2)};
}
const Case kValid{{5, 6}, {3, 3}, "valid", 1, 1, true};

/// Sets what the emulated cuDNN refuses, for a scope; does nothing where there is a real one.
class Refusing {
 public:
  explicit Refusing(int how) { set(how); }
  ~Refusing() { set(0); }
  Refusing(const Refusing&) = delete;
  Refusing& operator=(const Refusing&) = delete;

 private:
  static void set(int how) {
    if (auto* switched = emulated<void(int)>("emulated_cudnn_refuses")) switched(how);
  }
};

}  // namespace

TEST_CASE("cuDNN computes convolutions and their gradients in all formats and dtypes", "[device][cudnn]") {
  if (!has_cudnn()) return;
  for (const Case& c :
       {kValid, Case{{5, 7}, {3, 3}, "same", 1, 1, true}, Case{{5, 7}, {3, 1}, "same", 2, 1, true},
        Case{{7, 8}, {3, 2}, "valid", 1, 2, true}, Case{{6, 7}, {2, 3}, "valid", 2, 1, true},
        Case{{6, 7}, {1, 1}, "same", 3, 1, true},
        // More zeros behind than before.
        Case{{6, 8}, {3, 3}, "same", 2, 1, false}, Case{{5, 6}, {2, 2}, "same", 1, 1, false},
        Case{{9}, {3}, "same", 1, 2, true}, Case{{9}, {3}, "causal", 1, 1, false},
        Case{{3, 4, 5}, {3, 3, 3}, "same", 1, 1, true}, Case{{3, 5, 5}, {1, 3, 2}, "valid", 2, 1, true}})
    for (const char* format : {"channels_last", "channels_first"}) {
      const bool causal = std::string(c.padding) == "causal";
      if (causal && std::string(format) == "channels_first") continue;
      for (DType dtype : {float32, float64, float16, bfloat16}) {
        INFO(c.taps.size() << " axes, " << c.padding << ", stride " << c.stride << ", " << format << ", " << dtype);
        check_layer([&](const Tensors& in) { return convolve(in, c, format); }, operands(c, format), dtype,
                    c.taken ? 3 : 0);
      }
    }
}

TEST_CASE("transposed convolutions and second derivatives go through cuDNN", "[device][cudnn]") {
  if (!has_cudnn()) return;
  const Tensor x = drawn({2, 3, 4, 4}, float32, 1), w = drawn({3, 3, 3, 4}, float32, 2);
  check_layer(
      [](const Tensors& in) {
        return K::conv2d_transpose(in[0], in[1], {2, 7, 9, 3}, {2, 2}, "valid");
      },
      {x, w}, float32, 3);
  const Layer slope = [](const Tensors& in) {
    const Tensor y = K::conv2d(in[0], in[1]);
    return K::gradients(K::sum(y * y * y), {in[0]})[0];
  };
  // Forward and back, back again as its ops are recorded, and the gradients of both.
  check_layer(slope, operands(kValid, "channels_last"), float64, 7);
}

TEST_CASE("depthwise convolutions of half types go through cuDNN", "[device][cudnn]") {
  if (!has_cudnn()) return;
  for (const char* format : {"channels_last", "channels_first"})
    for (DType dtype : {float16, bfloat16, float32}) {
      INFO(format << ", " << dtype);
      const bool first = std::string(format) == "channels_first";
      const Tensor x = drawn(first ? std::vector<std::int64_t>{2, 3, 5, 6} : std::vector<std::int64_t>{2, 5, 6, 3},
                             bfloat16, 1),
                   w = drawn({3, 2, 3, 2}, bfloat16, 2);
      check_layer([&](const Tensors& in) { return K::depthwise_conv2d(in[0], in[1], 1, "valid", format); }, {x, w},
                  dtype, dtype == float32 ? 0 : 3);
    }
}

TEST_CASE("cuDNN computes maxima, means, and the gradient of means", "[device][cudnn]") {
  if (!has_cudnn()) return;
  for (const char* format : {"channels_last", "channels_first"})
    for (const char* mode : {"max", "avg"})
      for (DType dtype : {float32, float64, float16, bfloat16}) {
        INFO(format << ", " << mode << ", " << dtype);
        const bool first = std::string(format) == "channels_first";
        const Tensor x = drawn(first ? std::vector<std::int64_t>{2, 3, 5, 7} : std::vector<std::int64_t>{2, 5, 7, 3},
                               bfloat16, 1),
                     volume = drawn({2, 3, 4, 5, 2}, bfloat16, 3);
        const std::int64_t calls = std::string(mode) == "max" ? 1 : 2;
        check_layer(
            [&](const Tensors& in) {
              return K::pool2d(in[0], {3, 3}, 2, "same", format, mode);
            },
            {x}, dtype, calls);
        check_layer(
            [&](const Tensors& in) {
              return K::pool2d(in[0], {2, 3}, {1, 2}, "valid", format, mode);
            },
            {x}, dtype, calls);
        check_layer(
            [&](const Tensors& in) {
              return K::pool2d(in[0], {2, 2}, 2, "same", format, mode);
            },
            {x}, dtype,
            0);  // five rows need one more, behind
        if (!first)
          check_layer(
              [&](const Tensors& in) {
                return K::pool3d(in[0], {2, 2, 2}, 1, "valid", format, mode);
              },
              {volume}, dtype, calls);
      }
}

TEST_CASE("a NaN or an infinity spoils no result of cuDNN that does not read it", "[device][cudnn]") {
  if (!has_cudnn()) return;
  for (double odd : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    std::vector<double> v = numbers(8 * 8, 1);
    v[3 * 8 + 4] = odd;
    const Tensor x = K::eval(K::cast(K::constant(v, float64, {1, 8, 8, 1}), float32)).to("cuda:0"),
                 w = drawn({3, 3, 1, 2}, float32, 2).to("cuda:0");
    const std::vector<double> y = wide(K::conv2d(x, w, 1, "same")), most = wide(K::pool2d(x, {3, 3}, 1, "same"));
    for (std::size_t r = 0; r < 8; ++r)
      for (std::size_t c = 0; c < 8; ++c) {
        const bool reads = r >= 2 && r <= 4 && c >= 3 && c <= 5;
        CHECK(std::isfinite(y[(r * 8 + c) * 2]) != reads);
        CHECK(std::isfinite(most[r * 8 + c]) != reads);
      }
  }
}

TEST_CASE("cuDNN is called in functions, whose graphs keep the bits of eager calls", "[device][cudnn][graph]") {
  if (!has_cudnn()) return;
  DeviceScope scope("cuda:0");
  const auto layer = [](const Tensor& x, const Tensor& w) {
    return K::mean(K::pool2d(K::relu(K::conv2d(x, w, 1, "same")), {2, 2}, 2, "valid", "channels_last", "avg"), {1, 2});
  };
  const Tensor fed = drawn({2, 6, 8, 3}, float32, 1).to("cuda:0"), first = drawn({3, 3, 3, 4}, float32, 2);
  const Tensor w = K::variable(first.to("cuda:0")), eager = K::variable(first.to("cuda:0")),
               x = K::placeholder({2, 6, 8, 3});
  const auto loss = [&](const Tensor& in, const Tensor& by) { return K::sum(K::square(layer(in, by))); };
  const Tensor value = loss(x, w);
  const Function step = K::function({x}, {value}, {K::update_sub(w, 0.1 * K::gradients(value, {w})[0])});
  fast_path_counts.on = true;
  const std::int64_t graphs = times_taken(FastPath::device_graph), asked = count("emulated_cudnn_questions");
  std::int64_t asked_first = 0;
  for (int k = 0; k < 6; ++k) {
    CHECK(calls_of([&] { step({fed}); }, 4) == 4);  // convolution, pooling, a gradient of each
    if (k == 0) asked_first = count("emulated_cudnn_questions") - asked;
    K::update_sub(eager, 0.1 * K::gradients(loss(fed, eager), {eager})[0]);
    CHECK(same_bits(w.to("cpu"), eager.to("cpu")));
  }
  CHECK(times_taken(FastPath::device_graph) - graphs == 4);
  if (asked >= 0) {
    CHECK(asked_first == 2);
    CHECK(count("emulated_cudnn_questions") - asked == 2);  // plans are remembered
  }
  fast_path_counts.on = false;
}

TEST_CASE("each stream has a handle of cuDNN, and a plan is good for all", "[device][cudnn]") {
  if (!has_cudnn()) return;
  const Tensors in = operands(kValid, "channels_last");
  const Tensor x = in[0].to("cuda:0"), w = in[1].to("cuda:0"), wanted = K::eval(K::conv2d(x, w)).to("cpu");
  const Stream other("cuda:0");
  const StreamScope scope(other);
  CHECK(same_bits(K::eval(K::conv2d(x, w)).to("cpu"), wanted));
}

TEST_CASE("set_allow_cudnn(false) leaves convolution and pooling to our kernels", "[device][cudnn]") {
  if (!has_cudnn()) return;
  SettingsScope restore;
  CHECK(allow_cudnn());
  set_allow_cudnn(false);
  CHECK_FALSE(allow_cudnn());
  CHECK(cudnn() == "none: switched off by KASSETTE_CUDNN or set_allow_cudnn");
  check_layer(
      [](const Tensors& in) {
        return K::pool2d(K::conv2d(in[0], in[1]), {2, 2}, 1, "valid", None, "avg");
      },
      operands(kValid, "channels_last"), float32, 0);
}

TEST_CASE("what cuDNN refuses our kernels compute, in later calls too", "[device][cudnn]") {
  if (!has_cudnn() || count("emulated_cudnn_calls") < 0) return;
  const Layer convolution = [](const Tensors& in) { return K::conv2d(in[0], in[1]); };
  const Layer means = [](const Tensors& in) { return K::pool2d(in[0], {2, 2}, 1, "valid", None, "avg"); };
  for (int how : {1, 2, 3, 4}) {
    INFO("refusal " << how);
    const Case c{{5, 20 + how}, {3, 3}, "valid", 1, 1, false};  // a description of its own
    const Tensors in = operands(c, "channels_last");
    {
      Refusing now(how);
      check_layer(convolution, in, float32, 0);
      if (how == 1 || how == 4) check_layer(means, {in[0]}, float32, 0);
    }
    check_layer(convolution, in, float32, 0);
  }
}

TEST_CASE("an error of cuDNN names the op, and the next call is right", "[device][cudnn]") {
  if (!has_cudnn() || count("emulated_cudnn_calls") < 0) return;
  const Tensors in = operands(kValid, "channels_last");
  const Tensor x = in[0].to("cuda:0"), w = in[1].to("cuda:0");
  {
    Refusing now(5);
    CHECK(error_of<DeviceError>([&] { K::conv2d(x, w); }) ==
          "conv2d: cuDNN says: CUDNN_STATUS_EXECUTION_FAILED; with KASSETTE_CUDNN=0 our own kernels compute it");
    CHECK(error_of<DeviceError>([&] {
            K::pool2d(x, {2, 2});
          }) == "pool2d: cuDNN says: CUDNN_STATUS_EXECUTION_FAILED; with KASSETTE_CUDNN=0 our own kernels compute it");
  }
  check_layer([](const Tensors& of) { return K::conv2d(of[0], of[1]); }, in, float32, 3);
}

TEST_CASE("convolutions by cuDNN use TF32 where it is allowed", "[device][cudnn]") {
  if (!has_cudnn() || count("emulated_cudnn_tf32_calls") < 0) return;
  SettingsScope restore;
  const Tensors in = operands(kValid, "channels_last");
  for (bool allowed : {false, true}) {
    set_allow_tf32(allowed);
    for (DType dtype : {float32, float64, bfloat16}) {
      const std::int64_t before = count("emulated_cudnn_tf32_calls");
      K::eval(K::conv2d(K::cast(in[0], dtype).to("cuda:0"), K::cast(in[1], dtype).to("cuda:0")));
      CHECK(count("emulated_cudnn_tf32_calls") - before == (allowed && dtype == float32));
    }
  }
}

TEST_CASE("the workspace of cuDNN is memory of the device, and counted", "[device][cudnn]") {
  if (!has_cudnn() || count("emulated_cudnn_calls") < 0) return;
  const Tensors in = operands(kValid, "channels_last");
  const Tensor x = K::cast(in[0], float32).to("cuda:0"), w = K::cast(in[1], float32).to("cuda:0");
  K::eval(K::conv2d(x, w));
  reset_peak_memory("cuda:0");
  const std::int64_t before = memory_stats("cuda:0").live;
  {
    const Tensor y = K::conv2d(x, w);
    const std::int64_t results = y.size() * y.dtype().size(), kernel = w.size() * w.dtype().size();
    CHECK(memory_stats("cuda:0").peak - before >= results + kernel + 96);
    CHECK(memory_stats("cuda:0").live - before < results + kernel);
  }
  CHECK(memory_stats("cuda:0").live == before);
}

TEST_CASE("kassette info names the version of cuDNN", "[device][cudnn]") {
  if (!has_cudnn()) return;
  std::ostringstream text;
  show_config(text);
  CHECK(text.str().find("\ncudnn      " + cudnn() + "\n") != std::string::npos);
  if (count("emulated_cudnn_calls") >= 0) CHECK(cudnn() == "9.6.0");
}

// Run with KASSETTE_CUDNN naming a library without these functions.
TEST_CASE("a cuDNN that lacks a function is not used, and one line says so", "[.][old_cudnn]") {
  if (!has_device("cuda:0")) return;
  SettingsScope restore;
  set_log_level(LogLevel::warning);
  const Tensors in = operands(kValid, "channels_last");
  const std::string said = stderr_of([&] {
    for (int k = 0; k < 2; ++k) check_layer([](const Tensors& of) { return K::conv2d(of[0], of[1]); }, in, float32, 0);
  });
  const std::string why = "libm.so.6 lacks cudnnGetVersion", line = "cuDNN is not used: " + why + "\n";
  INFO(said);
  CHECK(said.size() >= line.size());
  CHECK(said.find(line) == said.size() - line.size());
  CHECK(said.find('\n') == said.size() - 1);
  CHECK(cudnn() == "none: " + why);
}
