// tests/nn_backend/convolution/keras_convolution_test.cpp - what Keras' own tests of convolution, pooling, padding and
// enlarging ask for, against the definitions: float32 in [-0.5, 0.5), within 1e-5.
#include <kassette/backend.h>

#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/nn_backend/convolution/convolution_reference.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

using Sizes = std::vector<std::int64_t>;
const std::string kFirst = "channels_first", kLast = "channels_last";

Tensor drawn(const Sizes& shape) {
  static std::uint64_t seed = 0;
  std::size_t n = 1;
  for (std::int64_t d : shape) n *= static_cast<std::size_t>(d);
  return K::variable(K::constant(numbers(n, ++seed), "float32", shape), "float32");
}
List list(const Tensor& x) { return values(K::cast(x, "float64")); }

/// Windows of `kernel` sizes on an input, all strides 1.
RefWindows windows(const Sizes& x, const Sizes& kernel, const std::string& padding, const std::string& format,
                   std::int64_t c_out, std::int64_t dilation = 1) {
  RefWindows g;
  g.axes = static_cast<int>(x.size()) - 2;
  g.channels_first = format == kFirst;
  g.batch = x[0];
  g.c_in = g.channels_first ? x[1] : x.back();
  g.c_out = c_out;
  for (int i = 0; i < g.axes; ++i) {
    RefAxis& a = g.axis[3 - g.axes + i];
    a.size = kernel[static_cast<std::size_t>(i)];
    a.dilation = dilation;
    a.set(x[static_cast<std::size_t>(i + (g.channels_first ? 2 : 1))], padding);
  }
  return g;
}
std::size_t outputs(const RefWindows& g, std::int64_t channels) {
  return static_cast<std::size_t>(g.batch * g.out_points() * channels);
}
void check(const Tensor& y, const List& expected) { check_close(list(y), expected, 1e-7, 1e-5); }

void conv(const Sizes& x_shape, const Sizes& w_shape, const std::string& padding, const std::string& format,
          int dilation = 1) {
  CAPTURE(x_shape, w_shape, padding, format, dilation);
  Tensor x = drawn(x_shape), w = drawn(w_shape), y;
  const RefWindows g = windows(x_shape, w_shape, padding, format, w_shape.back(), dilation);
  if (g.axes == 1) y = K::conv1d(x, w, 1, padding, format, dilation);
  if (g.axes == 2) y = K::conv2d(x, w, {1, 1}, padding, format, {dilation, dilation});
  if (g.axes == 3) y = K::conv3d(x, w, {1, 1, 1}, padding, format, {dilation, dilation, dilation});
  check(y, ref_convolution(g, list(x), list(w), List(outputs(g, g.c_out))).y);
}
void back(const Sizes& x_shape, const Sizes& w_shape, const Sizes& out, const std::string& format, int dilation = 1) {
  CAPTURE(x_shape, out, format, dilation);
  Tensor x = drawn(x_shape), w = drawn(w_shape);
  const RefWindows g = windows(out, w_shape, "same", format, w_shape.back(), dilation);
  const List none(static_cast<std::size_t>(g.batch * g.in_points() * g.c_in));
  check(K::conv2d_transpose(x, w, out, {1, 1}, "same", format, {dilation, dilation}),
        ref_transposed(g, list(x), list(w), none).y);
}
void depthwise(const Sizes& x_shape, const Sizes& w_shape, const std::string& padding, const std::string& format) {
  CAPTURE(x_shape, w_shape, padding, format);
  Tensor x = drawn(x_shape), w = drawn(w_shape);
  const RefWindows g = windows(x_shape, w_shape, padding, format, w_shape[2] * w_shape[3]);
  check(K::depthwise_conv2d(x, w, {1, 1}, padding, format),
        ref_depthwise(g, list(x), list(w), List(outputs(g, g.c_out))).y);
}
void separable(const Sizes& x_shape, const Sizes& kernel, std::int64_t multiplier, const std::string& padding,
               const std::string& format) {
  CAPTURE(x_shape, kernel, multiplier, padding, format);
  RefWindows g = windows(x_shape, kernel, padding, format, 1);
  g.c_out = g.c_in * multiplier;
  Sizes depth = kernel, point(kernel.size(), 1);
  depth.insert(depth.end(), {g.c_in, multiplier});
  point.insert(point.end(), {g.c_out, 7});
  Tensor x = drawn(x_shape), w = drawn(depth), v = drawn(point);
  Tensor y = g.axes == 1 ? K::separable_conv1d(x, w, v, 1, padding, format)
                         : K::separable_conv2d(x, w, v, {1, 1}, padding, format);
  check(y, ref_separable(g, list(x), list(w), list(v), List(outputs(g, 7)), 7).y);
}
void pool(const Sizes& x_shape, const Sizes& size, const std::string& padding, const std::string& format,
          const std::string& mode) {
  CAPTURE(x_shape, size, padding, format, mode);
  Tensor x = drawn(x_shape);
  const std::int64_t channels = format == kFirst ? x_shape[1] : x_shape.back();
  const RefWindows g = windows(x_shape, size, padding, format, channels);
  Tensor y = g.axes == 2 ? K::pool2d(x, size, {1, 1}, padding, format, mode)
                         : K::pool3d(x, size, {1, 1, 1}, padding, format, mode);
  const List none(outputs(g, channels));
  check(y, mode == "max" ? ref_max_pool(g, list(x), none).y : ref_avg_pool(g, list(x), none).y);
}

}  // namespace

