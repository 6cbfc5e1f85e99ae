// tests/nn_backend/convolution/convolution_test.cpp - convolution, pooling, padding and enlarging: small vectors,
// refusals.
#include <kassette/backend.h>
#include <kassette/testing.h>

#include <cmath>
#include <limits>
#include <vector>

#include "ops/convolution/conv.h"
#include "ops/engine/dims.h"
#include "ops/convolution/pool.h"
#include "tests/catch.h"
#include "tests/ops/levels.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::ops;
using namespace kassette::test;

namespace {

using List = std::vector<double>;

List flat(const Tensor& t) { return K::cast(t, float64).to_vector<double>(); }
Tensor line(std::initializer_list<double> v) {
  return K::constant(std::vector<double>(v), float64, {1, static_cast<long>(v.size()), 1});
}
Tensor kernel(std::initializer_list<double> v) {
  return K::constant(std::vector<double>(v), float64, {static_cast<long>(v.size()), 1, 1});
}
/// 1, 2, ... as an image of one channel.
Tensor image(int rows, int columns) {
  return K::reshape(K::arange(1, rows * columns + 1, 1, "float64"), {1, rows, columns, 1});
}
Tensor taps(int rows, int columns) {
  return K::reshape(K::arange(1, rows * columns + 1, 1, "float64"), {rows, columns, 1, 1});
}

Tensor drawn(const std::vector<std::int64_t>& shape, DType dtype) {
  return K::cast(K::random_uniform(Dims(shape), -1.0, 1.0, "float64"), dtype);
}

}  // namespace

TEST_CASE("tiles of large images and blocks of many channels", "[conv]") {
  // A kernel of ones counts: every result is the number of elements under the window.
  Tensor x = K::ones({1, 300, 70, 130}), w = K::ones({3, 3, 130, 40});
  Tensor y = K::conv2d(x, w, 1, "same");
  CHECK(y(0, 0, 0, 0).item<double>() == 4 * 130);
  CHECK(y(0, 150, 69, 39).item<double>() == 6 * 130);
  CHECK(K::sum(K::cast(y, float64)).item<double>() == 40.0 * 130 * (300 * 3 - 2) * (70 * 3 - 2));
  Tensor deep = K::conv2d(K::ones({2, 3, 3, 5000}), K::ones({3, 3, 5000, 3}), 1, "valid");
  CHECK(flat(deep) == List(6, 45000));
}

TEST_CASE("sizes and values of convolution along one axis", "[conv]") {
  Tensor x = line({1, 2, 3, 4, 5});
  auto conv = [&](std::initializer_list<double> k, int stride, const char* padding, int dilation = 1) {
    return flat(K::conv1d(x, kernel(k), stride, std::string(padding), None, dilation));
  };
  CHECK(conv({1, 10}, 1, "valid") == List{21, 32, 43, 54});
  CHECK(conv({1, 10}, 2, "valid") == List{21, 43});
  CHECK(conv({1, 10}, 1, "same") == List{21, 32, 43, 54, 5});
  CHECK(conv({1, 10}, 2, "same") == List{21, 43, 5});
  CHECK(conv({1, 10, 100}, 1, "valid") == List{321, 432, 543});
  CHECK(conv({1, 10, 100}, 1, "same") == List{210, 321, 432, 543, 54});
  CHECK(conv({1, 10, 100}, 2, "same") == List{210, 432, 54});
  CHECK(conv({1, 10, 100}, 2, "valid") == List{321, 543});
  CHECK(conv({1, 10, 100}, 1, "valid", 2) == List{531});
  CHECK(conv({1, 10, 100}, 1, "same", 2) == List{310, 420, 531, 42, 53});
  CHECK(conv({1, 10, 100}, 1, "causal") == List{100, 210, 321, 432, 543});
  CHECK(conv({1, 10, 100}, 1, "causal", 2) == List{100, 200, 310, 420, 531});
}

TEST_CASE("values of convolution along two axes", "[conv]") {
  Tensor x = image(4, 4), k = taps(2, 2);
  CHECK(flat(K::conv2d(x, k, 1, "same")) == List{44, 54, 64, 28, 84, 94, 104, 44, 124, 134, 144, 60, 41, 44, 47, 16});
  CHECK(flat(K::conv2d(x, k, 2, "same")) == List{44, 64, 124, 144});
  CHECK(flat(K::conv2d(x, k, 2)) == List{44, 64, 124, 144});
  CHECK(flat(K::conv2d(x, k, 3, "same")) == List{44, 28, 41, 16});
  CHECK(flat(K::conv2d(x, k, 3)) == List{44});
  CHECK(flat(K::conv2d(x, taps(3, 3), 2, "same")) == List{348, 252, 274, 175});
  CHECK(flat(K::conv2d(image(5, 5), taps(3, 3), {.strides = {2, 2}, .padding = "same"})) ==
        List{128, 241, 184, 441, 681, 453, 320, 457, 280});
  CHECK(flat(K::conv2d(x, k, {.data_format = "channels_last", .dilation_rate = 3})) ==
        List{1 + 2 * 4 + 3 * 13 + 4 * 16.});
}

