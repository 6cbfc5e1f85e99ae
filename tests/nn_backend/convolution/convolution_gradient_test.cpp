// tests/nn_backend/convolution/convolution_gradient_test.cpp - gradients of the convolution family with respect to all
// inputs against central differences in float64: of first and second order, and of third order if values are products
// of more than two tensors.
#include <kassette/testing.h>

#include <set>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/results.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

/// Numbers that are at least 0.01 apart, so that no step of the differences changes which of them is the largest.
Tensor apart(const std::vector<std::int64_t>& shape) {
  std::int64_t n = 1;
  for (std::int64_t d : shape) n *= d;
  std::vector<double> v;
  for (std::int64_t i = 0; i < n; ++i)
    v.push_back(0.02 * static_cast<double>((i * 37 + 11) % n) - 0.01 * static_cast<double>(n) + 0.003);
  return var64(v, shape);
}
Tensor drawn(const std::vector<std::int64_t>& shape, std::uint64_t seed) {
  std::size_t n = 1;
  for (std::int64_t d : shape) n *= static_cast<std::size_t>(d);
  return var64(numbers(n, seed), shape);
}

struct Differentiated {
  const char* name;
  std::vector<std::vector<std::int64_t>> shapes;
  Tensor (*f)(const Tensors& in);
  bool ordered = false;  // compares elements: they are far from one another
};

#define CASE(text, shapes, expression) \
  { \
    text, shapes, [](const Tensors& in) -> Tensor { \
      const Tensor &x = in[0], &w = in[in.size() > 1 ? 1 : 0]; \
      (void)w; \
      return expression; \
    } \
  }
#define ORDERED(text, shapes, expression) \
  { \
    text, shapes, \
        [](const Tensors& in) -> Tensor { \
          const Tensor& x = in[0]; \
          return expression; \
        }, \
        true \
  }
#define SHAPES(...) \
  { __VA_ARGS__ }

const Differentiated kCases[] = {
    CASE("conv1d valid strided", SHAPES({2, 7, 2}, {3, 2, 2}), K::conv1d(x, w, 2)),
    CASE("conv1d causal dilated", SHAPES({1, 5, 2}, {2, 2, 3}), K::conv1d(x, w, 1, "causal", None, 2)),
    CASE("conv1d causal strided", SHAPES({1, 6, 1}, {3, 1, 2}), K::conv1d(x, w, 2, "causal")),
    CASE("conv1d same first", SHAPES({2, 2, 5}, {4, 2, 2}), K::conv1d(x, w, 1, "same", "channels_first")),
    CASE("conv2d valid", SHAPES({2, 4, 3, 2}, {2, 2, 2, 2}), K::conv2d(x, w)),
    CASE("conv2d same strided", SHAPES({1, 5, 4, 2}, {3, 2, 2, 2}), K::conv2d(x, w, {2, 3}, "same")),
    CASE("conv2d stride above the kernel", SHAPES({1, 5, 5, 1}, {2, 1, 1, 2}), K::conv2d(x, w, 3)),
    CASE("conv2d same dilated first", SHAPES({1, 2, 4, 5}, {3, 2, 2, 2}),
         K::conv2d(x, w, 1, "same", "channels_first", {2, 3})),
    CASE("conv2d kernel above the input", SHAPES({1, 2, 2, 1}, {5, 4, 1, 2}), K::conv2d(x, w, 1, "same")),
    CASE("conv2d pointwise first", SHAPES({2, 3, 1, 1}, {1, 1, 3, 2}), K::conv2d(x, w, 1, "valid", "channels_first")),
    CASE("conv3d same", SHAPES({1, 2, 3, 2, 2}, {2, 2, 2, 2, 1}), K::conv3d(x, w, {1, 2, 1}, "same")),
    CASE("conv3d dilated first", SHAPES({1, 1, 3, 2, 3}, {2, 1, 2, 1, 2}),
         K::conv3d(x, w, 1, "valid", "channels_first", {2, 1, 2})),
    CASE("conv2d_transpose valid strided", SHAPES({1, 2, 2, 2}, {3, 2, 2, 2}),
         K::conv2d_transpose(x, w, {1, 6, 4, 2}, 2)),
    CASE("conv2d_transpose same first", SHAPES({2, 2, 2, 3}, {3, 3, 1, 2}),
         K::conv2d_transpose(x, w, {None, 1, 4, 5}, 2, "same", "channels_first")),
    CASE("conv2d_transpose dilated", SHAPES({1, 3, 3, 1}, {2, 2, 2, 1}),
         K::conv2d_transpose(x, w, {1, 3, 3, 2}, 1, "same", None, 2)),
    CASE("conv3d_transpose", SHAPES({1, 1, 2, 2, 2}, {2, 2, 1, 1, 2}),
         K::conv3d_transpose(x, w, {1, 2, 4, 4, 1}, 2, "same")),
    CASE("conv3d_transpose first", SHAPES({1, 1, 2, 1, 2}, {2, 1, 2, 2, 1}),
         K::conv3d_transpose(x, w, {1, 2, 3, 1, 3}, 1, "valid", "channels_first")),
    CASE("depthwise_conv2d", SHAPES({1, 3, 4, 2}, {2, 3, 2, 2}), K::depthwise_conv2d(x, w, {1, 2}, "same")),
    CASE("depthwise_conv2d dilated first", SHAPES({1, 3, 4, 4}, {2, 2, 3, 1}),
         K::depthwise_conv2d(x, w, 1, "valid", "channels_first", 2)),
    CASE("separable_conv1d", SHAPES({1, 5, 2}, {3, 2, 2}, {1, 4, 2}), K::separable_conv1d(x, w, in[2], 2, "same")),
    CASE("separable_conv2d", SHAPES({1, 3, 3, 2}, {2, 2, 2, 1}, {1, 1, 2, 2}),
         K::separable_conv2d(x, w, in[2], 1, "same")),
    CASE("separable_conv2d first", SHAPES({1, 2, 3, 3}, {2, 2, 2, 2}, {1, 1, 4, 1}),
         K::separable_conv2d(x, w, in[2], 2, "valid", "channels_first")),
    CASE("local_conv1d", SHAPES({2, 5, 2}, {2, 6, 2}), K::local_conv1d(x, w, 3, 2)),
    CASE("local_conv1d first", SHAPES({1, 2, 4}, {3, 4, 2}), K::local_conv1d(x, w, 2, 1, "channels_first")),
    CASE("local_conv2d", SHAPES({1, 3, 4, 2}, {4, 8, 2}), K::local_conv2d(x, w, 2, {1, 2}, {2, 2})),
    CASE("local_conv2d first", SHAPES({1, 2, 3, 3}, {4, 8, 1}), K::local_conv2d(x, w, 2, 1, {2, 2}, "channels_first")),
    ORDERED("pool2d max", SHAPES({2, 4, 5, 2}), K::pool2d(x, {2, 3}, {1, 2}, "same")),
    ORDERED("pool2d max first", SHAPES({1, 2, 5, 4}), K::pool2d(x, 3, 2, "valid", "channels_first")),
    ORDERED("pool3d max", SHAPES({1, 3, 3, 2, 2}), K::pool3d(x, 2, {1, 2, 1}, "same")),
    CASE("pool2d avg", SHAPES({1, 4, 5, 2}), K::pool2d(x, 3, 2, "same", None, "avg")),
    CASE("pool3d avg first", SHAPES({1, 2, 3, 3, 2}), K::pool3d(x, 2, 1, "same", "channels_first", "avg")),
    CASE("resize_images nearest", SHAPES({1, 2, 3, 2}), K::resize_images(x, 3, 2, "channels_last")),
    CASE("resize_images bilinear", SHAPES({1, 3, 2, 2}), K::resize_images(x, 3, 2, "channels_last", "bilinear")),
    CASE("resize_images bilinear first", SHAPES({1, 2, 1, 3}), K::resize_images(x, 2, 4, "channels_first", "bilinear")),
    CASE("resize_volumes", SHAPES({1, 2, 1, 2, 2}), K::resize_volumes(x, 2, 3, 2, "channels_last")),
    CASE("temporal_padding", SHAPES({1, 3, 2}), K::temporal_padding(x, {2, 1})),
    CASE("spatial_2d_padding", SHAPES({1, 2, 3, 2}), K::spatial_2d_padding(x, {{1, 0}, {2, 1}})),
    CASE("spatial_3d_padding", SHAPES({1, 2, 1, 2, 2}),
         K::spatial_3d_padding(x, {{1, 0}, {0, 2}, {1, 1}}, "channels_first")),
    CASE("bias_add", SHAPES({2, 2, 3, 2}, {2}), K::bias_add(x, w)),
    CASE("bias_add first", SHAPES({2, 2, 3}, {2}), K::bias_add(x, w, "channels_first")),
    CASE("bias_add of places", SHAPES({2, 2, 3, 2}, {2, 3, 2}), K::bias_add(x, w)),
    CASE("bias_add of places first", SHAPES({2, 2, 3}, {3, 2}), K::bias_add(x, w, "channels_first")),
};