TEST_CASE("Keras' test_conv", "[conv][keras]") {
  conv({2, 8, 2}, {3, 2, 3}, "same", kLast);
  conv({1, 8, 2}, {3, 2, 3}, "valid", kLast);
  conv({1, 2, 8}, {3, 2, 3}, "valid", kFirst);
  conv({2, 3, 4, 5}, {3, 3, 3, 2}, "same", kFirst);
  conv({2, 3, 5, 6}, {4, 3, 3, 4}, "valid", kFirst);
  conv({1, 6, 5, 3}, {3, 4, 3, 2}, "valid", kLast);
  conv({1, 7, 6, 3}, {3, 3, 3, 4}, "same", kLast);
  conv({2, 3, 4, 5, 4}, {3, 3, 3, 3, 4}, "same", kFirst);
  conv({2, 3, 5, 4, 6}, {3, 2, 4, 3, 4}, "valid", kFirst);
  conv({1, 2, 2, 2, 1}, {2, 2, 2, 1, 1}, "valid", kLast);
  conv({1, 3, 5, 4, 2}, {3, 3, 3, 2, 3}, "same", kLast);
}

TEST_CASE("Keras' test_dilated_conv", "[conv][keras]") {
  conv({2, 8, 3}, {4, 3, 2}, "valid", kLast, 2);
  conv({2, 3, 8}, {4, 3, 2}, "valid", kFirst, 2);
  conv({2, 8, 9, 3}, {3, 3, 3, 2}, "same", kLast, 2);
  conv({2, 3, 9, 8}, {4, 3, 3, 4}, "valid", kFirst, 2);
  conv({2, 5, 4, 6, 3}, {2, 2, 3, 3, 4}, "valid", kLast, 2);
  conv({2, 3, 5, 4, 6}, {2, 2, 3, 3, 4}, "same", kFirst, 2);
}

TEST_CASE("Keras' test_conv_transpose and test_dilated_conv_transpose", "[conv][keras]") {
  for (int dilation : {1, 2}) {
    back({2, 5, 6, 3}, {3, 3, 2, 3}, {2, 5, 6, 2}, kLast, dilation);
    back({2, 3, 8, 9}, {3, 3, 2, 3}, {2, 2, 8, 9}, kFirst, dilation);
  }
}

TEST_CASE("Keras' test_depthwise_conv and test_separable_conv", "[conv][keras]") {
  depthwise({2, 3, 4, 5}, {3, 3, 3, 2}, "same", kFirst);
  depthwise({2, 3, 5, 6}, {4, 3, 3, 4}, "valid", kFirst);
  depthwise({1, 6, 5, 3}, {3, 4, 3, 2}, "valid", kLast);
  depthwise({1, 7, 6, 3}, {3, 3, 3, 4}, "same", kLast);
  separable({2, 8, 2}, {3}, 1, "same", kLast);
  separable({1, 8, 2}, {3}, 2, "valid", kLast);
  separable({2, 3, 4, 5}, {3, 3}, 1, "same", kFirst);
  separable({2, 3, 5, 6}, {4, 3}, 2, "valid", kFirst);
  separable({1, 6, 5, 3}, {3, 4}, 1, "valid", kLast);
  separable({1, 7, 6, 3}, {3, 3}, 2, "same", kLast);
}