TEST_CASE("values of transposed convolution", "[conv]") {
  Tensor x = image(2, 2), k = taps(2, 2), k3 = taps(3, 3);
  auto transposed = [&](const Tensor& w, int n, int stride, const char* padding) {
    return flat(K::conv2d_transpose(x, w, {1, n, n, 1}, stride, std::string(padding)));
  };
  CHECK(transposed(k, 3, 1, "valid") == List{1, 4, 4, 6, 20, 16, 9, 24, 16});
  CHECK(transposed(k, 4, 2, "valid") == List{1, 2, 2, 4, 3, 4, 6, 8, 3, 6, 4, 8, 9, 12, 12, 16});
  const List five{1, 2, 5, 4, 6, 4, 5, 14, 10, 12, 10, 14, 36, 24, 30, 12, 15, 34, 20, 24, 21, 24, 55, 32, 36};
  CHECK(transposed(k3, 5, 2, "valid") == five);
  List six(36, 0);
  for (std::size_t i = 0; i < 25; ++i) six[i / 5 * 6 + i % 5] = five[i];
  CHECK(transposed(k3, 6, 2, "valid") == six);
  CHECK(transposed(k3, 4, 2, "same") == List{1, 2, 5, 4, 4, 5, 14, 10, 10, 14, 36, 24, 12, 15, 34, 20});
  CHECK(transposed(k3, 3, 2, "same") == List{5, 14, 10, 14, 36, 24, 15, 34, 20});
  CHECK(transposed(k3, 2, 1, "same") == List{23, 33, 53, 63});
  // Nothing is written between windows.
  CHECK(flat(K::conv2d_transpose(x, K::ones({1, 1, 1, 1}, "float64"), {1, 5, 5, 1}, 3, "same"))[4] == 0);
  // The shape as a tensor, and a batch of None.
  Tensor p = K::placeholder({None, 2, 2, 1}, None, "float64");
  auto f = K::function(
      {p}, {K::conv2d_transpose(p, k, {None, 3, 3, 1}), K::conv2d_transpose(p, k, K::constant({1, 3, 3, 1}, "int32"))});
  Tensors both = f({x});
  CHECK(flat(both[0]) == List{1, 4, 4, 6, 20, 16, 9, 24, 16});
  CHECK(flat(both[1]) == flat(both[0]));
}

TEST_CASE("volumes: conv3d of ones counts, and conv3d_transpose is its adjoint", "[conv]") {
  CHECK(flat(K::conv3d(K::ones({1, 2, 2, 3, 2}, "float64"), K::ones({2, 2, 2, 2, 1}, "float64"))) == List{16, 16});
  for (const char* padding : {"valid", "same"})
    for (int stride : {1, 2}) {
      Tensor x = drawn({2, 5, 4, 6, 3}, float64), w = drawn({2, 3, 2, 3, 4}, float64);
      Tensor y = K::conv3d(x, w, stride, padding), z = drawn(y.shape(), float64);
      Tensor back = K::conv3d_transpose(z, w, x.shape(), stride, padding);
      CHECK(K::sum(y * z).item<double>() == Approx(K::sum(x * back).item<double>()).epsilon(1e-12));
    }
}

TEST_CASE("depthwise filters and separable convolution", "[conv]") {
  Tensor x = K::constant({{{{1, 10}, {2, 20}}, {{3, 30}, {4, 40}}}}, float64);
  Tensor w = K::constant({{{{1, 2}, {3, 4}}}}, float64);  // one tap, two channels, two filters
  CHECK(flat(K::depthwise_conv2d(x, w)) == List{1, 2, 30, 40, 2, 4, 60, 80, 3, 6, 90, 120, 4, 8, 120, 160});
  Tensor point = K::constant({{{{1}, {1}, {1}, {1}}}}, float64);
  CHECK(flat(K::separable_conv2d(x, w, point)) == List{73, 146, 219, 292});
  CHECK(flat(K::separable_conv1d(line({1, 2, 3}), K::constant({{{1.0, 2.0}}, {{10.0, 20.0}}}, float64),
                                 K::constant({{{1.0}, {100.0}}}, float64))) == List{21 + 4200, 32 + 6400});
}

TEST_CASE("values of pooling", "[conv]") {
  Tensor x = image(4, 4), block = x(all, kassette::slice(0, 3), kassette::slice(0, 3));
  CHECK(flat(K::pool2d(block, 3, 1, "same")) == List{6, 7, 7, 10, 11, 11, 10, 11, 11});
  CHECK(flat(K::pool2d(block, 3, 1, "same", None, "avg")) == List{3.5, 4, 4.5, 5.5, 6, 6.5, 7.5, 8, 8.5});
  Tensor other = K::constant({{1, 2, 3}, {6, 7, 8}, {11, 12, 13}}, float64, {1, 3, 3, 1});
  CHECK(flat(K::pool2d(other, 2, 2, "same")) == List{7, 8, 12, 13});
  CHECK(flat(K::pool2d(other, 2, 2, "same", None, "avg")) == List{4, 5.5, 11.5, 13});
  CHECK(flat(K::pool2d(x, 3, 2, "same")) == List{11, 12, 15, 16});
  CHECK(flat(K::pool2d(x, 3, 2, "same", None, "avg")) == List{6, 7.5, 12, 13.5});
  CHECK(flat(K::pool3d(K::reshape(x, {1, 2, 2, 4, 1}), 2)) == List{14, 15, 16});
}

