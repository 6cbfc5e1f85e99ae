// tests/ops/elementwise/signed_zeros_test.cpp - signs of zeros and the other special cases of division, at every CPU
// level, in every float dtype: those of C's library where C has the function, else NumPy's.
#include <cmath>
#include <limits>

#include "ops/elementwise/cast.h"
#include "ops/engine/expr.h"
#include "ops/engine/operand.h"
#include "tests/ops/levels.h"
#include "tests/results.h"

using namespace kassette;
using namespace kassette::ops;
using namespace kassette::test;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

/// Calls f with each float dtype, at every level.
template <class F>
void in_every_dtype(F f) {
  at_every_level([&](devices::Level) {
    for (DType dtype : {float32, float64, float16, bfloat16}) {
      INFO(dtype);
      f(dtype);
    }
  });
}
/// v 19 times: vectors and the elements after them.
Tensor many(double v, DType dtype) { return backend::constant(std::vector<double>(19, v), dtype); }
void check_all(const Tensor& y, double expected, const char* name) {
  for (double v : y.to_vector<double>())
    if (!same(v, expected)) {
      FAIL_CHECK(name << " is " << (std::signbit(v) ? "-" : "+") << std::fabs(v) << ", not "
                      << (std::signbit(expected) ? "-" : "+") << std::fabs(expected));
      return;
    }
}

// numpy.floor_divide(a, b) and numpy.remainder(a, b), NumPy 2.4. The numbers are exact in every float dtype.
const double kDividends[] = {0., -0., .5, -.5, 7.5, -7.5, kInf, -kInf, kNan};
const double kDivisors[] = {1, -1, 2, -2, kInf, -kInf, 0., -0.};
const double kQuotients[][8] = {{0., -0., 0., -0., 0., -0., kNan, kNan},
                                {-0., 0., -0., 0., -0., 0., kNan, kNan},
                                {0., -1, 0., -1, 0., -1, kInf, -kInf},
                                {-1, 0., -1, 0., -1, 0., -kInf, kInf},
                                {7, -8, 3, -4, 0., -1, kInf, -kInf},
                                {-8, 7, -4, 3, -1, 0., -kInf, kInf},
                                {kNan, kNan, kNan, kNan, kNan, kNan, kInf, -kInf},
                                {kNan, kNan, kNan, kNan, kNan, kNan, -kInf, kInf},
                                {kNan, kNan, kNan, kNan, kNan, kNan, kNan, kNan}};
const double kRemainders[][8] = {
    {0., -0., 0., -0., 0., -0., kNan, kNan},          {0., -0., 0., -0., 0., -0., kNan, kNan},
    {.5, -.5, .5, -1.5, .5, -kInf, kNan, kNan},       {.5, -.5, 1.5, -.5, kInf, -.5, kNan, kNan},
    {.5, -.5, 1.5, -.5, 7.5, -kInf, kNan, kNan},      {.5, -.5, .5, -1.5, kInf, -7.5, kNan, kNan},
    {kNan, kNan, kNan, kNan, kNan, kNan, kNan, kNan}, {kNan, kNan, kNan, kNan, kNan, kNan, kNan, kNan},
    {kNan, kNan, kNan, kNan, kNan, kNan, kNan, kNan}};

}  // namespace

TEST_CASE("floor_divide and remainder are NumPy's, signs of zeros, infinities and NaN included",
          "[elementwise][zeros]") {
  in_every_dtype([](DType dtype) {
    for (std::size_t i = 0; i < std::size(kDividends); ++i)
      for (std::size_t k = 0; k < std::size(kDivisors); ++k) {
        INFO(kDividends[i] << (std::signbit(kDividends[i]) ? " (-)" : "") << " by " << kDivisors[k]
                           << (std::signbit(kDivisors[k]) ? " (-)" : ""));
        Tensor a = many(kDividends[i], dtype), b = many(kDivisors[k], dtype);
        check_all(floor_divide(a, b), kQuotients[i][k], "floor_divide");
        check_all(a % b, kRemainders[i][k], "remainder");
      }
  });
}

TEST_CASE("functions of zeros have C's signs", "[elementwise][zeros]") {
  struct Case {
    const char* name;
    Tensor (*f)(const Tensor& x);
    double (*c)(double);
  };
  const Case cases[] = {
      {"sqrt", ops::sqrt, std::sqrt},
      {"sin", ops::sin, std::sin},
      {"cos", ops::cos, std::cos},
      {"tanh", ops::tanh, std::tanh},
      {"exp", ops::exp, std::exp},
      {"expm1", ops::expm1, std::expm1},
      {"log", ops::log, std::log},
      {"log1p", ops::log1p, std::log1p},
      {"abs", ops::abs, std::fabs},
      {"round", ops::round, std::nearbyint},
      {"negative", [](const Tensor& x) { return -x; }, [](double v) { return -v; }},
      {"square", ops::square, [](double v) { return v * v; }},
      {"softsign", [](const Tensor& x) { return backend::softsign(x); },
       [](double v) { return v / (1 + std::fabs(v)); }},
      {"elu", [](const Tensor& x) { return ops::elu(x, .5); }, [](double v) { return v > 0 ? v : .5 * std::expm1(v); }},
      {"leaky_relu", [](const Tensor& x) { return leaky_relu(x, .5); }, [](double v) { return v > 0 ? v : .5 * v; }},
      {"times 2", [](const Tensor& x) { return x * 2.0; }, [](double v) { return v * 2; }},
      {"plus 0", [](const Tensor& x) { return x + 0.0; }, [](double v) { return v + 0.; }},
      {"minus 0", [](const Tensor& x) { return x - 0.0; }, [](double v) { return v - 0.; }},
      {"divided by -2", [](const Tensor& x) { return x / -2.0; }, [](double v) { return v / -2; }},
      {"1 over x", [](const Tensor& x) { return 1.0 / x; }, [](double v) { return 1 / v; }},
      {"to the power 3", [](const Tensor& x) { return pow(x, 3.0); }, [](double v) { return std::pow(v, 3); }},
      {"to the power -3", [](const Tensor& x) { return pow(x, -3.0); }, [](double v) { return std::pow(v, -3); }}};
  in_every_dtype([&](DType dtype) {
    for (const Case& c : cases)
      for (double zero : {0., -0.}) check_all(c.f(many(zero, dtype)), c.c(zero), c.name);
    for (double v : {.25, -.25, .5, -.5}) check_all(ops::round(many(v, dtype)), std::nearbyint(v), "round");
    for (double zero : {0., -0.}) check_all(ops::sign(many(zero, dtype)), 0., "sign");  // NumPy's: C has no sign
    for (DType to : {float32, float64, float16, bfloat16}) check_all(cast(many(-0., dtype), to), -0., "cast");
  });
}

TEST_CASE("the slope of sqrt is infinite at both zeros", "[elementwise][zeros]") {
  for (double zero : {0., -0.}) {
    Tensor x = backend::variable(zero, "float64");
    CHECK(number(backend::gradients(backend::sqrt(x), {x})[0]) == kInf);
  }
}
