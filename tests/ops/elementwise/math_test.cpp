// tests/ops/elementwise/math_test.cpp - the error of our own math in units in the last place, at every CPU level, and
// its edges.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "ops/engine/expr.h"
#include "tests/ops/levels.h"
#include "tests/ops/ulps.h"

using namespace kassette;
using namespace kassette::devices;
using namespace kassette::ops;
using test::at_every_level;
using test::tensor_of;
using test::ulps;
using test::Wide;

namespace {

using Function = Tensor (*)(const Tensor&);
template <class T>
std::vector<T> run(Function f, const std::vector<T>& x) {
  return f(tensor_of(x)).template to_vector<T>();
}
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::memcmp(&a[i], &b[i], sizeof(T))) {
      UNSCOPED_INFO("element " << i << ": " << a[i] << " against " << b[i]);
      return false;
    }
  }
  return a.size() == b.size();
}

/// Numbers of every magnitude and sign, and evenly over some ranges.
template <class T>
std::vector<T> samples() {
  std::vector<T> v;
  if constexpr (sizeof(T) == 4) {
    for (std::uint64_t bits = 0; bits < (std::uint64_t(1) << 32); bits += 20011) {
      std::uint32_t b = static_cast<std::uint32_t>(bits);
      T x;
      std::memcpy(&x, &b, sizeof x);
      v.push_back(x);
    }
  } else {
    std::mt19937_64 random(7);
    for (int i = 0; i < 60000; ++i) {
      std::uint64_t b = random();
      T x;
      std::memcpy(&x, &b, sizeof x);
      v.push_back(x);
    }
  }
  std::mt19937_64 random(11);
  for (double range : {1e-4, 0.5, 1.0, 3.0, 20.0, 110.0, 760.0, 8192.0, 1e6})
    for (int i = 0; i < 20000; ++i)
      v.push_back(static_cast<T>(range * (static_cast<double>(random() >> 11) * 0x1p-52 - 1)));
  for (int k = -40; k < 40; ++k)  // where sines and logarithms vanish
    for (double at : {k * 1.5707963267948966, 1 + k * 1e-4, std::ldexp(1.0, k)}) {
      T x = static_cast<T>(at);
      for (T y : {x, std::nextafter(x, T(100)), std::nextafter(x, T(-100))}) v.push_back(y);
    }
  return v;
}

template <class T>
struct Case {
  const char* name;
  Function ours;
  Wide<T> (*exact)(Wide<T>);
  double bound;
  double with_fma = bound;  // where the level multiplies and adds in one rounding
};
template <class T>
const Case<T> kCases[] = {
    {"exp", exp, [](Wide<T> x) { return std::exp(x); }, 1.0},
    {"expm1", expm1, [](Wide<T> x) { return std::expm1(x); }, 1.7},
    {"log", log, [](Wide<T> x) { return std::log(x); }, 1.0},
    {"log1p", log1p, [](Wide<T> x) { return std::log1p(x); }, 1.0},
    {"sin", sin, [](Wide<T> x) { return std::sin(x); }, 1.5},
    {"cos", cos, [](Wide<T> x) { return std::cos(x); }, 1.5},
    {"tanh", tanh, [](Wide<T> x) { return std::tanh(x); }, sizeof(T) == 4 ? 2.15 : 2.5, sizeof(T) == 4 ? 1.25 : 2.5},
    {"sigmoid", sigmoid, [](Wide<T> x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); },
     sizeof(T) == 4 ? 2.15 : 2.3},
    {"softplus", softplus, [](Wide<T> x) { return std::max(x, Wide<T>(0)) + std::log1p(std::exp(-std::abs(x))); }, 1.6},
    {"sqrt", sqrt, [](Wide<T> x) { return x < 0 ? 0 : std::sqrt(x); }, 0.5},
    {"floor", floor, [](Wide<T> x) { return std::floor(x); }, 0},
    {"ceil", ceil, [](Wide<T> x) { return std::ceil(x); }, 0},
    {"trunc", trunc, [](Wide<T> x) { return std::trunc(x); }, 0},
    {"rint", rint, [](Wide<T> x) { return std::rint(x); }, 0},
    {"tan", tan, [](Wide<T> x) { return std::tan(x); }, 1.7, 1.5},
    {"asin", asin, [](Wide<T> x) { return std::asin(x); }, 1.95},
    {"acos", acos, [](Wide<T> x) { return std::acos(x); }, 1.1},
    {"atan", atan, [](Wide<T> x) { return std::atan(x); }, 1.25},
    {"sinh", sinh, [](Wide<T> x) { return std::sinh(x); }, 1.55},
    {"cosh", cosh, [](Wide<T> x) { return std::cosh(x); }, 1.35},
    {"asinh", asinh, [](Wide<T> x) { return std::asinh(x); }, 1.15},
    {"acosh", acosh, [](Wide<T> x) { return std::acosh(x); }, 1.2},
    {"atanh", atanh, [](Wide<T> x) { return std::atanh(x); }, 1.3},
    {"exp2", exp2, [](Wide<T> x) { return std::exp2(x); }, 1.05},
    {"log2", log2, [](Wide<T> x) { return std::log2(x); }, 0.55, 0.51},
    {"log10", log10, [](Wide<T> x) { return std::log10(x); }, 1.6, 0.51},
    {"cbrt", cbrt, [](Wide<T> x) { return std::cbrt(x); }, 1.0, 0.55},
    {"erf", erf, [](Wide<T> x) { return std::erf(x); }, 1.2},
    {"erfc", erfc, [](Wide<T> x) { return std::erfc(x); }, 3.9},
};