TEST_CASE("maximum pooling: ties, NaN and minus infinity", "[conv]") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), low = -std::numeric_limits<double>::infinity();
  for (DType dtype : {float32, float64, float16})
    for (const char* format : {"channels_last", "channels_first"}) {
      auto of = [&](std::initializer_list<double> v) {
        return K::constant(std::vector<double>(v), dtype,
                           std::string(format) == "channels_last" ? Dims{1, 2, 2, 1} : Dims{1, 1, 2, 2});
      };
      auto pooled = [&](const Tensor& x) { return K::pool2d(x, 2, 1, "valid", std::string(format)); };
      Tensor tie = K::variable(of({3, 3, 3, 3}), dtype), x = K::variable(of({1, nan, 5, nan}), dtype),
             y = K::variable(of({low, low, low, low}), dtype);
      CHECK(flat(K::gradients(K::sum(pooled(tie)), tie)[0]) == List{1, 0, 0, 0});
      CHECK(std::isnan(pooled(x).item<double>()));
      CHECK(flat(K::gradients(K::sum(pooled(x)), x)[0]) == List{0, 1, 0, 0});
      CHECK(pooled(y).item<double>() == low);
      CHECK(flat(K::gradients(K::sum(pooled(y)), y)[0]) == List{1, 0, 0, 0});
    }
}

TEST_CASE("pooling gives the same bits in both data formats", "[conv]") {
  at_every_level([&](devices::Level level) {
    for (DType dtype : {float32, float64})
      for (int columns : {1, 2, 3, 7, 16, 37, 70}) {
        Tensor x = drawn({2, 3, 9, columns, 5}, dtype), first = K::permute_dimensions(x, {0, 4, 1, 2, 3});
        for (int size : {1, 2, 3, 5})
          for (int stride : {1, 2, 3})
            for (const char* mode : {"max", "avg"}) {
              INFO(devices::level_name(level)
                   << " " << dtype << ", " << columns << " columns, " << mode << " of " << size << " every " << stride);
              Tensor y = K::pool3d(x, {1, 2, size}, {1, 1, stride}, "same", "channels_last", mode),
                     z = K::pool3d(first, {1, 2, size}, {1, 1, stride}, "same", "channels_first", mode);
              CHECK(flat(K::permute_dimensions(y, {0, 4, 1, 2, 3})) == flat(z));
            }
      }
  });
}

TEST_CASE("pooling takes at most 64 MiB beside its operands and its result", "[conv]") {
  const SettingsScope settings;
  set_num_threads(8);
  Tensor x = K::variable(K::ones({1, 512, 512, 64}, float16), float16);
  for (const char* mode : {"max", "avg"}) {
    auto measured = [&](auto f) {
      const std::int64_t before = memory_stats().live;
      reset_peak_memory();
      Tensor y = f();
      CHECK(memory_stats().peak - before - Access::desc(y).bytes() <= 64 << 20);
      return y;
    };
    Tensor y = measured([&] { return K::pool2d(x, 3, 2, "same", "channels_last", mode); });
    CHECK(flat(K::min(y)) == List{1});
    Tensor dx = measured([&] { return K::gradients(y, x)[0]; });
    CHECK(K::sum(K::cast(dx, float32)).item<float>() == Approx(256 * 256 * 64).epsilon(1e-3));
  }
}

TEST_CASE("images enlarged", "[conv]") {
  Tensor x = K::constant({{1, 2}, {3, 4}}, float64, {1, 2, 2, 1});
  const List twice{1, 1.5, 2, 2, 2, 2.5, 3, 3, 3, 3.5, 4, 4, 3, 3.5, 4, 4};
  CHECK(flat(K::resize_images(x, 2, 2, "channels_last", "bilinear")) == twice);
  CHECK(flat(K::resize_images(K::reshape(x, {1, 1, 2, 2}), 2, 2, "channels_first", "bilinear")) == twice);
  CHECK(flat(K::resize_images(K::constant({0, 3}, float32, {1, 1, 2, 1}), 1, 3, "channels_last", "bilinear")) ==
        List{0, 1, 2, 3, 3, 3});
  CHECK(flat(K::resize_images(K::constant({0, 3, 6}, "int32", {1, 1, 3, 1}), 1, 2, "channels_last", "bilinear")) ==
        List{0, 1.5, 3, 4.5, 6, 6});
  CHECK(K::resize_images(x, 2, 2, "channels_last", "bilinear").dtype() == float64);
  CHECK(K::resize_images(K::cast(x, "int32"), 2, 2, "channels_last", "bilinear").dtype() == float32);
  CHECK(flat(K::resize_images(K::cast(x, "int32"), 2, 1, "channels_last")) == List{1, 2, 1, 2, 3, 4, 3, 4});
  CHECK(flat(K::resize_volumes(K::reshape(x, {1, 1, 2, 2, 1}), 2, 1, 2, "channels_last")) ==
        List{1, 1, 2, 2, 3, 3, 4, 4, 1, 1, 2, 2, 3, 3, 4, 4});
}

