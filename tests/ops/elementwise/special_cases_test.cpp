// tests/ops/elementwise/special_cases_test.cpp - the elementwise ops of numerical code against
// tests/data/special_cases.txt and special_integers.txt, which tests/data/make_special_cases.py makes with NumPy, SciPy
// and mpmath.
#include <kassette/backend.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "ops/engine/expr.h"
#include "tests/ops/levels.h"
#include "tests/ops/ulps.h"
#include "tests/sources.h"

using namespace kassette;
using namespace kassette::devices;
using namespace kassette::ops;
namespace K = kassette::backend;
using test::at_every_level;
using test::tensor_of;

namespace {

/// The cases of one function: `in` has a list for each argument.
struct Cases {
  std::vector<double> in[2], out;
};
std::map<std::string, Cases> read_cases() {
  std::map<std::string, Cases> all;
  std::ifstream file(test::kSourceTree / "tests/data/special_cases.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, word;
    words >> name;
    std::vector<double> numbers;
    while (words >> word) numbers.push_back(std::strtod(word.c_str(), nullptr));
    Cases& cases = all[name];
    for (std::size_t i = 0; i + 1 < numbers.size(); ++i) cases.in[i].push_back(numbers[i]);
    cases.out.push_back(numbers.back());
  }
  return all;
}

struct Special {
  const char* name;
  Tensor (*one)(const Tensor&);
  Tensor (*two)(const Operand&, const Operand&);
  double bound;         // in units in the last place, of which the numbers of the file may take a half
  double absolute = 0;  // in units of 1: around zeros of the function that are no floats
};
template <int n>
Tensor polygamma_of(const Tensor& x) {
  return polygamma(x, n);
}
const Special kFunctions[] = {
    {"floor", floor, nullptr, 0},
    {"ceil", ceil, nullptr, 0},
    {"trunc", trunc, nullptr, 0},
    {"rint", rint, nullptr, 0},
    {"tan", tan, nullptr, 2.2},
    {"asin", asin, nullptr, 2.45},
    {"acos", acos, nullptr, 1.6},
    {"atan", atan, nullptr, 1.75},
    {"sinh", sinh, nullptr, 2.05},
    {"cosh", cosh, nullptr, 1.85},
    {"asinh", asinh, nullptr, 1.65},
    {"acosh", acosh, nullptr, 1.7},
    {"atanh", atanh, nullptr, 1.8},
    {"exp2", exp2, nullptr, 1.55},
    {"log2", log2, nullptr, 1.05},
    {"log10", log10, nullptr, 2.1},
    {"cbrt", cbrt, nullptr, 1.5},
    {"atan2", nullptr, atan2, 2.5},
    {"hypot", nullptr, hypot, 1.6},
    {"copysign", nullptr, copysign, 0},
    {"fmod", nullptr, fmod, 0},
    {"logaddexp", nullptr, logaddexp, 2},
    {"logaddexp2", nullptr, logaddexp2, 3},
    {"erf", erf, nullptr, 1.5},
    {"erfc", erfc, nullptr, 4.4},
    {"erfinv", erfinv, nullptr, 3},
    {"lgamma", lgamma, nullptr, 4, 4},
    {"polygamma0", polygamma_of<0>, nullptr, 5, 4},
    {"polygamma1", polygamma_of<1>, nullptr, 5},
    {"polygamma2", polygamma_of<2>, nullptr, 5},
    {"polygamma3", polygamma_of<3>, nullptr, 5},
    {"gammainc", nullptr, gammainc, 400},
    {"gammaincc", nullptr, gammaincc, 400},
    {"i0", i0, nullptr, 4},
    {"i1", i1, nullptr, 4},
    {"sinc", sinc, nullptr, 3},
    {"modf_fraction", modf_fraction, nullptr, 0},
    {"frexp_exponent", frexp_exponent, nullptr, 0},
    {"ldexp", nullptr, ldexp, 0.5},
    {"heaviside", nullptr, heaviside, 0},
    {"fmax", nullptr, fmax, 0},
    {"fmin", nullptr, fmin, 0},
};

/// The cases that T has: for float those whose arguments are floats.
template <class T>
Cases cases_in(const Cases& all) {
  Cases some;
  for (std::size_t i = 0; i < all.out.size(); ++i) {
    bool fits = true;
    for (const auto& in : all.in)
      if (!in.empty() && !std::isnan(in[i]) && static_cast<double>(static_cast<T>(in[i])) != in[i]) fits = false;
    if (!fits) continue;
    for (int k = 0; k < 2; ++k)
      if (!all.in[k].empty()) some.in[k].push_back(all.in[k][i]);
    some.out.push_back(all.out[i]);
  }
  return some;
}

template <class T>
void check(const Special& f, const Cases& all) {
  const Cases cases = cases_in<T>(all);
  REQUIRE(cases.out.size() > 20);
  const std::vector<T> a(cases.in[0].begin(), cases.in[0].end()), b(cases.in[1].begin(), cases.in[1].end());
  at_every_level([&](Level) {
    const std::vector<T> y = (f.one ? f.one(tensor_of(a)) : f.two(tensor_of(a), tensor_of(b))).template to_vector<T>();
    double worst = 0;
    std::size_t worst_at = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const auto exact = static_cast<test::Wide<T>>(cases.out[i]);
      INFO(f.name << "(" << a[i] << (b.empty() ? "" : ", " + std::to_string(b[i])) << ") = " << y[i] << ", exactly "
                  << cases.out[i]);
      const double off = test::ulps<T>(y[i], exact);
      if (off > worst) {
        worst = off;
        worst_at = i;
      }
      if (!(std::abs(y[i] - exact) <= f.absolute * std::numeric_limits<T>::epsilon())) CHECK(off <= f.bound);
      if (!std::isnan(y[i])) CHECK(std::signbit(y[i]) == std::signbit(cases.out[i]));
    }
    if (std::getenv("KASSETTE_TEST_PRINT"))
      std::printf("%-14s %s %-7s %.3f at %a\n", f.name, sizeof(T) == 4 ? "f32" : "f64", level_name(cpu_level()), worst,
                  static_cast<double>(a[worst_at]));
  });
}

}  // namespace