template <class T>
void check_errors() {
  std::vector<T> x = samples<T>();
  for (const Case<T>& c : kCases<T>) {
    std::vector<Wide<T>> exact(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) exact[i] = c.exact(static_cast<Wide<T>>(x[i]));
    at_every_level([&](Level level) {
      std::vector<T> y = run(c.ours, x);
      double worst = 0;
      std::size_t at = 0;
      for (std::size_t i = 0; i < x.size(); ++i)
        if (double e = ulps<T>(y[i], exact[i]); e > worst) {
          worst = e;
          at = i;
        }
      INFO(c.name << "(" << std::hexfloat << x[at] << ") = " << y[at] << ", exactly "
                  << static_cast<double>(exact[at]));
      if (std::getenv("KASSETTE_TEST_PRINT"))
        std::printf("%-9s %s %-7s %.3f at %a\n", c.name, sizeof(T) == 4 ? "f32" : "f64", level_name(cpu_level()), worst,
                    static_cast<double>(x[at]));
      CHECK(worst <= (level == Level::sse2 ? c.bound : c.with_fma));
    });
  }
}

}  // namespace

TEST_CASE("float math is within its stated error at every CPU level", "[math]") { check_errors<float>(); }
TEST_CASE("double math is within its stated error at every CPU level", "[math]") { check_errors<double>(); }

TEST_CASE("tanh never decreases from one of its pieces to the next, and is at most 1", "[math]") {
  std::vector<float> joints{9.02f};
  for (float octave = 0x1p-4f; octave <= 8; octave *= 2)
    for (float joint : {octave, octave * 1.5f}) joints.push_back(joint);
  for (float joint : joints) {
    std::vector<float> x{joint};
    for (int i = 0; i < 1000; ++i) x.push_back(std::nextafter(x.back(), 0.f));
    std::reverse(x.begin(), x.end());
    for (int i = 0; i < 1000; ++i) x.push_back(std::nextafter(x.back(), 100.f));
    std::vector<float> minus(x);
    for (float& v : minus) v = -v;
    at_every_level([&](Level level) {
      std::vector<float> y = run(tanh, x), below = run(tanh, minus);
      INFO("around " << joint);
      CHECK(y.back() <= 1);
      if (level != Level::sse2) CHECK(std::is_sorted(y.begin(), y.end()));
      for (float& v : below) v = -v;
      CHECK(below == y);
    });
  }
}