TEST_CASE("zeros around sequences, images and volumes", "[conv]") {
  CHECK(flat(K::temporal_padding(line({1, 2}), {1, 2})) == List{0, 1, 2, 0, 0});
  CHECK(flat(K::temporal_padding(line({1, 2}))) == List{0, 1, 2, 0});
  CHECK(flat(K::spatial_2d_padding(image(1, 2), {{1, 0}, {0, 2}})) == List{0, 0, 0, 0, 1, 2, 0, 0});
  CHECK(flat(K::spatial_2d_padding(K::reshape(image(1, 2), {1, 1, 1, 2}), {{0, 1}, {1, 0}}, "channels_first")) ==
        List{0, 1, 2, 0, 0, 0});
  CHECK(K::spatial_3d_padding(K::ones({1, 2, 3, 4, 5})).shape() == Shape{1, 4, 5, 6, 5});
  CHECK(K::int_shape(K::spatial_2d_padding(K::placeholder({1, None, None, 1}), {{1, 2}, {2, 1}})) ==
        Shape{1, -1, -1, 1});
  CHECK_THROWS_AS(K::temporal_padding(line({1, 2}), {1, 2, 3}), AssertionError);
  CHECK_THROWS_AS(K::spatial_2d_padding(image(2, 2), {1, 1}), AssertionError);
  CHECK_THROWS_WITH(K::temporal_padding(line({1, 2}), Tensor()),
                    Catch::Contains("temporal_padding: padding is an empty Tensor"));
  CHECK_THROWS_WITH(K::spatial_2d_padding(image(2, 2), {1, 1}),
                    "spatial_2d_padding: padding has shape (2,); it must be two pairs");
  CHECK_THROWS_AS(K::spatial_2d_padding(image(2, 2), {{1, 1}, {1, 1}}, "channels_middle"), ValueError);
}

TEST_CASE("local convolution", "[conv]") {
  CHECK(flat(K::local_conv1d(line({1, 2, 3, 4}), K::constant({{{1}, {10}}, {{2}, {20}}, {{3}, {30}}}, float64), 2,
                             1)) == List{21, 64, 129});
  // The order of a patch's elements: a kernel that reads them as digits.
  Tensor x = K::constant({{{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}}}, float64);
  Tensor digits = K::constant({1e7, 1e6, 1e5, 1e4, 1e3, 1e2, 1e1, 1}, float64, {1, 8, 1});
  CHECK(K::local_conv2d(x, digits, 2, 1, 1).item<double>() == 12345678);
  CHECK(K::local_conv2d(K::permute_dimensions(x, {0, 3, 1, 2}), digits, 2, 1, 1, "channels_first").item<double>() ==
        13572468);
  Tensor first = K::permute_dimensions(line({1, 2, 3, 4}), {0, 2, 1});
  CHECK(flat(K::local_conv1d(first, K::constant({{{1}, {10}}, {{2}, {20}}, {{3}, {30}}}, float64), 2, 1,
                             "channels_first")) == List{21, 64, 129});
}

TEST_CASE("bias for channels and for places", "[conv]") {
  Tensor x = K::zeros({1, 2, 3}, "float64"), full = K::constant({{0, 1, 2}, {3, 4, 5}}, float64);
  CHECK(flat(K::bias_add(x, K::constant({1, 2, 3}, float64))) == List{1, 2, 3, 1, 2, 3});
  CHECK(flat(K::bias_add(K::zeros({1, 3, 2}, "float64"), K::constant({1, 2, 3}, float64), "channels_first")) ==
        List{1, 1, 2, 2, 3, 3});
  CHECK(flat(K::bias_add(x, full)) == List{0, 1, 2, 3, 4, 5});
  // Reshaped, not transposed.
  CHECK(flat(K::bias_add(K::zeros({1, 3, 2}, "float64"), full, "channels_first")) == List{0, 1, 2, 3, 4, 5});
  CHECK(flat(K::bias_add(K::zeros({2, 3}, "float64"), K::constant({1, 2, 3}, float64), "channels_first")) ==
        List{1, 2, 3, 1, 2, 3});
  CHECK_THROWS_WITH(K::bias_add(x, K::constant({1}, float64)),
                    "bias_add: bias of shape (1,) for x of shape (1, 2, 3); there must be one number for each channel");
  Tensor p = K::placeholder({None, None, None}, None, "float64");
  auto f = K::function({p}, {K::bias_add(p, K::constant({1}, float64))});
  CHECK_THROWS_AS(f({x}), ValueError);
  CHECK_THROWS_AS(K::bias_add(x, K::ones({1, 2, 3}, "float64")), ValueError);
  CHECK_THROWS_AS(K::bias_add(x, full, "last"), ValueError);
}

