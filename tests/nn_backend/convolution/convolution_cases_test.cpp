// tests/nn_backend/convolution/convolution_cases_test.cpp - convolution, pooling, padding, enlarging, local layers and
// bias: values and gradients of TensorFlow and PyTorch, kept in tests/data/convolution_cases.txt.
#include <map>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/devices/devices.h"
#include "tests/nn_backend/case_runs.h"
#include "tests/ops/levels.h"

using namespace kassette;
using namespace kassette::test;

namespace {

/// A list of numbers, or of None.
Dims list(const KerasCase& c, const char* name, const Dims& otherwise = 1) {
  const Argument* a = c.find(name);
  if (!a) return otherwise;
  std::vector<Dim> dims;
  std::istringstream in(a->is_list() ? a->text.substr(1, a->text.size() - 2) : a->text);
  for (std::string word; std::getline(in, word, ',');)
    dims.push_back(word.find("None") != std::string::npos ? Dim(None) : Dim(std::atoi(word.c_str())));
  return dims;
}
/// In the case, which outlives what reads it.
const char* word(const KerasCase& c, const char* name, const char* otherwise) {
  return c.find(name) ? c.find(name)->text.c_str() : otherwise;
}
const char* format(const KerasCase& c) { return word(c, "data_format", "channels_last"); }

K::ConvOptions options(const KerasCase& c) {
  K::ConvOptions o;
  o.strides = list(c, "strides");
  o.padding = word(c, "padding", "valid");
  o.data_format = format(c);
  o.dilation_rate = list(c, "dilation_rate");
  return o;
}
/// Pairs of amounts.
Tensor amounts(const KerasCase& c, int axes) {
  Tensor all = K::constant(c.find("padding")->list(), "int32");
  return axes == 1 ? all : K::reshape(all, {axes, 2});
}

#define CONV(f) \
  { \
#f, [](const Tensors& x, const KerasCase& c) { return K::f(x[0], x[1], options(c)); } \
  }
#define SEPARABLE(f) \
  { \
#f, [](const Tensors& x, const KerasCase& c) { return K::f(x[0], x[1], x[2], options(c)); } \
  }
#define BACK(f) \
  { \
#f, [](const Tensors& x, const KerasCase& c) { return K::f(x[0], x[1], list(c, "output_shape"), options(c)); } \
  }
#define POOL(f) \
  { \
#f, [](const Tensors& x, const KerasCase& c) {                                                                                      \
     return K::f(x[0], list(c, "pool_size"), list(c, "strides"), word(c, "padding", "valid"), format(c), word(c, "pool_mode", "max")); \
   } \
  }
#define CALLED(f, expression) \
  { \
#f, [](const Tensors& x, const KerasCase& c) -> Tensor { return expression; } \
  }

const std::map<std::string, CaseCall> kCalls = {
    CONV(conv1d),
    CONV(conv2d),
    CONV(conv3d),
    CONV(depthwise_conv2d),
    SEPARABLE(separable_conv1d),
    SEPARABLE(separable_conv2d),
    BACK(conv2d_transpose),
    BACK(conv3d_transpose),
    POOL(pool2d),
    POOL(pool3d),
    CALLED(local_conv1d, K::local_conv1d(x[0], x[1], list(c, "kernel_size"), list(c, "strides"), format(c))),
    CALLED(local_conv2d,
           K::local_conv2d(x[0], x[1], list(c, "kernel_size"), list(c, "strides"), list(c, "output_shape"), format(c))),
    CALLED(resize_images, K::resize_images(x[0], c.integer("height_factor", 0), c.integer("width_factor", 0), format(c),
                                           word(c, "interpolation", "nearest"))),
    CALLED(resize_volumes, K::resize_volumes(x[0], c.integer("depth_factor", 0), c.integer("height_factor", 0),
                                             c.integer("width_factor", 0), format(c))),
    CALLED(temporal_padding, K::temporal_padding(x[0], amounts(c, 1))),
    CALLED(spatial_2d_padding, K::spatial_2d_padding(x[0], amounts(c, 2), format(c))),
    CALLED(spatial_3d_padding, K::spatial_3d_padding(x[0], amounts(c, 3), format(c))),
    CALLED(bias_add, K::bias_add(x[0], x[1], format(c))),
};
Tensor call(const Tensors& in, const KerasCase& c) { return kCalls.at(c.function)(in, c); }

const std::vector<KerasCase>& convolution_cases() {
  static const std::vector<KerasCase> all = cases_of(kSourceTree / "tests/data/convolution_cases.txt");
  return all;
}

/// Kernels of local layers are of known sizes, and who enlarges by repetition or adds a bias asks for a rank.
bool takes(const KerasCase& c, Known known) {
  return known == Known::sizes || c.function.find("local") == std::string::npos;
}

}  // namespace

TEST_CASE(
    "convolution, pooling and their kin give the values and gradients of TensorFlow and PyTorch, at every CPU level",
    "[conv][keras]") {
  CHECK(convolution_cases().size() > 600);
  std::map<std::string, int> seen;
  at_every_level([&](devices::Level) {
    for (const KerasCase& c : convolution_cases()) {
      std::string said;
      ++seen[c.function];
      if (std::string w = wrong_eagerly(c, call, &said); !w.empty()) FAIL_CHECK(c.line << "\n  " << w);
    }
  });
  for (const auto& [name, call] : kCalls) CHECK(seen[name] >= 6);
}

TEST_CASE("they give the same on placeholders of known sizes, of unknown ones and of unknown rank", "[conv][keras]") {
  for (const KerasCase& c : convolution_cases()) {
    std::string said;
    for (Known known : {Known::sizes, Known::rank, Known::nothing}) {
      if (!takes(c, known)) continue;
      const std::string w = wrong_on_placeholders(c, call, known, &said);
      if (!w.empty() && !(known == Known::nothing && said.find("rank") != std::string::npos))
        FAIL_CHECK(c.line << "\n  known " << int(known) << ": " << w);
    }
  }
}

TEST_CASE("they give the same on a CUDA device", "[conv][keras][device]") {
  if (!has_device("cuda:0")) return;
  for (const KerasCase& c : convolution_cases()) {
    std::string said;
    auto there = [](const Tensors& in, const KerasCase& of) {
      Tensors moved;
      for (const Tensor& x : in) moved.push_back(x.to("cuda:0"));
      return call(moved, of).to("cpu");
    };
    if (std::string w = wrong_eagerly(c, there, &said); !w.empty()) FAIL_CHECK(c.line << "\n  " << w);
  }
}