TEMPLATE_TEST_CASE("math has the IEEE values at the edges", "[math]", float, double) {
  using T = TestType;
  constexpr T inf = std::numeric_limits<T>::infinity();
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> x{0, -T(0), inf, -inf, nan, -1};
  struct Row {
    Function f;
    std::vector<T> y;
  };
  const Row rows[] = {
      {exp, {1, 1, inf, 0, nan, std::exp(T(-1))}},       {expm1, {0, -T(0), inf, -1, nan, std::expm1(T(-1))}},
      {log, {-inf, -inf, inf, nan, nan, nan}},           {log1p, {0, -T(0), inf, nan, nan, -inf}},
      {sin, {0, -T(0), nan, nan, nan, std::sin(T(-1))}}, {cos, {1, 1, nan, nan, nan, std::cos(T(-1))}},
      {tanh, {0, -T(0), 1, -1, nan, std::tanh(T(-1))}},  {sigmoid, {T(.5), T(.5), 1, 0, nan, 1 / (1 + std::exp(T(1)))}},
      {round, {0, -T(0), inf, -inf, nan, -1}},           {abs, {0, 0, inf, inf, nan, 1}},
  };
  at_every_level([&](Level) {
    for (const Row& row : rows) {
      std::vector<T> y = run(row.f, x);
      INFO("row " << &row - rows);
      for (std::size_t i = 0; i < x.size(); ++i) {
        INFO("at " << x[i] << ": " << y[i] << " against " << row.y[i]);
        if (std::isnan(row.y[i])) CHECK(std::isnan(y[i]));
        else if (i == 5 && std::isfinite(row.y[i]))
          CHECK(std::abs(y[i] - row.y[i]) <= 2 * std::numeric_limits<T>::epsilon());
        else {
          CHECK(y[i] == row.y[i]);
          CHECK(std::signbit(y[i]) == std::signbit(row.y[i]));
        }
      }
    }
  });
}

TEMPLATE_TEST_CASE("an element has the same bits wherever it stands and whatever stands beside it", "[math]", float,
                   double) {
  using T = TestType;
  std::vector<T> x;
  for (int i = 0; i < 61; ++i) x.push_back(static_cast<T>(0.37 * i - 9));
  const T far[] = {T(-1e30),
                   T(1e30),
                   T(0),
                   std::numeric_limits<T>::infinity(),
                   std::numeric_limits<T>::quiet_NaN(),
                   std::numeric_limits<T>::denorm_min(),
                   T(1e4)};
  at_every_level([&](Level) {
    for (const Case<T>& c : kCases<T>) {
      INFO(c.name);
      std::vector<T> whole = run(c.ours, x);
      for (std::size_t shift = 1; shift < 17; ++shift) {
        std::vector<T> part = run(c.ours, std::vector<T>(x.begin() + static_cast<std::ptrdiff_t>(shift), x.end()));
        CHECK(same_bits(part, std::vector<T>(whole.begin() + static_cast<std::ptrdiff_t>(shift), whole.end())));
      }
      std::vector<T> mixed;
      for (std::size_t i = 0; i < x.size(); ++i) {
        mixed.push_back(x[i]);
        mixed.push_back(far[i % 7]);
      }
      std::vector<T> y = run(c.ours, mixed), every_other;
      for (std::size_t i = 0; i < y.size(); i += 2) every_other.push_back(y[i]);
      CHECK(same_bits(every_other, whole));
    }
  });
}

TEMPLATE_TEST_CASE("avx2 and avx512 give the same bits", "[math]", float, double) {
  using T = TestType;
  test::SettingsScope restore;
  if (!set_cpu_level(Level::avx512)) return test::skip("no AVX-512 on this CPU");
  std::vector<T> x = samples<T>();
  for (const Case<T>& c : kCases<T>) {
    INFO(c.name);
    set_cpu_level(Level::avx512);
    std::vector<T> a = run(c.ours, x);
    set_cpu_level(Level::avx2);
    CHECK(same_bits(a, run(c.ours, x)));
  }
}
