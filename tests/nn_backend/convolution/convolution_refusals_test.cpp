// tests/nn_backend/convolution/convolution_refusals_test.cpp - calls that the convolution family refuses: the error is
// one line that begins with the function's name and shows the shapes, and is the same eagerly, on placeholders, and if
// sizes become known only in a call; nothing has changed afterwards.
#include <kassette/backend.h>
#include <kassette/error.h>

#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/nn_backend/case_runs.h"
#include "tests/results.h"
#include "tests/sweeps/sample.h"

using namespace kassette;
using namespace kassette::test;

namespace {

using Sizes = std::vector<std::int64_t>;

struct Refused {
  std::string function;
  std::vector<Sizes> shapes;
  std::vector<std::string> says;
  Tensor (*f)(const Tensors& in);
  DType dtype = float32;
  const char* error = "ValueError";
};

#define ON [](const Tensors& in) -> Tensor
#define X in[0]
#define W in[1]
#define V in[2]

const Sizes k1{2, 5, 3}, k2{2, 5, 6, 3}, k3{2, 5, 6, 4, 3}, kf2{2, 3, 5, 6};  // kf2: channels first

/// Kernels larger than the input, under valid, with their dilation too.
// clang-format off
const Refused kLarge[] = {
    {"conv1d", {k1, {6, 3, 4}}, {"(2, 5, 3)", "(6, 3, 4)", "5 against 6"}, ON { return K::conv1d(X, W); }},
    {"conv1d", {k1, {4, 3, 4}}, {"(2, 5, 3)", "(4, 3, 4)", "dilation", "5 against 7"}, ON { return K::conv1d(X, W, 1, "valid", None, 2); }},
    {"conv2d", {k2, {3, 7, 3, 4}}, {"(2, 5, 6, 3)", "(3, 7, 3, 4)", "6 against 7"}, ON { return K::conv2d(X, W); }},
    {"conv2d", {kf2, {6, 3, 3, 4}}, {"(2, 3, 5, 6)", "(6, 3, 3, 4)", "5 against 6"}, ON { return K::conv2d(X, W, 1, "valid", "channels_first"); }},
    {"conv3d", {k3, {1, 1, 5, 3, 4}}, {"(2, 5, 6, 4, 3)", "(1, 1, 5, 3, 4)", "4 against 5"}, ON { return K::conv3d(X, W); }},
    {"depthwise_conv2d", {k2, {6, 1, 3, 2}}, {"(2, 5, 6, 3)", "(6, 1, 3, 2)", "5 against 6"}, ON { return K::depthwise_conv2d(X, W); }},
    {"separable_conv1d", {k1, {6, 3, 1}, {1, 3, 2}}, {"(2, 5, 3)", "(6, 3, 1)", "5 against 6"}, ON { return K::separable_conv1d(X, W, V); }},
    {"separable_conv2d", {k2, {1, 7, 3, 1}, {1, 1, 3, 2}}, {"(2, 5, 6, 3)", "(1, 7, 3, 1)", "6 against 7"}, ON { return K::separable_conv2d(X, W, V); }},
    {"pool2d", {k2}, {"(2, 5, 6, 3)", "6 against 7"}, ON { return K::pool2d(X, {1, 7}); }},
    {"pool2d", {k2}, {"(2, 5, 6, 3)", "5 against 6"}, ON { return K::pool2d(X, {6, 1}, 1, "valid", None, "avg"); }},
    {"pool3d", {k3}, {"(2, 5, 6, 4, 3)", "4 against 5"}, ON { return K::pool3d(X, {1, 1, 5}); }},
};

/// Strides and dilations below 1, or together.
const Refused kSteps[] = {
    {"conv1d", {k1, {2, 3, 4}}, {"strides hold 0"}, ON { return K::conv1d(X, W, 0); }},
    {"conv1d", {k1, {2, 3, 4}}, {"dilation_rate holds 0"}, ON { return K::conv1d(X, W, 1, "same", None, 0); }},
    {"conv1d", {k1, {2, 3, 4}}, {"strides and dilation_rate are both above 1"}, ON { return K::conv1d(X, W, 2, "same", None, 2); }},
    {"conv2d", {k2, {2, 2, 3, 4}}, {"strides hold -1"}, ON { return K::conv2d(X, W, {1, -1}); }},
    {"conv2d", {k2, {2, 2, 3, 4}}, {"strides", "must be 2 numbers"}, ON { return K::conv2d(X, W, {1, 1, 1}); }},
    {"conv2d", {k2, {2, 2, 3, 4}}, {"strides and dilation_rate are both above 1"}, ON { return K::conv2d(X, W, {1, 2}, "same", None, {2, 1}); }},
    {"conv3d", {k3, {1, 1, 1, 3, 4}}, {"strides hold 0"}, ON { return K::conv3d(X, W, {1, 0, 1}); }},
    {"conv3d", {k3, {1, 1, 1, 3, 4}}, {"dilation_rate holds -2"}, ON { return K::conv3d(X, W, 1, "valid", None, {1, 1, -2}); }},
    {"conv2d_transpose", {k2, {2, 2, 4, 3}}, {"strides hold 0"}, ON { return K::conv2d_transpose(X, W, {2, 6, 7, 4}, 0); }},
    {"conv2d_transpose", {k2, {2, 2, 4, 3}}, {"strides and dilation_rate are both above 1"}, ON { return K::conv2d_transpose(X, W, {2, 10, 12, 4}, 2, "same", None, 2); }},
    {"conv3d_transpose", {k3, {1, 1, 1, 4, 3}}, {"strides hold -1"}, ON { return K::conv3d_transpose(X, W, {2, 5, 6, 4, 4}, -1); }},
    {"depthwise_conv2d", {k2, {2, 2, 3, 2}}, {"strides hold 0"}, ON { return K::depthwise_conv2d(X, W, 0); }},
    {"depthwise_conv2d", {k2, {2, 2, 3, 2}}, {"strides and dilation_rate are both above 1"}, ON { return K::depthwise_conv2d(X, W, 2, "same", None, 3); }},
    {"separable_conv1d", {k1, {2, 3, 1}, {1, 3, 2}}, {"strides hold 0"}, ON { return K::separable_conv1d(X, W, V, 0); }},
    {"separable_conv2d", {k2, {2, 2, 3, 1}, {1, 1, 3, 2}}, {"dilation_rate holds 0"}, ON { return K::separable_conv2d(X, W, V, 1, "same", None, {1, 0}); }},
    {"pool2d", {k2}, {"strides hold 0"}, ON { return K::pool2d(X, 2, 0); }},
    {"pool2d", {k2}, {"pool_size holds 0"}, ON { return K::pool2d(X, {2, 0}); }},
    {"pool3d", {k3}, {"pool_size holds -1"}, ON { return K::pool3d(X, {2, -1, 2}); }},
    {"pool3d", {k3}, {"strides", "must be 3 numbers"}, ON { return K::pool3d(X, 2, {1, 2}); }},
    {"local_conv1d", {k1, {4, 6, 2}}, {"strides hold 0"}, ON { return K::local_conv1d(X, W, 2, 0); }},
    {"local_conv2d", {k2, {4, 12, 2}}, {"kernel_size holds 0"}, ON { return K::local_conv2d(X, W, {2, 0}, 1, {2, 2}); }},
};

/// Channels, ranks, empty kernels and channels.
const Refused kShapes[] = {
    {"conv1d", {k1, {2, 2, 4}}, {"(2, 5, 3)", "3 channels", "(2, 2, 4)", "takes 2"}, ON { return K::conv1d(X, W); }},
    {"conv2d", {kf2, {2, 2, 4, 4}}, {"(2, 3, 5, 6)", "3 channels", "takes 4"}, ON { return K::conv2d(X, W, 1, "same", "channels_first"); }},
    {"conv3d", {k3, {2, 2, 2, 4, 4}}, {"(2, 5, 6, 4, 3)", "3 channels", "takes 4"}, ON { return K::conv3d(X, W); }},
    {"conv2d_transpose", {k2, {2, 2, 4, 2}}, {"(2, 5, 6, 3)", "3 channels", "(2, 2, 4, 2)", "takes 2"}, ON { return K::conv2d_transpose(X, W, {2, 6, 7, 4}); }},
    {"conv3d_transpose", {k3, {1, 1, 1, 4, 2}}, {"(2, 5, 6, 4, 3)", "3 channels", "takes 2"}, ON { return K::conv3d_transpose(X, W, {2, 5, 6, 4, 4}); }},
    {"depthwise_conv2d", {k2, {2, 2, 4, 2}}, {"(2, 5, 6, 3)", "3 channels", "takes 4"}, ON { return K::depthwise_conv2d(X, W); }},
    {"separable_conv1d", {k1, {2, 2, 2}, {1, 4, 2}}, {"(2, 5, 3)", "3 channels", "takes 2"}, ON { return K::separable_conv1d(X, W, V); }},
    {"separable_conv2d", {k2, {2, 2, 3, 2}, {1, 1, 3, 2}}, {"takes 3", "gives 6"}, ON { return K::separable_conv2d(X, W, V); }},
    {"separable_conv2d", {k2, {2, 2, 3, 2}, {2, 1, 6, 2}}, {"pointwise", "(2, 1, 6, 2)"}, ON { return K::separable_conv2d(X, W, V); }},
    {"local_conv1d", {k1, {4, 4, 2}}, {"(2, 5, 3)", "(4, 4, 2)", "4 features"}, ON { return K::local_conv1d(X, W, 2, 1); }},
    {"local_conv2d", {k2, {4, 8, 2}}, {"(2, 5, 6, 3)", "(4, 8, 2)", "8 features"}, ON { return K::local_conv2d(X, W, 2, 1, {2, 2}); }},
    {"local_conv2d", {k2, {6, 12, 2}}, {"(6, 12, 2)", "6 places", "asks for 4"}, ON { return K::local_conv2d(X, W, 2, 1, {2, 2}); }},
    {"local_conv1d", {k1, {5, 6, 2}}, {"(2, 5, 3)", "5 patches take 6"}, ON { return K::local_conv1d(X, W, 2, 1); }},
    {"local_conv2d", {k2, {12, 12, 2}}, {"(2, 5, 6, 3)", "3 patches take 6"}, ON { return K::local_conv2d(X, W, 2, 2, {3, 4}); }},
    {"conv1d", {{5, 3}, {2, 3, 4}}, {"(5, 3)", "the rank must be 3", "(batch, steps, channels)"}, ON { return K::conv1d(X, W); }},
    {"conv2d", {k1, {2, 2, 3, 4}}, {"(2, 5, 3)", "the rank must be 4", "(batch, channels, rows, columns)"}, ON { return K::conv2d(X, W, 1, "same", "channels_first"); }},
    {"conv2d", {k2, {2, 3, 4}}, {"(2, 3, 4)", "the rank must be 4", "kernel"}, ON { return K::conv2d(X, W); }},
    {"conv3d", {k2, {2, 2, 2, 3, 4}}, {"(2, 5, 6, 3)", "the rank must be 5"}, ON { return K::conv3d(X, W); }},
    {"conv2d_transpose", {k1, {2, 2, 4, 3}}, {"(2, 5, 3)", "the rank must be 4"}, ON { return K::conv2d_transpose(X, W, {2, 6, 7, 4}); }},
    {"conv3d_transpose", {k3, {2, 2, 4, 3}}, {"(2, 2, 4, 3)", "the rank must be 5"}, ON { return K::conv3d_transpose(X, W, {2, 5, 6, 4, 4}); }},
    {"depthwise_conv2d", {k1, {2, 2, 3, 2}}, {"(2, 5, 3)", "the rank must be 4"}, ON { return K::depthwise_conv2d(X, W); }},
    {"depthwise_conv2d", {k2, {2, 3, 2}}, {"(2, 3, 2)", "channels, multiplier"}, ON { return K::depthwise_conv2d(X, W); }},
    {"separable_conv1d", {k2, {2, 3, 1}, {1, 3, 2}}, {"(2, 5, 6, 3)", "the rank must be 3"}, ON { return K::separable_conv1d(X, W, V); }},
    {"pool2d", {k1}, {"(2, 5, 3)", "the rank must be 4"}, ON { return K::pool2d(X, 2); }},
    {"pool3d", {k2}, {"(2, 5, 6, 3)", "the rank must be 5"}, ON { return K::pool3d(X, 2); }},
    {"local_conv1d", {k2, {4, 6, 2}}, {"(2, 5, 6, 3)", "the rank must be 3"}, ON { return K::local_conv1d(X, W, 2, 1); }},
    {"local_conv2d", {k2, {2, 2, 12, 2}}, {"(2, 2, 12, 2)", "the rank must be 3"}, ON { return K::local_conv2d(X, W, 2, 1, {2, 2}); }},
    {"conv1d", {{2, 5, 0}, {2, 0, 4}}, {"(2, 0, 4)", "its sizes must be positive"}, ON { return K::conv1d(X, W); }},
    {"conv2d", {k2, {2, 2, 3, 0}}, {"(2, 2, 3, 0)", "its sizes must be positive"}, ON { return K::conv2d(X, W); }},
    {"conv2d", {k2, {0, 2, 3, 4}}, {"(0, 2, 3, 4)", "its sizes must be positive"}, ON { return K::conv2d(X, W, 1, "same"); }},
    {"conv2d", {{2, 5, 6, 0}, {2, 2, 3, 4}}, {"(2, 5, 6, 0)", "no channels"}, ON { return K::conv2d(X, W); }},
    {"depthwise_conv2d", {k2, {2, 2, 3, 0}}, {"(2, 2, 3, 0)", "its sizes must be positive"}, ON { return K::depthwise_conv2d(X, W); }},
    {"conv2d_transpose", {k2, {2, 0, 4, 3}}, {"(2, 0, 4, 3)", "its sizes must be positive"}, ON { return K::conv2d_transpose(X, W, {2, 6, 7, 4}); }},
    {"bias_add", {k2, {4}}, {"(4,)", "(2, 5, 6, 3)"}, ON { return K::bias_add(X, W); }},
    {"bias_add", {kf2, {6}}, {"(6,)", "(2, 3, 5, 6)"}, ON { return K::bias_add(X, W, "channels_first"); }},
    {"bias_add", {k2, {6, 3}}, {"(6, 3)", "(2, 5, 6, 3)", "the rank must be 1 or 3"}, ON { return K::bias_add(X, W); }},
    {"bias_add", {kf2, {6, 5, 3}}, {"(6, 5, 3)", "(2, 3, 5, 6)"}, ON { return K::bias_add(X, W, "channels_first"); }},
    {"temporal_padding", {k2}, {"(2, 5, 6, 3)", "the rank must be 3"}, ON { return K::temporal_padding(X); }},
    {"spatial_2d_padding", {k1}, {"(2, 5, 3)", "the rank must be 4"}, ON { return K::spatial_2d_padding(X); }},
    {"spatial_3d_padding", {k2}, {"(2, 5, 6, 3)", "the rank must be 5"}, ON { return K::spatial_3d_padding(X); }},
    {"resize_images", {k1}, {"(2, 5, 3)", "the rank must be 4"}, ON { return K::resize_images(X, 2, 2, "channels_last"); }},
    {"resize_images", {k3}, {"(2, 5, 6, 4, 3)", "the rank must be 4"}, ON { return K::resize_images(X, 2, 2, "channels_last", "bilinear"); }},
    {"resize_volumes", {k2}, {"(2, 5, 6, 3)", "the rank must be 5"}, ON { return K::resize_volumes(X, 2, 2, 2, "channels_last"); }},
};

/// Unknown words, and words that do not go together.
const Refused kWords[] = {
    {"conv1d", {k1, {2, 3, 4}}, {"causal", "channels_last"}, ON { return K::conv1d(X, W, 1, "causal", "channels_first"); }},
    {"conv1d", {k1, {2, 3, 4}}, {"\"Same\"", "\"causal\""}, ON { return K::conv1d(X, W, 1, "Same"); }},
    {"conv2d", {k2, {2, 2, 3, 4}}, {"padding is \"causal\""}, ON { return K::conv2d(X, W, 1, "causal"); }},
    {"conv2d", {k2, {2, 2, 3, 4}}, {"padding is \"full\""}, ON { return K::conv2d(X, W, 1, "full"); }},
    {"conv3d", {k3, {2, 2, 2, 3, 4}}, {"padding is \"causal\""}, ON { return K::conv3d(X, W, 1, "causal"); }},
    {"conv2d_transpose", {k2, {2, 2, 4, 3}}, {"padding is \"causal\""}, ON { return K::conv2d_transpose(X, W, {2, 6, 7, 4}, 1, "causal"); }},
    {"conv3d_transpose", {k3, {1, 1, 1, 4, 3}}, {"padding is \"\""}, ON { return K::conv3d_transpose(X, W, {2, 5, 6, 4, 4}, 1, ""); }},
    {"depthwise_conv2d", {k2, {2, 2, 3, 4}}, {"padding is \"causal\""}, ON { return K::depthwise_conv2d(X, W, 1, "causal"); }},
    {"separable_conv1d", {k1, {2, 3, 1}, {1, 3, 2}}, {"padding is \"causal\""}, ON { return K::separable_conv1d(X, W, V, 1, "causal"); }},
    {"separable_conv2d", {k2, {2, 2, 3, 1}, {1, 1, 3, 2}}, {"padding is \"VALID\""}, ON { return K::separable_conv2d(X, W, V, 1, "VALID"); }},
    {"pool2d", {k2}, {"padding is \"causal\""}, ON { return K::pool2d(X, 2, 1, "causal"); }},
    {"pool2d", {k2}, {"pool_mode is \"mean\""}, ON { return K::pool2d(X, 2, 1, "same", None, "mean"); }},
    {"pool3d", {k3}, {"pool_mode is \"MAX\""}, ON { return K::pool3d(X, 2, 1, "same", None, "MAX"); }},
    {"conv1d", {k1, {2, 3, 4}}, {"data_format is \"channels_middle\""}, ON { return K::conv1d(X, W, 1, "same", "channels_middle"); }},
    {"conv2d", {k2, {2, 2, 3, 4}}, {"data_format is \"NHWC\""}, ON { return K::conv2d(X, W, 1, "same", "NHWC"); }},
    {"conv3d", {k3, {2, 2, 2, 3, 4}}, {"data_format is \"last\""}, ON { return K::conv3d(X, W, 1, "same", "last"); }},
    {"conv2d_transpose", {k2, {2, 2, 4, 3}}, {"data_format is \"last\""}, ON { return K::conv2d_transpose(X, W, {2, 6, 7, 4}, 1, "same", "last"); }},
    {"conv3d_transpose", {k3, {1, 1, 1, 4, 3}}, {"data_format is \"last\""}, ON { return K::conv3d_transpose(X, W, {2, 5, 6, 4, 4}, 1, "same", "last"); }},
    {"depthwise_conv2d", {k2, {2, 2, 3, 2}}, {"data_format is \"last\""}, ON { return K::depthwise_conv2d(X, W, 1, "same", "last"); }},
    {"separable_conv1d", {k1, {2, 3, 1}, {1, 3, 2}}, {"data_format is \"last\""}, ON { return K::separable_conv1d(X, W, V, 1, "same", "last"); }},
    {"separable_conv2d", {k2, {2, 2, 3, 1}, {1, 1, 3, 2}}, {"data_format is \"last\""}, ON { return K::separable_conv2d(X, W, V, 1, "same", "last"); }},
    {"pool2d", {k2}, {"data_format is \"last\""}, ON { return K::pool2d(X, 2, 1, "same", "last"); }},
    {"pool3d", {k3}, {"data_format is \"last\""}, ON { return K::pool3d(X, 2, 1, "same", "last"); }},
    {"local_conv1d", {k1, {4, 6, 2}}, {"data_format is \"last\""}, ON { return K::local_conv1d(X, W, 2, 1, "last"); }},
    {"local_conv2d", {k2, {4, 12, 2}}, {"data_format is \"last\""}, ON { return K::local_conv2d(X, W, 2, 1, {2, 2}, "last"); }},
    {"bias_add", {k2, {3}}, {"data_format is \"last\""}, ON { return K::bias_add(X, W, "last"); }},
    {"spatial_2d_padding", {k2}, {"data_format is \"last\""}, ON { return K::spatial_2d_padding(X, {{1, 1}, {1, 1}}, "last"); }},
    {"spatial_3d_padding", {k3}, {"data_format is \"last\""}, ON { return K::spatial_3d_padding(X, {{1, 1}, {1, 1}, {1, 1}}, "last"); }},
    {"resize_images", {k2}, {"data_format is \"Channels_last\""}, ON { return K::resize_images(X, 2, 2, "Channels_last"); }},
    {"resize_images", {k2}, {"data_format is None"}, ON { return K::resize_images(X, 2, 2, None); }},
    {"resize_images", {k2}, {"interpolation is \"cubic\""}, ON { return K::resize_images(X, 2, 2, "channels_last", "cubic"); }},
    {"resize_images", {k2}, {"width_factor is 0"}, ON { return K::resize_images(X, 2, 0, "channels_last"); }},
    {"resize_volumes", {k3}, {"data_format is None"}, ON { return K::resize_volumes(X, 2, 2, 2, None); }},
    {"resize_volumes", {k3}, {"height_factor is -1"}, ON { return K::resize_volumes(X, 2, -1, 2, "channels_last"); }},
    {"temporal_padding", {k1}, {"padding holds -1"}, ON { return K::temporal_padding(X, {1, -1}); }},
};

/// Shapes of transposed convolution that no convolution has as its input.
const Refused kOutputShapes[] = {
    {"conv2d_transpose", {k2, {3, 3, 4, 3}}, {"(2, 9, 9, 4)", "(2, 5, 6, 3)", "(3, 3, 4, 3)"}, ON { return K::conv2d_transpose(X, W, {2, 9, 9, 4}, 2, "same"); }},
    {"conv2d_transpose", {k2, {3, 3, 4, 3}}, {"(2, 10, 14, 4)", "gives 7"}, ON { return K::conv2d_transpose(X, W, {2, 10, 14, 4}, 2, "same"); }},
    {"conv2d_transpose", {k2, {3, 3, 4, 3}}, {"(2, 10, 13, 4)", "gives 4"}, ON { return K::conv2d_transpose(X, W, {2, 10, 13, 4}, 2); }},
    {"conv2d_transpose", {k2, {3, 3, 4, 3}}, {"(2, 0, 12, 4)", "(2, 5, 6, 3)"}, ON { return K::conv2d_transpose(X, W, {2, 0, 12, 4}, 2, "same"); }},
    {"conv2d_transpose", {k2, {3, 3, 4, 3}}, {"(2, 10, 12, 5)", "4 channels"}, ON { return K::conv2d_transpose(X, W, {2, 10, 12, 5}, 2, "same"); }},
    {"conv2d_transpose", {k2, {3, 3, 4, 3}}, {"(1, 10, 12, 4)", "its batch must be 2"}, ON { return K::conv2d_transpose(X, W, {1, 10, 12, 4}, 2, "same"); }},
    {"conv2d_transpose", {k2, {3, 3, 4, 3}}, {"(10, 12, 4)", "3 entries"}, ON { return K::conv2d_transpose(X, W, {10, 12, 4}, 2, "same"); }},
    {"conv2d_transpose", {kf2, {3, 3, 4, 3}}, {"(2, 4, 11, 13)", "gives 6"}, ON { return K::conv2d_transpose(X, W, {2, 4, 11, 13}, 2, "same", "channels_first"); }},
    {"conv2d_transpose", {k2, {3, 3, 4, 3}}, {"(2, -1, 12, 4)", "must be given"}, ON { return K::conv2d_transpose(X, W, {2, None, 12, 4}, 2, "same"); }},
    {"conv3d_transpose", {k3, {2, 2, 2, 4, 3}}, {"(2, 10, 12, 9, 4)", "gives 5"}, ON { return K::conv3d_transpose(X, W, {2, 10, 12, 9, 4}, 2, "same"); }},
    {"conv3d_transpose", {k3, {2, 2, 2, 4, 3}}, {"(2, 10, 12, 8, 3)", "4 channels"}, ON { return K::conv3d_transpose(X, W, {2, 10, 12, 8, 3}, 2, "same"); }},
};

/// Sizes whose product is too large. Tensors with such sizes are empty: their batch is 0.
const Refused kOverflows[] = {
    {"resize_images", {k2}, {"too large"}, ON { return K::resize_images(X, 1 << 30, 1 << 30, "channels_last", "bilinear"); }},
    {"resize_images", {{0, 5, 6, 3}}, {"too large"}, ON { return K::resize_images(X, 1 << 30, 1 << 30, "channels_last"); }},
    {"resize_volumes", {{0, 5, 6, 4, 3}}, {"too large"}, ON { return K::resize_volumes(X, 1 << 30, 1 << 30, 1 << 30, "channels_last"); }},
    {"spatial_2d_padding", {k2}, {"too large"}, ON { return K::spatial_2d_padding(X, K::constant({9e15, 9e15, 9e15, 9e15}, "int64", {2, 2})); }},
    {"conv2d_transpose", {{0, 1 << 20, 1 << 20, 1}, {1, 1, 1 << 20, 1}}, {"too large"}, ON { return K::conv2d_transpose(X, W, {None, 1 << 20, 1 << 20, 1 << 20}); }},
    {"depthwise_conv2d", {{0, 1 << 20, 1 << 20, 4096}, {1, 1, 4096, 4096}}, {"too large"}, ON { return K::depthwise_conv2d(X, W); }},
};

/// Dtypes.
const Refused kDTypes[] = {
    {"conv1d", {k1, {2, 3, 4}}, {"int32"}, ON { return K::conv1d(X, W); }, int32, "TypeError"},
    {"conv2d", {k2, {2, 2, 3, 4}}, {"bool"}, ON { return K::conv2d(X, W); }, bool_, "TypeError"},
    {"conv3d", {k3, {2, 2, 2, 3, 4}}, {"uint8"}, ON { return K::conv3d(X, W); }, uint8, "TypeError"},
    {"conv2d_transpose", {k2, {2, 2, 4, 3}}, {"int64"}, ON { return K::conv2d_transpose(X, W, {2, 6, 7, 4}); }, int64, "TypeError"},
    {"conv3d_transpose", {k3, {1, 1, 1, 4, 3}}, {"int8"}, ON { return K::conv3d_transpose(X, W, {2, 5, 6, 4, 4}); }, int8, "TypeError"},
    {"depthwise_conv2d", {k2, {2, 2, 3, 2}}, {"uint16"}, ON { return K::depthwise_conv2d(X, W); }, uint16, "TypeError"},
    {"separable_conv1d", {k1, {2, 3, 1}, {1, 3, 2}}, {"int32"}, ON { return K::separable_conv1d(X, W, V); }, int32, "TypeError"},
    {"separable_conv2d", {k2, {2, 2, 3, 1}, {1, 1, 3, 2}}, {"bool"}, ON { return K::separable_conv2d(X, W, V); }, bool_, "TypeError"},
    {"separable_conv2d", {k2, {2, 2, 3, 1}, {1, 1, 3, 2}}, {"float32", "float64"}, ON { return K::separable_conv2d(X, W, K::cast(V, "float64")); }, float32, "TypeError"},
    {"pool2d", {k2}, {"int32"}, ON { return K::pool2d(X, 2); }, int32, "TypeError"},
    {"pool3d", {k3}, {"bool"}, ON { return K::pool3d(X, 2, 1, "same", None, "avg"); }, bool_, "TypeError"},
    {"local_conv1d", {k1, {4, 6, 2}}, {"int32"}, ON { return K::local_conv1d(X, W, 2, 1); }, int32, "TypeError"},
    {"local_conv2d", {k2, {4, 12, 2}}, {"float32", "float64"}, ON { return K::local_conv2d(X, K::cast(W, "float64"), 2, 1, {2, 2}); }, float32, "TypeError"},
    {"conv2d", {k2, {2, 2, 3, 4}}, {"float16", "float32"}, ON { return K::conv2d(X, K::cast(W, "float32")); }, float16, "TypeError"},
};
// clang-format on

/// The message of the error that f throws, or, beginning with '!', how it differs from one line of the right type that
/// begins with the function's name.
template <class F>
std::string said(const Refused& r, F&& f) {
  try {
    f();
  } catch (const std::exception& e) {
    std::string s = e.what();
    if (category(e) != std::string(r.error)) return std::string("!") + category(e) + ": " + s;
    if (s.find(r.function + ": ") != 0) return "! does not begin with the function: " + s;
    if (s.find('\n') != std::string::npos) return "! more than one line: " + s;
    return s;
  }
  return "! is not refused";
}

void check(const Refused& r) {
  Ledger ledger;
  {
    Tensors given, known, unknown;
    for (const Sizes& s : r.shapes) {
      given.push_back(K::ones(s, r.dtype));
      known.push_back(K::placeholder(s, None, r.dtype));
      unknown.push_back(K::placeholder(Shape(Sizes(s.size(), -1).data(), static_cast<int>(s.size())), None, r.dtype));
    }
    const std::string eager = said(r, [&] { r.f(given); }),
                      placed = said(r, [&] { K::function(known, {r.f(known)})(given); });
    const std::string called = said(r, [&] { K::function(unknown, {r.f(unknown)})(given); });
    std::string all, of_ranks = eager;  // the message where ranks alone are known: sizes are printed as None
    for (std::size_t i = 0; i < r.shapes.size(); ++i) {
      const std::string shape = printed(given[static_cast<std::int64_t>(i)].shape());
      all += shape + " ";
      for (std::size_t at; (at = of_ranks.find(shape)) != std::string::npos;)
        of_ranks.replace(at, shape.size(), printed(unknown[static_cast<std::int64_t>(i)].shape()));
    }
    INFO(r.function << " " << all);
    for (const std::string& word : r.says) CHECK_THAT(eager, Catch::Contains(word));
    CHECK(placed == eager);
    // Kernels of local layers have known sizes.
    if (r.function.find("local") != 0 && called != of_ranks) CHECK(called == eager);
  }
  if (std::string kept = ledger.change(); !kept.empty()) FAIL_CHECK(r.function << ": leaves " << kept);
}

}  // namespace

