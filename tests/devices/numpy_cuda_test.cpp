// tests/devices/numpy_cuda_test.cpp - np functions of a tensor on a CUDA device and of lists of numbers, which have no
// device of their own.
#include <kassette/backend.h>
#include <kassette/error.h>
#include <kassette/numpy.h>
#include <kassette/numpy/linalg.h>
#include <kassette/runtime.h>

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