TEST_CASE("what convolution and pooling refuse is one line, and the same on placeholders", "[conv][bad]") {
  Tensor x = K::ones({2, 5, 6, 3}), w = K::ones({3, 3, 3, 4});
  auto refused = [](auto&& f) {
    try {
      f();
    } catch (const ValueError& e) {
      return std::string(e.what());
    } catch (const TypeError& e) {
      return "TypeError " + std::string(e.what());
    }
    return std::string("nothing");
  };
  CHECK(refused([&] {
          K::conv2d(x, K::ones({7, 3, 3, 4}));
        }) ==
        "conv2d: x (2, 5, 6, 3) is smaller than the kernel (7, 3, 3, 4): 5 against 7; padding \"same\" takes any size");
  CHECK(refused([&] {
          K::conv2d(x, K::ones({3, 3, 2, 4}));
        }) == "conv2d: x (2, 5, 6, 3) has 3 channels, and the kernel (3, 3, 2, 4) takes 2");
  CHECK(refused([&] { K::conv2d(x, w, 0); }) == "conv2d: strides hold 0; they must be at least 1");
  CHECK(refused([&] {
          K::conv2d(x, w, {1, 1, 1});
        }) == "conv2d: strides hold 3 sizes; they must be 2 numbers, or one for all axes");
  std::string argument = "nothing was thrown";
  try {
    K::conv2d(x, w, 0);
  } catch (const Error& e) {
    argument = e.argument();
  }
  CHECK(argument == "strides");
  CHECK(refused([&] { K::conv2d(x, w, {1, -2}); }) == "conv2d: strides hold -2; they must be at least 1");
  CHECK(refused([&] { K::conv2d(x, w, 1, "same", None, 0); }) ==
        "conv2d: dilation_rate holds 0; it must be at least 1");
  CHECK(refused([&] { K::conv2d(x, w, 2, "same", None, 2); }) ==
        "conv2d: strides and dilation_rate are both above 1; one of them must be 1");
  CHECK(refused([&] {
          K::conv2d_transpose(x, K::ones({3, 3, 4, 3}), {2, 10, 12, 4}, 2, "same", None, 2);
        }) == "conv2d_transpose: strides and dilation_rate are both above 1; one of them must be 1");
  CHECK(refused([&] { K::conv2d(x, w, 1, "full"); }) ==
        "conv2d: padding is \"full\"; it must be \"valid\" or \"same\"");
  CHECK(refused([&] { K::conv2d(x, w, 1, "causal"); }) ==
        "conv2d: padding is \"causal\"; it must be \"valid\" or \"same\"");
  CHECK(refused([&] {
          K::conv1d(K::ones({2, 5, 3}), K::ones({2, 3, 4}), 1, "causal", "channels_first");
        }) == "conv1d: padding is \"causal\"; data_format must be \"channels_last\" for it");
  CHECK(refused([&] {
          K::conv2d(K::ones({5, 6, 3}), w);
        }) == "conv2d: x of shape (5, 6, 3); the rank must be 4: (batch, rows, columns, channels)");
  CHECK(refused([&] {
          K::conv2d(K::ones({2, 5, 6, 0}), K::ones({3, 3, 0, 4}));
        }) == "conv2d: kernel has shape (3, 3, 0, 4); its sizes must be positive");
  CHECK(refused([&] { K::conv2d(K::cast(x, "int32"), K::cast(w, "int32")); }) ==
        "TypeError conv2d: x is int32, not a float dtype; cast it first (K::cast)");
  CHECK(refused([&] { K::conv2d(x, K::cast(w, "float64")); }) ==
        "TypeError conv2d: x is float32, the kernel is float64; cast one of them (K::cast), tensors are not promoted");
  CHECK(
      refused([&] {
        K::conv2d_transpose(x, K::ones({3, 3, 4, 3}), {2, 9, 9, 4}, 2, "same");
      }) ==
      "conv2d_transpose: output_shape (2, 9, 9, 4) for x (2, 5, 6, 3) and a kernel (3, 3, 4, 3): a convolution of 9 elements with this stride and padding gives 5, x has 6");
  CHECK(
      refused([&] {
        K::conv2d_transpose(x, K::ones({3, 3, 4, 3}), {3, 10, 12, 4}, 2, "same");
      }) ==
      "conv2d_transpose: output_shape (3, 10, 12, 4) for x (2, 5, 6, 3) and a kernel (3, 3, 4, 3); its batch must be 2");
  CHECK(refused([&] {
          K::separable_conv2d(x, K::ones({3, 3, 3, 1}), K::ones({1, 2, 3, 4}));
        }) == "separable_conv2d: pointwise_kernel has shape (1, 2, 3, 4); its spatial sizes must be 1");
  for (const char* format : {"channels_middle", ""})
    CHECK(refused([&] { K::conv2d(x, w, 1, "same", std::string(format)); }).find("conv2d: ") == 0);
  CHECK(refused([&] { K::pool2d(x, 2, 1, "twice"); }) ==
        "pool2d: padding is \"twice\"; it must be \"valid\" or \"same\"");
  CHECK(refused([&] { K::pool2d(x, 2, 1, "same", None, "median"); }) ==
        "pool2d: pool_mode is \"median\"; it must be \"max\" or \"avg\"");
  CHECK(refused([&] { K::pool2d(x, 6); }) ==
        "pool2d: x (2, 5, 6, 3) is smaller than the window: 5 against 6; padding \"same\" takes any size");
  CHECK(refused([&] { K::resize_images(x, 2, 2, None); }) ==
        "resize_images: data_format is None; it must be \"channels_last\" or \"channels_first\"");
  CHECK(refused([&] {
          K::temporal_padding(K::ones({2, 2, 3}), {1, INT64_MAX});
        }) == "temporal_padding: padding of 1 and 9223372036854775807 makes axis 1 too large to address");
  CHECK(refused([&] { K::resize_images(x, 0, 2, "channels_last"); }) ==
        "resize_images: height_factor is 0; it must be at least 1");
  CHECK(refused([&] {
          K::resize_images(x, 1 << 30, 1 << 30, "channels_last", "bilinear");
        }).find("too large to address") != std::string::npos);
  // Unknown sizes: refused when they are known, in the same words.
  Tensor p = K::placeholder({None, None, None, None}), k = K::placeholder({None, None, None, None});
  auto f = K::function({p, k}, {K::conv2d(p, k)});
  CHECK(refused([&] {
          f({x, K::ones({7, 3, 3, 4})});
        }) ==
        "conv2d: x (2, 5, 6, 3) is smaller than the kernel (7, 3, 3, 4): 5 against 7; padding \"same\" takes any size");
  CHECK(refused([&] {
          f({x, K::ones({3, 3, 2, 4})});
        }) == "conv2d: x (2, 5, 6, 3) has 3 channels, and the kernel (3, 3, 2, 4) takes 2");
  CHECK(f({x, w})[0].shape() == Shape{2, 3, 4, 4});
}