TEST_CASE("kernels larger than the input are refused under valid", "[conv][bad]") {
  for (const Refused& r : kLarge) check(r);
}
TEST_CASE("strides, dilations and sizes of windows that are no steps are refused", "[conv][bad]") {
  for (const Refused& r : kSteps) check(r);
}
TEST_CASE("channels, ranks and empty kernels that do not fit are refused", "[conv][bad]") {
  for (const Refused& r : kShapes) check(r);
}
TEST_CASE("a bias for x of rank 1 is held to the size that comes at a call", "[conv][bad]") {
  const Tensor x = K::placeholder({None});
  for (const char* format : {"channels_first", "channels_last"}) {
    const Function f = K::function({x}, {K::bias_add(x, K::constant({1.}), format)});
    CHECK_THROWS_WITH(f({K::ones({2})}), Catch::Contains("bias_add: bias of shape (1,) for x of shape (2,)"));
    CHECK(f({K::ones({1})})[0].item<double>() == 2);
  }
}
TEST_CASE("unknown paddings, formats and modes are refused", "[conv][bad]") {
  for (const Refused& r : kWords) check(r);
}
TEST_CASE("an output_shape that no input size gives is refused", "[conv][bad]") {
  for (const Refused& r : kOutputShapes) check(r);
}
TEST_CASE("sizes whose product is too large are refused", "[conv][bad]") {
  for (const Refused& r : kOverflows) check(r);
  CHECK_THROWS_WITH(
      K::conv2d(K::placeholder(k2), K::placeholder({1 << 27, 1, 3, 1}), 1, "same", None, {2147483647, 1}),
      "conv2d: kernel of shape (134217728, 1, 3, 1) with dilation_rate 2147483647 spans more than can be addressed");
}
TEST_CASE("dtypes that are no floats, or differ, are refused", "[conv][bad]") {
  for (const Refused& r : kDTypes) check(r);
}
