// tests/numpy/solver_cases.h - the numbers of tests/data/solver_cases.txt, which SciPy found.
#pragma once
#include <kassette/numpy.h>

#include <sstream>

#include "tests/results.h"
#include "tests/sources.h"

namespace kassette::test {

/// The numbers of a line of solver_cases.txt, as float64.
inline std::vector<double> solver_case(const std::string& name) {
  std::istringstream lines(text_of(kSourceTree / "tests/data/solver_cases.txt"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first != name) continue;
    std::vector<double> all;
    for (double x; words >> x;) all.push_back(x);
    return all;
  }
  FAIL("solver_cases.txt has no " << name);
  return {};
}
/// The largest difference between the elements of a tensor and such numbers.
inline double distance(const Tensor& got, const std::vector<double>& expected) {
  const std::vector<double> numbers_got = values(got);
  REQUIRE(numbers_got.size() == expected.size());
  double largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::fabs(numbers_got[i] - expected[i]);
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

}  // namespace kassette::test