TEST_CASE("Keras' test_pool", "[conv][keras]") {
  pool({2, 3, 7, 7}, {3, 3}, "same", kFirst, "avg");
  pool({3, 3, 8, 5}, {2, 3}, "valid", kFirst, "max");
  pool({2, 9, 5, 3}, {3, 2}, "valid", kLast, "avg");
  pool({3, 6, 7, 3}, {3, 3}, "same", kLast, "max");
  pool({2, 3, 7, 7, 7}, {3, 3, 3}, "same", kFirst, "avg");
  pool({3, 3, 8, 5, 9}, {2, 3, 2}, "valid", kFirst, "max");
  pool({2, 8, 9, 5, 3}, {3, 2, 3}, "valid", kLast, "avg");
  pool({3, 5, 6, 7, 3}, {3, 3, 3}, "same", kLast, "max");
}

TEST_CASE("Keras' test_conv_invalid_use and test_pooling_invalid_use", "[conv][keras][bad]") {
  const char* middle = "channels_middle";
  Tensor x3 = drawn({4, 8, 2}), x4 = drawn({4, 8, 4, 2}), x5 = drawn({4, 8, 4, 3, 2});
  CHECK_THROWS_AS(K::conv1d(x3, drawn({3, 2, 3}), 1, "valid", middle), ValueError);
  CHECK_THROWS_AS(K::conv2d(x4, drawn({3, 3, 2, 3}), 1, "valid", middle), ValueError);
  CHECK_THROWS_AS(K::conv3d(x5, drawn({3, 3, 3, 2, 3}), 1, "valid", middle), ValueError);
  CHECK_THROWS_AS(K::separable_conv2d(x4, drawn({3, 3, 2, 1}), drawn({1, 1, 2, 3}), 1, "valid", middle), ValueError);
  CHECK_THROWS_AS(K::depthwise_conv2d(x4, drawn({3, 3, 2, 1}), 1, "valid", middle), ValueError);
  CHECK_THROWS_AS(K::pool2d(x4, {2, 2}, 1, "valid", middle), ValueError);
  CHECK_THROWS_AS(K::pool2d(x4, {2, 2}, 1, "twice"), ValueError);
  CHECK_THROWS_AS(K::pool2d(x4, {2, 2}, 1, "valid", None, "median"), ValueError);
  CHECK_THROWS_AS(K::pool3d(x5, {2, 2, 2}, 1, "valid", middle), ValueError);
  CHECK_THROWS_AS(K::pool3d(x5, {2, 2, 2}, 1, "twice"), ValueError);
  CHECK_THROWS_AS(K::pool3d(x5, {2, 2, 2}, 1, "valid", None, "median"), ValueError);
}

TEST_CASE("Keras' test_bias_add", "[conv][keras]") {
  for (const std::string& format : {kFirst, kLast}) {
    for (const Sizes& space : {Sizes{}, Sizes{3}, Sizes{2, 3}, Sizes{5, 3, 2}}) {
      Sizes shape{1};
      if (format == kFirst) shape.push_back(4);
      shape.insert(shape.end(), space.begin(), space.end());
      if (format == kLast) shape.push_back(4);
      Tensor x = drawn(shape), bias = drawn({4});
      List expected = list(x);
      const List b = list(bias);
      const std::size_t points = expected.size() / 4;
      for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += b[format == kFirst ? i / points : i % 4];
      check(K::bias_add(x, bias, format), expected);
    }
    // A bias for each place, stored as (10, 6): read row by row as the (6, 10) of channels_first.
    Tensor x = drawn(format == kFirst ? Sizes{20, 6, 10} : Sizes{20, 10, 6}), bias = drawn({10, 6});
    List expected = list(x);
    const List b = list(bias);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += b[i % 60];
    check(K::bias_add(x, bias, format), expected);
  }
  CHECK_THROWS_AS(K::bias_add(drawn({2, 3}), drawn({3}), "channels_middle"), ValueError);
}

