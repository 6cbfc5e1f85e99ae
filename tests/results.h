// tests/results.h - what tests compare with expected values: the numbers of a tensor, its text, the message of an
// error.
#pragma once
#include <kassette/backend.h>
#include <kassette/error.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/messages.h"

namespace kassette::test {

/// The elements in row-major order; a symbolic tensor is evaluated.
template <class T = double>
std::vector<T> values(const Tensor& t) {
  return backend::eval(t).to_vector<T>();
}
/// The one element.
inline double number(const Tensor& t) { return backend::eval(t).item<double>(); }

/// Where the elements are, to be compared: those of a temporary may be gone.
template <class T>
const T* place(const Tensor& x) {
  return x.data<T>();
}

/// The text that operator<< writes.
template <class T>
std::string printed(const T& x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

/// The message of the E that f throws, or "no error". Other exceptions propagate.
template <class E = Error, class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "no error";
}

/// n pseudo-random numbers in [-0.5, 0.5), the same on every machine.
inline std::vector<double> numbers(std::size_t n, std::uint64_t seed) {
  std::vector<double> v;
  for (std::size_t i = 0; i < n; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    v.push_back(static_cast<double>(seed >> 11) * 0x1p-53 - 0.5);
  }
  return v;
}
/// A float64 constant, and a float64 variable.
inline Tensor f64(const std::vector<double>& v, const Dims& shape) { return backend::constant(v, "float64", shape); }
inline Tensor var64(const std::vector<double>& v, const Dims& shape) {
  return backend::variable(f64(v, shape), "float64");
}

/// Checks that each number differs from the expected one by at most `relative` times that, or by at most `absolute`.
inline void check_close(const std::vector<double>& got, const std::vector<double>& expected, double relative,
                        double absolute) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double off = std::abs(got[i] - expected[i]),
                 bound = std::isinf(expected[i]) ? 0 : std::max(absolute, relative * std::abs(expected[i]));
    if (got[i] == expected[i] || off <= bound) continue;
    FAIL_CHECK("element " << i << ": " << got[i] << ", expected " << expected[i]);
  }
}
inline void check_close(const std::vector<double>& got, const std::vector<double>& expected, double tolerance) {
  check_close(got, expected, tolerance, tolerance);
}

/// The gradient at x of a scalar function f of several numbers, by central differences.
template <class F>
std::vector<double> differences(F&& f, std::vector<double> x) {
  constexpr double h = 1e-5;
  std::vector<double> gradient;
  for (double& v : x) {
    const double here = v;
    v = here + h;
    const double high = f(x);
    v = here - h;
    gradient.push_back((high - f(x)) / (2 * h));
    v = here;
  }
  return gradient;
}

}  // namespace kassette::test
