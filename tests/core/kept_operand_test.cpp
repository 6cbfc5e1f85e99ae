// tests/core/kept_operand_test.cpp - options that are named outlive what they were made of.
#include <kassette/kept_operand.h>

#include <array>
#include <utility>
#include <vector>

#include <kassette/numpy.h>

#include "tests/catch.h"

namespace np = kassette::numpy;
using namespace kassette;

namespace {

/// Writes over the stack below the caller, where temporaries of an earlier statement were.
__attribute__((noinline)) double scribble() {
  volatile double here[512];
  for (int i = 0; i < 512; ++i) here[i] = 7 + i;
  return here[100];
}

/// Not known to the compiler, which may put a list of constants where it stays.
__attribute__((noinline)) int one() {
  static volatile int value = 1;
  return value;
}

double average(const np::AverageOptions& options) { return np::average({1, 2, 6}, options).item<double>(); }

}  // namespace

TEST_CASE("options keep a list, a tensor and a container that are gone when they are used", "[options]") {
  np::AverageOptions list{.weights = {0, one(), one()}};
  scribble();
  CHECK(average(list) == 4);

  np::AverageOptions tensor{.weights = np::arange(3.0)};
  scribble();
  CHECK(average(tensor) == Approx(14. / 3));

  np::AverageOptions vector{.weights = std::vector<double>{1, 0, 1}}, array{.weights = std::array<int, 3>{1, 0, 1}};
  scribble();
  CHECK(average(vector) == 3.5);
  CHECK(average(array) == 3.5);

  np::AverageOptions assigned;
  assigned.weights = {one(), 0, 0};
  scribble();
  CHECK(average(assigned) == 1);
  assigned.weights = None;
  CHECK(average(assigned) == 3);
}

TEST_CASE("options keep nested lists, of numbers, tensors and containers", "[options]") {
  np::CorrelationOptions rows{.y = {{one()}, {3 * one()}}, .rowvar = false};
  scribble();
  CHECK(np::corrcoef({{4}, {0}}, rows)(0, 1).item<double>() == Approx(-1));

  np::CovarianceOptions mixed{.y = {{np::ones({}) * 2, 0}, std::vector<float>{1, 5}}};
  scribble();
  CHECK((std::vector<double>)np::cov({1, 3}, mixed).to_vector<double>() ==
        std::vector<double>{2, -2, 4, -2, 2, -4, 4, -4, 8});
}

TEST_CASE("copies of options share what was kept, and each lives as long as it likes", "[options]") {
  auto made = [] {
    np::AverageOptions first{.weights = {0, 0, one()}};
    np::AverageOptions copy = first;
    first.weights = {one(), 0, 0};
    np::AverageOptions moved = std::move(copy);
    copy = moved;
    return std::pair(first, copy);
  };
  const auto [first, copy] = made();
  scribble();
  CHECK(average(first) == 1);
  CHECK(average(copy) == 6);
}
