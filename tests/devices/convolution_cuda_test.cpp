// tests/devices/convolution_cuda_test.cpp - convolution by our own kernels on a CUDA device: which algorithm it
// chooses, how much memory it needs, its bits, and cases that the sweeps do not cover.
#include <kassette/backend.h>
#include <kassette/runtime.h>
#include <kassette/testing.h>

#include <cmath>
#include <limits>

#include "ops/convolution/conv.h"
#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/results.h"
#include "tests/settings.h"
#include "tests/sources.h"
#include "tests/sweeps/sample.h"

using namespace kassette;
using namespace kassette::ops;
using namespace kassette::test;
namespace K = kassette::backend;

namespace {

/// Products of matrices so far; -1 where a real cuBLAS multiplies, which does not count.
std::int64_t products() {
  static auto* asked = emulated<std::int64_t()>("emulated_products");
  return asked ? asked() : -1;
}

struct Limits {
  DeviceConvLimits before = device_conv_limits;
  ~Limits() { device_conv_limits = before; }
};

/// Value and both gradients, still on the device.
Tensors convolved(const Tensor& x, const Tensor& w, const std::string& format, const Dims& strides = 1) {
  Tensor y = K::conv2d(x, w, strides, "same", format);
  Tensors g = K::gradients(K::sum(y * y), {x, w});
  return {y, g[0], g[1]};
}
std::vector<double> values_of(const Tensor& t) { return K::cast(t.to("cpu"), float64).to_vector<double>(); }

Tensor on_device(const Shape& shape, DType dtype, double low = -1) {
  return K::variable(K::cast(K::random_uniform(shape, low, 1.0, "float32", 3).to("cuda:0"), dtype), dtype);
}

}  // namespace

TEST_CASE(
    "on CUDA devices many channels are convolved by products of matrices, and few channels or depthwise kernels by direct kernels",
    "[device][conv]") {
  if (!has_device("cuda:0") || products() < 0) return;
  SettingsScope restore;
  set_allow_cudnn(false);
  auto count = [](auto run) {
    const std::int64_t before = products();
    run();
    return products() - before;
  };
  Tensor x = on_device({3, 5, 6, 8}, float32), w = on_device({3, 3, 8, 9}, float32),
         first = on_device({3, 3, 8, 4}, float32);
  CHECK(count([&] { K::conv2d(x, w, 1, "same"); }) == 1);
  CHECK(count([&] { K::conv2d(x, w, 1, "same", "channels_last", 2); }) == 1);
  CHECK(count([&] { convolved(x, w, "channels_last"); }) == 3);
  // The input gradient: one for each remainder modulo the strides.
  CHECK(count([&] { convolved(x, w, "channels_last", 2); }) == 6);
  CHECK(count([&] { K::conv2d(x, first, 1, "same"); }) == 0);  // four results share what a panel would hold
  CHECK(count([&] { K::depthwise_conv2d(x, on_device({3, 3, 8, 2}, float32)); }) == 0);
  Tensor turned = K::variable(K::permute_dimensions(x, {0, 3, 1, 2}));
  CHECK(count([&] { K::conv2d(turned, w, 1, "same", "channels_first"); }) == 3);  // one for each image, in one call
  CHECK(count([&] { convolved(turned, w, "channels_first"); }) == 3 + 3 + 1);     // the kernel's gradient is one
}

TEST_CASE("a window of one element that moves by one is a product without a panel", "[device][conv]") {
  if (!has_device("cuda:0")) return;
  SettingsScope restore;
  set_allow_cudnn(false);
  for (const char* format : {"channels_last", "channels_first"}) {
    Tensor x = on_device({2, 32, 32, 32}, float32), w = on_device({1, 1, 32, 8}, float32);
    K::eval(K::conv2d(x, w, 1, "valid", format));  // cuBLAS has its workspace
    reset_peak_memory("cuda:0");
    const std::int64_t before = memory_stats("cuda:0").live;
    Tensor y = K::conv2d(x, w, 1, "valid", format);
    CHECK(memory_stats("cuda:0").peak - before == 2 * 32 * 32 * 8 * 4);  // the result
  }
}