Tensors inputs(const Differentiated& c) {
  Tensors in;
  for (std::size_t i = 0; i < c.shapes.size(); ++i)
    in.push_back(c.ordered ? apart(c.shapes[i]) : drawn(c.shapes[i], 100 * i + 7));
  return in;
}
std::string name_of(const Differentiated& c) { return std::string(c.name).substr(0, std::string(c.name).find(' ')); }

}  // namespace

TEST_CASE("first and second gradients of the convolution family are central differences", "[conv][gradient]") {
  std::set<std::string> names;
  for (const Differentiated& c : kCases) {
    names.insert(name_of(c));
    const Tensors in = inputs(c);
    if (std::string w = testing::gradcheck([&](const Tensors& x) { return Tensors{c.f(x)}; }, in).message; !w.empty())
      FAIL_CHECK(c.name << ": " << w);
    // The functions are linear in each argument, or piecewise so: their squares have second gradients that are not 0.
    auto squared = [&](const Tensors& x) { return Tensors{K::square(c.f(x))}; };
    if (std::string w = testing::gradcheck(squared, in).message; !w.empty()) FAIL_CHECK(c.name << " squared: " << w);
    if (std::string w = testing::gradgradcheck(squared, in).message; !w.empty())
      FAIL_CHECK(c.name << ", second order: " << w);
  }
  CHECK(names.size() == 18);  // every function of the family
}

TEST_CASE("third gradients of convolution, pooling and bilinear enlargement are central differences",
          "[conv][gradient]") {
  for (const Differentiated& c : kCases) {
    const std::string name = c.name;
    if (name != "conv2d same strided" && name != "conv2d_transpose same first" && name != "depthwise_conv2d" &&
        name != "pool2d max" && name != "pool2d avg" && name != "resize_images bilinear first")
      continue;
    // The third derivative of a linear function is 0, that of its cube is not.
    auto slopes = [&](const Tensors& x) {
      Tensor y = c.f(x);
      Tensors wanted;
      for (const Tensor& g : K::gradients(K::sum(y * y * y), x)) wanted.push_back(g);
      return wanted;
    };
    if (std::string w = testing::gradgradcheck(slopes, inputs(c), {.rtol = 1e-5, .atol = 1e-5}).message; !w.empty())
      FAIL_CHECK(name << ": " << w);
  }
}
