// tests/ranks/ranks.h - what the tests of several ranks share: values of every rank, which each rank can compute.
#pragma once
#include <kassette/backend.h>
#include <kassette/distributed.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/catch.h"
#include "tests/ranks/device.h"

namespace kassette::test {

namespace K = kassette::backend;
namespace D = kassette::distributed;

/// Element i of rank r's tensor: small numbers that differ between ranks and are exact in every dtype.
inline double value_of(int r, std::int64_t i) { return static_cast<double>((i * 7 + r * 5 + r * i) % 13) - 6.0; }

inline std::int64_t count(const std::vector<std::int64_t>& dims) {
  std::int64_t n = 1;
  for (std::int64_t d : dims) n *= d;
  return n;
}

/// The tensor of these values on rank r.
inline Tensor tensor_of(int r, const std::vector<std::int64_t>& dims, DType dtype) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count(dims); ++i) {
    const double v = value_of(r, i);
    values.push_back(dtype == bool_ ? v > 0 : dtype.is_unsigned() ? std::abs(v) : v);
  }
  return K::cast(K::reshape(K::constant(values, float64), Shape(dims.data(), static_cast<int>(dims.size()))), dtype);
}

/// Values in (0.3, 1.7) that differ in every element and rank.
inline Tensor smooth(int r, const std::vector<std::int64_t>& dims) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count(dims); ++i)
    values.push_back(1 + 0.7 * std::sin(1.0 + 2.3 * static_cast<double>(i) + 1.7 * r));
  return K::reshape(K::constant(values, float64), Shape(dims.data(), static_cast<int>(dims.size())));
}

inline Tensor variable(const Tensor& x) { return K::variable(x, float64); }

inline std::vector<double> numbers(const Tensor& x) { return K::cast(x, float64).to_vector<double>(); }

/// The message of the exception that f throws; "" if it throws none.
template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace kassette::test