TEST_CASE("special functions have the values of NumPy and mpmath at every CPU level", "[math][special]") {
  std::map<std::string, Cases> all = read_cases();
  for (const Special& f : kFunctions) {
    check<float>(f, all[f.name]);
    check<double>(f, all[f.name]);
    all.erase(f.name);
  }
  for (const auto& [name, cases] : all) FAIL_CHECK("no op for the cases of " << name);
}

TEMPLATE_TEST_CASE("special functions give an element the same bits at every level with FMA, whatever stands beside it",
                   "[math][special]", float, double) {
  using T = TestType;
  const std::map<std::string, Cases> all = read_cases();
  test::SettingsScope restore;
  for (const Special& f : kFunctions) {
    const Cases cases = cases_in<T>(all.at(f.name));
    const std::vector<T> a(cases.in[0].begin(), cases.in[0].end()), b(cases.in[1].begin(), cases.in[1].end());
    auto call = [&](const std::vector<T>& p, const std::vector<T>& q) {
      return (f.one ? f.one(tensor_of(p)) : f.two(tensor_of(p), tensor_of(q))).template to_vector<T>();
    };
    std::vector<T> narrow;
    for (Level level : kLevels) {
      if (level == Level::sse2 || !set_cpu_level(level)) continue;
      const auto whole = call(a, b);
      if (narrow.empty()) narrow.assign(whole.begin(), whole.end());
      for (std::size_t i = 0; i < a.size(); ++i) {
        const T alone = call({a[i]}, b.empty() ? b : std::vector<T>{b[i]})[0];
        INFO(f.name << "(" << a[i] << (b.empty() ? "" : ", " + std::to_string(b[i])) << ")");
        if (std::isnan(alone)) {
          CHECK(std::isnan(whole[i]));
          continue;
        }
        CHECK(std::memcmp(&alone, &whole[i], sizeof(T)) == 0);
        CHECK(std::memcmp(&alone, &narrow[i], sizeof(T)) == 0);
      }
    }
  }
}

namespace {

using Binary = Tensor (*)(const Operand&, const Operand&);
/// Reads the rest of a line and compares.
template <class T>
void check_integers(std::istream& words, const std::string& name) {
  const std::map<std::string, Binary> functions{{"gcd", gcd},
                                                {"lcm", lcm},
                                                {"bitwise_and", bitwise_and},
                                                {"bitwise_or", bitwise_or},
                                                {"bitwise_xor", bitwise_xor},
                                                {"left_shift", left_shift},
                                                {"right_shift", right_shift},
                                                {"fmod", fmod}};
  std::vector<T> numbers;
  for (std::conditional_t<std::is_signed_v<T>, long long, unsigned long long> n; words >> n;)
    numbers.push_back(static_cast<T>(n));
  REQUIRE(numbers.size() == 3);
  const Tensor a = tensor_of(std::vector<T>{numbers[0]}), b = tensor_of(std::vector<T>{numbers[1]});
  const Tensor y = name == "bitwise_invert" ? bitwise_invert(a) : functions.at(name)(a, b);
  INFO(name << "(" << +numbers[0] << ", " << +numbers[1] << ") of " << dtype_of(static_cast<const T*>(nullptr)).name());
  CHECK(y.to_vector<T>()[0] == numbers[2]);
}

}  // namespace