TEST_CASE(
    "convolution on CUDA devices stays within its workspace, whatever the shape, and gives the same bits each time",
    "[device][conv]") {
  if (!has_device("cuda:0")) return;
  Limits limits;
  device_conv_limits.way = DeviceConvLimits::panels;
  CHECK(limits.before.workspace == 64 << 20);
  K::eval(K::dot(K::ones({2, 2}).to("cuda:0"), K::ones({2, 2}).to("cuda:0")));  // cuBLAS has its workspace
  for (DType dtype : {float32, float16, bfloat16, float64})
    for (const char* format : {"channels_last", "channels_first"})
      for (int stride : {1, 2}) {
        const bool first = std::string(format) == "channels_first";
        Tensor x = on_device(first ? Shape{3, 5, 14, 15} : Shape{3, 14, 15, 5}, dtype),
               w = on_device({3, 3, 5, 12}, dtype);
        auto run = [&](std::int64_t workspace) {
          device_conv_limits.workspace = workspace;
          const Tensor y = K::conv2d(x, w, stride, "same", format), dy = K::cast(K::ones_like(y), dtype);
          // One by one: the most that a call takes beside its result.
          Tensors all{y};
          std::int64_t most = 0;
          for (const Tensor& wanted : {x, w}) {
            reset_peak_memory("cuda:0");
            const std::int64_t before = memory_stats("cuda:0").live;
            all.push_back(K::gradients(K::sum(y * dy), wanted)[0]);
            most = std::max(most, memory_stats("cuda:0").peak - before);
          }
          const std::int64_t results = 4 * ((y.size() + x.size() + w.size()) * dtype.size());
          INFO(dtype << " " << format << " stride " << stride << ": " << most << " bytes, of results " << results);
          CHECK(most <= workspace + workspace / 4 + results);
          return all;
        };
        const Tensors whole = run(64 << 20), a = run(8 << 10), b = run(8 << 10);
        for (std::int64_t i = 0; i < a.size(); ++i) {
          CHECK(same_bits(a[i].to("cpu"), b[i].to("cpu")));
          const std::vector<double> have = values_of(a[i]), want = values_of(whole[i]);
          double apart = 0;
          for (std::size_t k = 0; k < have.size(); ++k)
            apart = std::max(apart, std::abs(have[k] - want[k]) / (10 + std::abs(want[k])));
          CHECK(apart <= (dtype == float64 ? 1e-14 : dtype == float32 ? 1e-6 : dtype == float16 ? 1e-3 : 8e-3));
        }
      }
}

TEST_CASE("the kernel's gradient over many points is cut into slices that are added up exactly", "[device][conv]") {
  if (!has_device("cuda:0")) return;
  Limits limits;
  device_conv_limits.way = DeviceConvLimits::panels;
  for (const char* format : {"channels_last", "channels_first"})
    for (DType dtype : {float32, float64, bfloat16})
      for (std::int64_t kernel : {1, 3})
        for (std::int64_t workspace : {64 << 20, 256 << 10}) {
          const bool first = std::string(format) == "channels_first";
          // Whole numbers, whose sums are exact in every order.
          const Shape shape = first ? Shape{3, 4, 31, 29} : Shape{3, 31, 29, 4};
          const Tensor x = K::cast(K::round(K::random_uniform(shape, -2.0, 2.0, "float32", 3)), dtype),
                       w = K::zeros({kernel, kernel, 4, 9}, dtype);
          auto gradient = [&](const char* device) {
            const Tensor v = K::variable(w.to(device), dtype), y = K::conv2d(x.to(device), v, 1, "same", format);
            const Tensor dy = K::cast(K::reshape(K::arange(y.size()) % 3 - 1, y.shape()), dtype).to(device);
            return K::gradients(K::sum(y * dy), v)[0].to("cpu");
          };
          device_conv_limits.workspace = workspace;
          INFO(dtype << " " << format << ", kernel " << kernel << ", workspace " << workspace);
          CHECK(same_bits(gradient("cuda:0"), gradient("cpu")));
        }
}

TEST_CASE("the kernel's gradient in half types adds up in float32 over panels", "[device][conv]") {
  if (!has_device("cuda:0")) return;
  Limits limits;
  device_conv_limits = {DeviceConvLimits::panels, 2 << 10};
  for (const char* format : {"channels_last", "channels_first"}) {
    const bool first = std::string(format) == "channels_first";
    // Ones: a float16 would stay at 2048, a bfloat16 at 256.
    for (DType dtype : {float16, bfloat16}) {
      Tensor x = K::variable(K::ones(first ? Shape{1, 2, 60, 50} : Shape{1, 60, 50, 2}, dtype).to("cuda:0"), dtype),
             w = on_device({1, 2, 2, 3}, dtype);
      const Tensor dw = K::gradients(K::sum(K::conv2d(x, w, 1, "valid", format)), w)[0];
      for (double v : values_of(dw)) CHECK(std::abs(v - 60 * 49) <= (dtype == float16 ? 2 : 8));
    }
  }
}

TEST_CASE("an infinite gradient of an enlarged image does not spoil its neighbours on CUDA devices", "[device][conv]") {
  if (!has_device("cuda:0")) return;
  Tensor x = K::variable(K::ones({1, 3, 3, 1}).to("cuda:0"));
  Tensor y = K::resize_images(x, 2, 2, "channels_last", "bilinear");
  std::vector<float> slopes(36, 1);
  slopes[2 * 6 + 2] = std::numeric_limits<float>::infinity();  // stands on element (1, 1) alone
  const Tensor g = K::gradients(K::sum(y * K::constant(slopes, float32, {1, 6, 6, 1}).to("cuda:0")), x)[0];
  const std::vector<double> v = values_of(g);
  for (std::size_t i = 0; i < v.size(); ++i) CHECK(std::isinf(v[i]) == (i == 4));
  for (double e : v) CHECK(!std::isnan(e));
}