TEST_CASE("channels first where an image is one point", "[conv]") {
  // Both orders are the same then.
  Tensor x = K::constant({{{2.0}}, {{3.0}}}), w = K::constant({{{1.0, 10.0, 100.0}}});
  CHECK(flat(K::conv1d(x, w, 1, "valid", "channels_first")) == List{2, 20, 200, 3, 30, 300});
  Tensor v = K::variable(K::reshape(K::arange(6, None, 1, "float32"), {2, 3, 1, 1})),
         k = K::variable(K::constant({{{{1.0}, {10.0}, {100.0}}}}));
  Tensor y = K::conv2d(v, k, 1, "same", "channels_first");
  CHECK(flat(y) == List{210, 543});
  Tensors g = K::gradients(K::sum(y), {v, k});
  CHECK(flat(g[0]) == List{1, 10, 100, 1, 10, 100});
  CHECK(flat(g[1]) == List{3, 5, 7});
  CHECK(flat(K::pool2d(v, 1, 1, "same", "channels_first")) == List{0, 1, 2, 3, 4, 5});
  CHECK(flat(K::pool2d(v, 3, 2, "same", "channels_first", "avg")) == List{0, 1, 2, 3, 4, 5});
}

TEST_CASE("local convolution and bias of no elements, with sizes that are unknown", "[conv]") {
  Tensor p = K::placeholder({None, None, None}), q = K::placeholder({None, None, None, None}),
         b = K::placeholder({None, None, None});
  auto local = K::function({p}, {K::local_conv1d(p, K::ones({2, 1, 3}), 1, 3)});
  CHECK(local({K::ones({0, 4, 1})})[0].shape() == Shape{0, 2, 3});
  CHECK_THROWS(local({K::ones({0, 4, 2})}));
  CHECK(K::local_conv1d(K::ones({2, 4, 0}), K::ones({2, 0, 3}), 1, 3).shape() == Shape{2, 2, 3});
  CHECK(K::local_conv2d(K::ones({0, 4, 4, 1}), K::ones({4, 1, 3}), 1, 3, 2, "channels_last").shape() ==
        Shape{0, 2, 2, 3});
  // No places at all: no patch, whatever the strides.
  CHECK(K::local_conv1d(K::ones({2, 2, 1}), K::ones({0, 3, 5}), 3, 2).shape() == Shape{2, 0, 5});
  Tensor none = K::placeholder({None, None, 1});
  CHECK(
      K::function({none}, {K::local_conv1d(none, K::ones({0, 3, 5}), 3, 2)})(Tensors{K::ones({2, 2, 1})})[0].shape() ==
      Shape{2, 0, 5});
  auto bias = K::function({q, b}, {K::bias_add(q, b, "channels_first")});
  CHECK(bias({K::ones({2, 0, 3, 3}), K::ones({3, 3, 0})})[0].shape() == Shape{2, 0, 3, 3});
  CHECK_THROWS_WITH(bias({K::ones({1, 5, 2, 2}), K::ones({1, 1, 1})}),
                    "bias_add: bias of shape (1, 1, 1) for x of shape (1, 5, 2, 2); its sizes must be those of x");
  CHECK(flat(bias({K::zeros({1, 2, 1, 1}), K::constant({{{5.0, 6.0}}})})[0]) == List{5, 6});
}

TEST_CASE("a window larger than the image is cut to it", "[conv]") {
  Tensor x = K::reshape(K::arange(1, 7, 1, "float32"), {1, 2, 3, 1});
  CHECK(flat(K::pool2d(x, 2147483647, 2147483647, "same")) == List{6});
  CHECK(flat(K::pool2d(x, 2147483647, 2147483647, "same", None, "avg")) == List{3.5});
  Tensor v = K::variable(x), w = K::variable(K::ones({1, 1, 1, 1}));
  CHECK(flat(K::gradients(K::sum(K::conv2d(v, w, 1 << 30, "same")), v)[0]) == List{1, 0, 0, 0, 0, 0});
}