TEST_CASE("the incomplete beta function has the values of SciPy and mpmath", "[math][special]") {
  std::ifstream file(test::kSourceTree / "tests/data/betainc_cases.txt");
  std::vector<double> in[3], expected;
  std::string word[4];
  while (file >> word[0] >> word[1] >> word[2] >> word[3]) {
    for (int i = 0; i < 3; ++i) in[i].push_back(std::strtod(word[i].c_str(), nullptr));
    expected.push_back(std::strtod(word[3].c_str(), nullptr));
  }
  REQUIRE(expected.size() > 200);
  const auto y = betainc(tensor_of(in[0]), tensor_of(in[1]), tensor_of(in[2])).to_vector<double>();
  for (std::size_t i = 0; i < y.size(); ++i) {
    INFO("betainc(" << in[0][i] << ", " << in[1][i] << ", " << in[2][i] << ") = " << y[i] << ", not " << expected[i]);
    if (std::isnan(expected[i])) CHECK(std::isnan(y[i]));
    else CHECK(std::fabs(y[i] - expected[i]) <= 1e-13 * expected[i] + 1e-15);
  }
}

TEST_CASE("ops on the bits and divisors of integers give NumPy's numbers", "[math][special]") {
  std::ifstream file(test::kSourceTree / "tests/data/special_integers.txt");
  int n = 0;
  for (std::string line; std::getline(file, line); ++n) {
    std::istringstream words(line);
    std::string name, dtype;
    words >> name >> dtype;
    if (dtype == "int8") check_integers<std::int8_t>(words, name);
    else if (dtype == "uint8") check_integers<std::uint8_t>(words, name);
    else if (dtype == "int32") check_integers<std::int32_t>(words, name);
    else if (dtype == "int64") check_integers<std::int64_t>(words, name);
    else if (dtype == "uint32") check_integers<std::uint32_t>(words, name);
    else if (dtype == "uint64") check_integers<std::uint64_t>(words, name);
    else FAIL_CHECK("no such dtype: " << dtype);
  }
  CHECK(n > 500);
}

TEST_CASE("gradients of special functions where there is no slope are JAX's", "[math][special][gradient]") {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  struct Row {
    const char* name;
    Tensor (*f)(const Tensor&);
    std::vector<double> x, slope;
  };
  const Row rows[] = {
      {"floor", floor, {0, 1.5, -2}, {0, 0, 0}},
      {"rint", rint, {0, 0.5, -2.5}, {0, 0, 0}},
      {"asin", asin, {1, -1, 2, nan}, {inf, inf, nan, nan}},
      {"acos", acos, {1, -1, -2}, {-inf, -inf, nan}},
      {"acosh", acosh, {1, 0.5}, {inf, nan}},
      {"atanh", atanh, {1, -1}, {inf, inf}},
      {"log2", log2, {0}, {inf}},
      {"log10", log10, {0}, {inf}},
      {"cbrt", cbrt, {0, -8}, {inf, 1. / 12}},
      {"atan", atan, {inf, -inf}, {0, 0}},
      {"asinh", asinh, {inf, 0}, {0, 1}},
  };
  for (const Row& row : rows) {
    const Tensor x = K::variable(tensor_of(row.x));
    const auto slope = K::gradients(K::sum(row.f(x)), {x})[0].to_vector<double>();
    for (std::size_t i = 0; i < slope.size(); ++i) {
      INFO(row.name << " at " << row.x[i]);
      if (std::isnan(row.slope[i])) CHECK(std::isnan(slope[i]));
      else CHECK(slope[i] == Approx(row.slope[i]));
    }
  }
  const Tensor zero = K::variable(tensor_of(std::vector{0., -inf})),
               other = K::variable(tensor_of(std::vector{0., 1.}));
  CHECK(std::isnan(K::gradients(K::sum(atan2(zero, other)), {zero})[0].to_vector<double>()[0]));
  CHECK(std::isnan(K::gradients(K::sum(hypot(zero, other)), {zero})[0].to_vector<double>()[0]));
  const Tensors both = K::gradients(K::sum(logaddexp(zero, other)), {zero, other});
  CHECK(std::vector<double>(both[0].to_vector<double>()) == std::vector{0.5, 0.});
  CHECK(std::vector<double>(both[1].to_vector<double>()) == std::vector{0.5, 1.});
}
