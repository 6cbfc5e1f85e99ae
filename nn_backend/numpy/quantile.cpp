// nn_backend/numpy/quantile.cpp - where quantiles are among ascending elements, by all of NumPy's methods.
#include "nn_backend/numpy/quantile.h"

#include <iterator>
#include <string>

#include "core/text.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/shape/shaping.h"

namespace kassette::numpy {
namespace {

using namespace ops;

constexpr const char* kMethods[] = {"inverted_cdf",
                                    "averaged_inverted_cdf",
                                    "closest_observation",
                                    "interpolated_inverted_cdf",
                                    "hazen",
                                    "weibull",
                                    "linear",
                                    "median_unbiased",
                                    "normal_unbiased",
                                    "lower",
                                    "higher",
                                    "midpoint",
                                    "nearest"};

/// The place of a continuous method, counted from 0, with the constants of Hyndman and Fan.
Tensor continuous(const Tensor& q, const Tensor& n, double alpha, double beta) {
  return n * q + (q * (1 - alpha - beta) + alpha) - 1;
}
/// `at`, which is between two places, rounded down where the condition is true, else up.
Tensor rounded(const Tensor& at, const Tensor& down) { return where(down, floor(at), floor(at) + 1); }

Tensor place_of(const Tensor& q, const Tensor& n, QuantileMethod method) {
  switch (method) {
    case QuantileMethod::inverted_cdf: {
      const Tensor at = n * q - 1;
      return rounded(at, equal(at, floor(at)));
    }
    case QuantileMethod::closest_observation: {
      const Tensor at = n * q - 1.5;
      return rounded(at, logical_and(equal(at, floor(at)), equal(floor(at) % 2, 1)));
    }
    case QuantileMethod::averaged_inverted_cdf: return n * q - 1;
    case QuantileMethod::interpolated_inverted_cdf: return continuous(q, n, 0, 1);
    case QuantileMethod::hazen: return continuous(q, n, 0.5, 0.5);
    case QuantileMethod::weibull: return continuous(q, n, 0, 0);
    case QuantileMethod::median_unbiased: return continuous(q, n, 1 / 3.0, 1 / 3.0);
    case QuantileMethod::normal_unbiased: return continuous(q, n, 3 / 8.0, 3 / 8.0);
    case QuantileMethod::linear: return (n - 1) * q;
    case QuantileMethod::lower: return floor((n - 1) * q);
    case QuantileMethod::higher: return ceil((n - 1) * q);
    case QuantileMethod::midpoint: return 0.5 * (floor((n - 1) * q) + ceil((n - 1) * q));
    case QuantileMethod::nearest: return rint((n - 1) * q);
  }
  __builtin_unreachable();
}

}  // namespace

QuantileMethod quantile_method(const Name& text, const char* what) {
  const std::string name = Access::text(text);
  std::string all;
  for (std::size_t i = 0; i < std::size(kMethods); ++i) {
    if (name == kMethods[i]) return static_cast<QuantileMethod>(i);
    all += (i ? ", " : "") + std::string(kMethods[i]);
  }
  fail<ValueError>({what, "method"}, "is '", name, "'", kExpected, "there are ", all);
}

QuantilePlaces quantile_places(const Tensor& q, const Tensor& n, QuantileMethod method) {
  const Tensor at = place_of(q, n, method), below = floor(at), last = n - 1;
  QuantilePlaces places;
  places.below = cast(maximum(minimum(below, last), 0), int64);
  places.above = cast(maximum(minimum(below + 1, last), 0), int64);
  places.weight = at - below;
  if (method == QuantileMethod::averaged_inverted_cdf) places.weight = where(equal(places.weight, 0), 0.5, 1.0);
  return places;
}

Tensor between(const Tensor& a, const Tensor& b, const Tensor& weight) {
  const Tensor w = cast(weight, a.dtype()), apart = where(equal(a, b), zeros_of(a), b - a);
  // From the nearer end: the ends are exact, and infinite elements do not give NaN there.
  return where(less(w, 0.5), a + mul_no_nan(w, apart), b - mul_no_nan(1 - w, apart));
}

}  // namespace kassette::numpy