TEST_CASE("empty batches and empty space", "[conv]") {
  Tensor x = K::variable(K::ones({0, 5, 6, 3})), w = K::variable(K::ones({3, 3, 3, 4}));
  Tensor y = K::conv2d(x, w, 1, "same");
  CHECK(y.shape() == Shape{0, 5, 6, 4});
  Tensors g = K::gradients(K::sum(y), {x, w});
  CHECK(g[0].shape() == Shape{0, 5, 6, 3});
  CHECK(flat(g[1]) == List(108, 0));
  CHECK(K::conv2d(K::ones({2, 0, 6, 3}), w, 1, "same").shape() == Shape{2, 0, 6, 4});
  CHECK(K::pool2d(K::ones({0, 4, 4, 2}), 2).shape() == Shape{0, 3, 3, 2});
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{0, 4, 3, 2}, {2, 0, 3, 2}, {2, 4, 0, 2}, {2, 4, 3, 0}})
    for (const char* format : {"channels_last", "channels_first"}) {
      Tensor e = K::variable(K::ones(shape));
      for (const Tensor& r : {K::pool2d(e, 2, 2, "same", format), K::pool2d(e, {3, 2}, 1, "same", format, "avg"),
                              K::resize_images(e, 2, 3, format, "bilinear"), K::resize_images(e, 2, 3, format),
                              K::spatial_2d_padding(e, {{0, 0}, {0, 0}}, format)}) {
        CHECK(r.size() == 0);
        CHECK(K::gradients(K::sum(r), e)[0].shape() == e.shape());
      }
    }
}

TEST_CASE("the same bits for any number of threads and any batch", "[conv][threads]") {
  Tensor x = drawn({3, 37, 41, 19}, float32), w = drawn({3, 3, 19, 37}, float32);
  SettingsScope restore;
  set_num_threads(1);
  Tensor one = K::conv2d(x, w, 1, "same"), alone = K::conv2d(x(kassette::slice(1, 2)), w, 1, "same");
  Tensor v = K::variable(w);
  Tensor dw = K::gradients(K::sum(K::conv2d(x, v, 2)), v)[0];
  set_num_threads(5);
  CHECK(flat(K::conv2d(x, w, 1, "same")) == flat(one));
  CHECK(flat(K::gradients(K::sum(K::conv2d(x, v, 2)), v)[0]) == flat(dw));
  CHECK(flat(one(kassette::slice(1, 2))) == flat(alone));
}

TEST_CASE("taps that are 2^31 elements apart meet padding alone but for the one in the middle", "[conv]") {
  const int far = 2147483647;
  for (const char* format : {"channels_last", "channels_first"}) {
    const bool first = format == std::string("channels_first");
    Tensor x = K::variable(K::ones(first ? Dims{1, 2, 4, 4} : Dims{1, 4, 4, 2})),
           w = K::variable(drawn({3, 3, 2, 3}, float32));
    Tensor middle = K::conv2d(x, w(kassette::slice(1, 2), kassette::slice(1, 2)), 1, "same", format);
    Tensor y = K::conv2d(x, w, 1, "same", format, {far, far}),
           d = K::depthwise_conv2d(x, w, 1, "same", format, {far, far});
    CHECK(flat(y) == flat(middle));
    CHECK(K::sum(d).item<float>() == Approx(K::sum(middle).item<float>()).epsilon(1e-5));
    Tensor dx = K::gradients(K::sum(y), x)[0], dw = K::gradients(K::sum(y), w)[0], dv = K::gradients(K::sum(d), w)[0];
    CHECK(flat(dx) == flat(K::gradients(K::sum(middle), x)[0]));
    for (const Tensor& g : {dw, dv}) {
      CHECK(flat(g(1, 1)) == List(6, 16));
      CHECK(K::sum(g).item<float>() == 96);
    }
  }
}

