// tests/numpy/shaping_test.cpp - np's functions on shapes where cases by NumPy do not lead: long axes without elements,
// storage that is shared.
#include <kassette/backend.h>
#include <kassette/error.h>
#include <kassette/nn.h>
#include <kassette/numpy.h>

#include <vector>

#include "tests/catch.h"
#include "tests/results.h"
#include "tests/settings.h"

using namespace kassette;
using namespace kassette::test;
namespace nn = kassette::nn;
namespace np = kassette::numpy;

TEST_CASE("delete_ and insert take no time on long axes without elements, and keep the order on others", "[numpy]") {
  const std::int64_t many = std::int64_t{1} << 40;
  CHECK(np::delete_(np::zeros({0, many}), 1, 1).shape() == Shape{0, many - 1});
  CHECK(np::insert(np::zeros({0, many}), {1, 2}, np::zeros({0, 2}), 1).shape() == Shape{0, many + 2});
  CHECK(np::insert(np::zeros({0, 3}), 1, np::zeros({0, many}), 1).shape() == Shape{0, many + 3});
  // By lists of places and by slices: more gaps than slices are made for.
  const Tensor x = np::arange(60);
  std::vector<std::int64_t> even, odd;
  for (std::int64_t i = 0; i < 60; i += 2) {
    even.push_back(i);
    odd.push_back(i + 1);
  }
  CHECK(values<std::int64_t>(np::delete_(x, even)) == odd);
  CHECK(values<std::int64_t>(np::insert(np::array(odd), std::vector<std::int64_t>{0, 1, 1}, {7, 8, 9}))[3] == 9);
  CHECK(values<std::int64_t>(np::delete_(x(slice(0, 6)), {4, 0, -2, 1})) == std::vector<std::int64_t>{2, 3, 5});
  CHECK(np::delete_(x, even).dtype() == int64);
}

TEST_CASE("broadcast_to the shape that a tensor has returns its storage", "[numpy]") {
  const Tensor x = np::array({{1, 2, 3}, {4, 5, 6}}, float32);
  CHECK(place<float>(np::broadcast_to(x, {2, 3})) == place<float>(x));
  CHECK(place<float>(np::broadcast_to(x, {1, 2, 3})) != place<float>(x));
}

TEST_CASE("windows along axes that are too long are a MemoryError", "[nn]") {
  const std::int64_t many = std::int64_t{1} << 40;
  const MemoryLimit limit(64 << 20);
  CHECK_THROWS_AS(nn::adaptive_average_pool(np::zeros({5, many, 0}), 3), MemoryError);
  CHECK_THROWS_AS(nn::unfold(np::zeros({0, 1, many, 1}), {2, 1}), MemoryError);
}

TEST_CASE("values for places of a long axis without elements have a gradient", "[numpy]") {
  const std::int64_t many = std::int64_t{1} << 40;
  const Tensor x = backend::variable(np::zeros({many, 0})), v = backend::variable(np::zeros({2, 0}));
  const Tensor y = np::scatter_update(x, {{1}, {1}}, v);
  CHECK(backend::gradients(backend::sum(y), {v})[0].shape() == Shape{2, 0});
}