TEST_CASE("Keras' test_resize_images and test_resize_volumes", "[conv][keras]") {
  for (const std::string& format : {kFirst, kLast}) {
    auto enlarged = [&](const Sizes& shape, std::int64_t factor, bool bilinear) {
      RefWindows g = windows(shape, Sizes(shape.size(), 1), "same", format, format == kFirst ? shape[1] : shape.back());
      for (int d = 3 - g.axes; d < 3; ++d) g.axis[d].stride = factor, g.axis[d].out = g.axis[d].n * factor;
      Tensor x = drawn(shape);
      const int f = static_cast<int>(factor);
      Tensor y = g.axes == 3 ? K::resize_volumes(x, f, f, f, format)
                             : K::resize_images(x, f, f, format, bilinear ? "bilinear" : "nearest");
      check(y, ref_resize(g, bilinear, list(x), List(outputs(g, g.c_out))).y);
    };
    enlarged(format == kFirst ? Sizes{99, 3, 5, 5} : Sizes{99, 5, 5, 3}, 2, false);
    enlarged({2, 3, 4, 5}, 2, true);
    enlarged({2, 3, 4, 5}, 4, true);
    enlarged(format == kFirst ? Sizes{5, 3, 5, 5, 5} : Sizes{5, 5, 5, 5, 3}, 2, false);
  }
  CHECK_THROWS_AS(K::resize_images(drawn({3, 5, 5, 3}), 2, 2, "channels_middle"), ValueError);
  CHECK_THROWS_AS(K::resize_volumes(drawn({3, 5, 5, 5, 3}), 2, 2, 2, "channels_middle"), ValueError);
}

TEST_CASE("Keras' test_temporal_padding, test_spatial_2d_padding and test_spatial_3d_padding", "[conv][keras]") {
  /// Zeros before and after each axis, by the definition.
  auto padded = [](const Tensor& x, const std::vector<Sizes>& amounts) {
    const Shape from = x.shape();
    Sizes to;
    std::size_t n = 1;
    for (int d = 0; d < from.rank(); ++d)
      to.push_back(from[d] + amounts[static_cast<std::size_t>(d)][0] + amounts[static_cast<std::size_t>(d)][1]),
          n *= static_cast<std::size_t>(to.back());
    List y(n);
    const List v = list(x);
    for (std::size_t i = 0; i < v.size(); ++i) {
      std::size_t rest = i, at = 0, scale = 1;
      for (int d = from.rank() - 1; d >= 0; --d) {
        const auto size = static_cast<std::size_t>(std::int64_t(from[d])), k = static_cast<std::size_t>(d);
        at += (rest % size + static_cast<std::size_t>(amounts[k][0])) * scale;
        scale *= static_cast<std::size_t>(to[k]);
        rest /= size;
      }
      y[at] = v[i];
    }
    return y;
  };
  const Sizes no{0, 0}, a{1, 2}, b{2, 1};
  Tensor x = drawn({4, 3, 3}), z = drawn({2, 3, 4});
  CHECK(list(K::temporal_padding(x)) == padded(x, {no, {1, 1}, no}));
  CHECK(list(K::temporal_padding(z, {1, 2})) == padded(z, {no, a, no}));
  Tensor x4 = drawn({2, 3, 4, 5}), x5 = drawn({2, 3, 4, 5, 2});
  CHECK(list(K::spatial_2d_padding(x4, {{1, 2}, {2, 1}}, kLast)) == padded(x4, {no, a, b, no}));
  CHECK(list(K::spatial_2d_padding(x4, {{1, 2}, {2, 1}}, kFirst)) == padded(x4, {no, no, a, b}));
  CHECK(list(K::spatial_3d_padding(x5, {{1, 2}, {2, 1}, {1, 2}}, kLast)) == padded(x5, {no, a, b, a, no}));
  CHECK(list(K::spatial_3d_padding(x5, {{1, 2}, {2, 1}, {1, 2}}, kFirst)) == padded(x5, {no, no, a, b, a}));
  CHECK(K::int_shape(K::spatial_2d_padding(K::placeholder({1, None, None, 1}), {{1, 2}, {2, 1}}, kLast)) ==
        Shape{1, -1, -1, 1});
  CHECK(K::int_shape(K::spatial_3d_padding(K::placeholder({1, None, None, None, 1}), {{1, 2}, {2, 1}, {1, 2}},
                                           kLast)) == Shape{1, -1, -1, -1, 1});
  CHECK_THROWS_AS(K::spatial_2d_padding(x4, {{1, 2}, {2, 1}}, "channels_middle"), ValueError);
  CHECK_THROWS_AS(K::spatial_3d_padding(x5, {{1, 2}, {2, 1}, {1, 2}}, "channels_middle"), ValueError);
}