TEST_CASE("convolution takes at most 64 MiB beside its operands and its result", "[conv][serial]") {
  const SettingsScope settings;
  set_num_threads(8);
  auto measured = [](const char* what, const OpDef& op, const ConvForm& how, std::initializer_list<In> in) {
    const std::int64_t before = memory_stats().live;
    reset_peak_memory();
    Tensor y = apply1(op, window_attrs(how), in);
    INFO(what);
    CHECK(memory_stats().peak - before - Access::desc(y).bytes() <= 64 << 20);
    return y;
  };
  auto forward = [&](const ConvForm& how, const Tensor& x, const Tensor& w) {
    return measured("forward", convolution_op, how, {x, w});
  };
  auto input_gradient = [&](const ConvForm& how, const Tensor& dy, const Tensor& w, const Tensor& x) {
    return measured("input gradient", convolution_input_gradient_op, how, {dy, w, shape_of(x, int64)});
  };
  auto kernel_gradient = [&](const ConvForm& how, const Tensor& x, const Tensor& dy, const Tensor& w) {
    return measured("kernel gradient", convolution_kernel_gradient_op, how, {x, dy, w});
  };
  ConvForm line, last, first;
  last.axes = first.axes = 2;
  first.channels_first = true;
  {  // 600,001 taps
    Tensor x = K::ones({1, 600'016, 1}), w = K::ones({600'001, 1, 8}), y = forward(line, x, w);
    CHECK(flat(y) == List(16 * 8, 600'001));
    CHECK(K::max(kernel_gradient(line, x, y, w)).item<float>() == 16 * 600'001.0f);
  }
  {  // 600,000 channels
    Tensor x = K::ones({1, 3, 2, 2}), w = K::ones({1, 1, 2, 600'000}), dy = K::ones({1, 3, 2, 600'000});
    CHECK(flat(input_gradient(last, dy, w, x)) == List(12, 600'000));
    CHECK(flat(forward(last, dy, K::ones({1, 1, 600'000, 2}))) == List(12, 600'000));
  }
  {  // many channels of results, through a buffer
    Tensor x = K::ones({1, 2, 130, 130}), w = K::ones({3, 3, 2, 512}), y = forward(first, x, w);
    CHECK(K::min(y).item<float>() == 18);
    CHECK(K::max(kernel_gradient(first, x, y, w)).item<float>() == 18 * 128 * 128);
    CHECK(K::max(input_gradient(first, y, w, x)).item<float>() == 18 * 9 * 512);
  }
  ConvForm depthwise = last, dilated = last, dilated_first = first;
  depthwise.depthwise = true;
  for (ConvForm* form : {&dilated, &dilated_first})
    for (int i = 0; i < 2; ++i) form->window[i].dilation = 150, form->window[i].padding = Padding::same;
  {  // 33 million weights of a half type
    Tensor x = K::ones({1, 1, 1, 4096}, float16), w = K::ones({1, 1, 4096, 8192}, float16), y = forward(last, x, w);
    CHECK(flat(K::min(y)) == List{4096});
    CHECK(flat(K::max(input_gradient(last, K::ones_like(y, float16), w, x))) == List{8192});
    Tensor slope = K::reshape(K::arange(8192.0), {1, 1, 1, 8192}),
           dw = kernel_gradient(last, x, K::cast(slope, float16), w);
    CHECK(flat(K::all(K::equal(dw, K::cast(slope, float16)))) == List{1});
  }
  for (int channels : {2, 1 << 22}) {  // 17 million of a depthwise kernel: few channels or many
    Tensor x = K::ones({1, 2, 2, channels}, float16), w = K::ones({2, 2, channels, (1 << 22) / channels}, float16),
           y = forward(depthwise, x, w);
    CHECK(flat(K::min(y)) == List{4});
    CHECK(flat(K::max(kernel_gradient(depthwise, x, y, w))) == List{4});
    CHECK(flat(K::max(input_gradient(depthwise, K::ones_like(y, float16) * (channels / 4194304.0), w, x))) == List{1});
  }
  for (const ConvForm& form : {dilated, dilated_first})  // taps far apart
    for (bool each : {false, true}) {
      ConvForm how = form;
      how.depthwise = each;
      const std::int64_t c = 64;
      Tensor x = K::ones(how.channels_first ? Dims{1, c, 400, 400} : Dims{1, 400, 400, c}),
             w = K::ones(each ? Dims{3, 3, c, 1} : Dims{3, 3, c, c}), y = forward(how, x, w);
      CHECK(flat(K::stack({K::min(y), K::max(y)})) == List{each ? 4.0 : 4.0 * c, each ? 9.0 : 9.0 * c});
      Tensor dw = kernel_gradient(how, x, K::ones_like(y), w);
      CHECK(flat(K::stack({K::min(dw), K::max(dw)})) == List{250 * 250, 400 * 400});
      Tensor dx = input_gradient(how, K::ones_like(y), w, x);
      CHECK(flat(K::stack({K::min(dx), K::max(dx)})) == List{each ? 4.0 : 4.0 * c, each ? 9.0 : 9.0 * c});
    }
  struct Pooled {
    const char* what;
    Dims shape;
    int axes;
    std::int64_t window;
  };
  for (const Pooled& p :
       {Pooled{"volumes of a half type, whose planes are large", {1, 64, 3, 256, 512}, 3, 2},
        Pooled{"a large window", {1, 64, 768, 768}, 2, 384}, Pooled{"one long axis", {1, 64, 1, 200'000}, 2, 1}}) {
    INFO(p.what);
    ConvForm how;
    how.axes = p.axes;
    how.channels_first = true;
    for (int i = 0; i < p.axes; ++i) how.window[i].size = p.window, how.window[i].stride = 2;
    if (p.window > 2)
      for (int i = 0; i < p.axes; ++i) how.window[i].stride = p.window;
    Tensor x = K::ones(p.shape, float16), y = measured("max", max_pool_op, how, {x});
    CHECK(flat(K::stack({K::min(y), K::max(y)})) == List{1, 1});
    CHECK(flat(K::max(measured("max, gradient", max_pool_grad_op, how, {x, y}))) == List{1});
    y = measured("mean", avg_pool_op, how, {x});
    CHECK(flat(K::stack({K::min(y), K::max(y)})) == List{1, 1});
    double taps = 1;
    for (int i = 0; i < p.axes; ++i) taps *= static_cast<double>(p.window);
    CHECK(flat(K::max(measured("mean, gradient", avg_pool_grad_op, how, {y, x}))) ==
          flat(K::cast(K::constant({1 / taps}), float16)));
  }
  {  // 1,000,000 cotangents of 40 channels, which are copied to whole vectors
    Tensor x = K::ones({1, 1'000'000, 1}), w = K::ones({1, 1, 40});
    CHECK(flat(kernel_gradient(line, x, K::ones({1, 1'000'000, 40}), w)) == List(40, 1e6));
  }
}
