// tests/devices/numpy_cuda_test.cpp - np functions of a tensor on a CUDA device and of lists of numbers, which have no
// device of their own.
#include <kassette/backend.h>
#include <kassette/error.h>
#include <kassette/numpy.h>
#include <kassette/numpy/linalg.h>
#include <kassette/runtime.h>
#include <kassette/transforms.h>

#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/devices/devices.h"

using namespace kassette;
using namespace kassette::test;
namespace K = kassette::backend;
namespace np = kassette::numpy;

TEST_CASE("lists of numbers come to the device of the tensor beside them", "[device][numpy]") {
  if (!has_device("cuda:0")) return;
  const Device cuda("cuda:0");
  const Tensor x = K::constant({{2, 0}, {0, 4}}).to(cuda);
  for (const auto& [y, expected] : std::vector<std::pair<Tensor, std::vector<double>>>{
           {np::matmul(x, {1, 2}), {2, 8}},
           {np::matmul({1, 2}, x), {2, 8}},
           {np::linalg::solve(x, {2, 8}), {1, 2}},
           {np::linalg::solve({{1, 0}, {0, 2}}, x), {2, 0, 0, 2}},
           {np::histogram(x, {0, 1, 3, 5}).counts, {2, 1, 1}},
           {np::cov(x, {.fweights = std::vector<int>{1, 1}}), {2, -4, -4, 8}},
           {np::trapezoid(x, {.x = {0, 2}}), {2, 4}}}) {
    CHECK(y.device() == cuda);
    CHECK(std::vector<double>(y.to_vector<double>()) == expected);
  }
  const Tensor there = K::constant({1, 2});
  CHECK_THROWS_AS(np::matmul(x, there), DeviceError);
  CHECK_THROWS_AS(np::linalg::solve(x, there), DeviceError);
  CHECK_THROWS_AS(np::histogram(x, there), DeviceError);
}

TEST_CASE("host_call brings values to the host, and its results and gradients back", "[device][transforms]") {
  if (!has_device("cuda:0")) return;
  const Device cuda("cuda:0");
  const auto doubled = host_call(
      [](const Tensor& x) {
        CHECK(x.device() == cpu);
        return x * 2;
      },
      [](const Shape& s) { return s; },
      [](const Tensor& /*x*/, const Tensor& /*y*/, const Tensor& dy) { return dy * 2; });
  const Tensor x = K::constant({1, 2}).to(cuda), y = doubled(x);
  CHECK(y.device() == cuda);
  CHECK(std::vector<double>(y.to_vector<double>()) == std::vector<double>{2, 4});
  const Tensor g = grad([&](const Tensor& t) { return K::sum(doubled(t)); })(x);
  CHECK(g.device() == cuda);
  CHECK(std::vector<double>(g.to_vector<double>()) == std::vector<double>{2, 2});
}

// The sweeps allow these rows what their gradients need, which add up thousands of cotangents in another order.
TEST_CASE("running extremes and taken elements have the CPU's bits, over many blocks", "[device][numpy]") {
  if (!has_device("cuda:0")) return;
  const Device cuda("cuda:0");
  const Tensor x = K::eval(K::random_normal({97, 61})), i = K::constant({60, -1, 0, 3, -61}, "int32");
  const Tensor there = x.to(cuda);
  for (const auto& [a, b] :
       std::vector<std::pair<Tensor, Tensor>>{{np::cummax(x).values, np::cummax(there).values},
                                              {np::cummax(x).indices, np::cummax(there).indices},
                                              {np::cummin(x, 0).values, np::cummin(there, 0).values},
                                              {np::take(x, i), np::take(there, i.to(cuda))},
                                              {np::take(x, i, 1), np::take(there, i.to(cuda), 1)}})
    CHECK(np::all(np::equal(a, b.to("cpu"))).item<bool>());
}
