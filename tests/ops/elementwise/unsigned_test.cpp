// tests/ops/elementwise/unsigned_test.cpp - uint32 and uint64: against NumPy (tests/data/unsigned_cases.txt), and their
// rounding to floats against integer arithmetic.
#include <kassette/backend.h>
#include <kassette/numpy.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <sstream>

#include "core/convert.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/cast.h"
#include "tests/ops/levels.h"
#include "tests/results.h"
#include "tests/sources.h"

namespace K = kassette::backend;
namespace np = kassette::numpy;
using namespace kassette;
using namespace kassette::test;

namespace {

using Words = std::vector<std::string>;
using Two = std::function<Tensor(const Tensor&, const Tensor&)>;
using One = std::function<Tensor(const Tensor&)>;

/// A line of unsigned_cases.txt.
struct Case {
  std::string function, from, to;
  std::vector<Words> arguments;
  Words result;
};
std::vector<Case> unsigned_cases() {
  std::vector<Case> cases;
  std::ifstream file(kSourceTree / "tests/data/unsigned_cases.txt");
  for (std::string line; std::getline(file, line);) {
    if (line[0] == '#') continue;
    std::istringstream words(line);
    Case c;
    words >> c.function >> c.from >> c.to;
    for (std::string word; words >> word;) {
      if (word == "|") c.arguments.emplace_back();
      else c.arguments.back().push_back(word);
    }
    c.result = c.arguments.back();
    c.arguments.pop_back();
    cases.push_back(c);
  }
  return cases;
}
Tensor array_of(const Words& words, DType dtype) {
  if (dtype == uint64) {
    std::vector<std::uint64_t> v;
    for (const std::string& word : words) v.push_back(std::stoull(word));
    return tensor_of(v);
  }
  if (dtype == int64) {
    std::vector<std::int64_t> v;
    for (const std::string& word : words) v.push_back(std::stoll(word));
    return tensor_of(v);
  }
  std::vector<double> v;
  for (const std::string& word : words) v.push_back(std::stod(word));
  return K::cast(tensor_of(v), dtype);
}
/// The elements as NumPy's script writes them.
Words texts(const Tensor& x) {
  Words all;
  if (x.dtype().is_float())
    for (double v : values<double>(x)) {
      char digits[40];
      std::snprintf(digits, sizeof digits, "%.17g", v);
      all.push_back(digits);
    }
  else if (x.dtype() == uint64)
    for (std::uint64_t v : values<std::uint64_t>(x)) all.push_back(std::to_string(v));
  else
    for (std::int64_t v : values<std::int64_t>(x)) all.push_back(std::to_string(v));
  return all;
}

const std::map<std::string, Two> kPairs = {
    {"add", [](const Tensor& a, const Tensor& b) { return a + b; }},
    {"subtract", [](const Tensor& a, const Tensor& b) { return a - b; }},
    {"multiply", [](const Tensor& a, const Tensor& b) { return a * b; }},
    {"maximum", [](const Tensor& a, const Tensor& b) { return K::maximum(a, b); }},
    {"minimum", [](const Tensor& a, const Tensor& b) { return K::minimum(a, b); }},
    {"power", [](const Tensor& a, const Tensor& b) { return K::pow(a, b); }},
    {"less", [](const Tensor& a, const Tensor& b) { return a < b; }},
    {"less_equal", [](const Tensor& a, const Tensor& b) { return a <= b; }},
    {"greater", [](const Tensor& a, const Tensor& b) { return a > b; }},
    {"greater_equal", [](const Tensor& a, const Tensor& b) { return a >= b; }},
    {"equal", [](const Tensor& a, const Tensor& b) { return K::equal(a, b); }},
    {"not_equal", [](const Tensor& a, const Tensor& b) { return K::not_equal(a, b); }},
    {"floor_divide", [](const Tensor& a, const Tensor& b) { return floor_divide(a, b); }},
    {"remainder", [](const Tensor& a, const Tensor& b) { return a % b; }},
    {"true_divide", [](const Tensor& a, const Tensor& b) { return a / b; }}};
const std::map<std::string, One> kSingles = {{"negative", [](const Tensor& x) { return -x; }},
                                             {"abs", [](const Tensor& x) { return K::abs(x); }},
                                             {"sign", [](const Tensor& x) { return K::sign(x); }},
                                             {"square", [](const Tensor& x) { return K::square(x); }},
                                             {"sum", [](const Tensor& x) { return K::sum(x); }},
                                             {"prod", [](const Tensor& x) { return K::prod(x); }},
                                             {"cumsum", [](const Tensor& x) { return K::cumsum(x); }},
                                             {"cumprod", [](const Tensor& x) { return K::cumprod(x); }},
                                             {"max", [](const Tensor& x) { return K::max(x); }},
                                             {"min", [](const Tensor& x) { return K::min(x); }},
                                             {"argmax", [](const Tensor& x) { return K::argmax(x); }},
                                             {"argmin", [](const Tensor& x) { return K::argmin(x); }}};

Tensor answer(const Case& c) {
  const Tensor x = array_of(c.arguments[0], DType(c.from));
  if (c.function == "cast") return K::cast(x, DType(c.to));
  if (auto one = kSingles.find(c.function); one != kSingles.end()) return one->second(x);
  const Tensor y = array_of(c.arguments[1], DType(c.from));
  if (c.function == "matmul") return K::dot(K::reshape(x, {2, 3}), K::reshape(y, {3, 2}));
  return kPairs.at(c.function)(K::expand_dims(x), y);
}

/// v rounded to `digits` binary digits, to nearest even.
double nearest(std::uint64_t v, int digits) {
  const int more = static_cast<int>(std::bit_width(v)) - digits;
  if (more <= 0) return static_cast<double>(v);
  std::uint64_t kept = v >> more;
  const std::uint64_t rest = v & ((std::uint64_t(1) << more) - 1), half = std::uint64_t(1) << (more - 1);
  kept += rest > half || (rest == half && (kept & 1));
  return std::ldexp(static_cast<double>(kept), more);
}
double largest(DType dtype) { return dtype == float16 ? 65504.0 : std::numeric_limits<double>::max(); }

/// Numbers half way between two floats of 8, 11, 24 and 53 digits, and their neighbours at several distances.
std::vector<std::uint64_t> near_ties() {
  std::mt19937_64 draw(11);
  std::vector<std::uint64_t> v{0, 1, UINT64_MAX, 65503, 65504, 65505, 65519, 65520, 65521};
  for (int digits : {8, 11, 24, 53})
    for (int width = digits + 1; width <= 64; ++width)
      for (int i = 0; i < 12; ++i) {
        const std::uint64_t top = std::uint64_t(1) << (width - 1), kept = i == 0   ? (top - 1) | top
                                                                          : i == 1 ? top
                                                                                   : top | (draw() & (top - 1));
        const std::uint64_t half = std::uint64_t(1) << (width - digits - 1);
        const std::uint64_t tie = (kept & ~(2 * half - 1)) | half;
        for (std::uint64_t off : {std::uint64_t(0), std::uint64_t(1), std::uint64_t(2), half / 2, half - 1})
          for (std::uint64_t x : {tie + off, tie - off})
            if (static_cast<int>(std::bit_width(x)) <= width) v.push_back(x);
      }
  return v;
}

}  // namespace

TEST_CASE("uint32 and uint64 are NumPy's", "[unsigned]") {
  int compared = 0;
  for (const Case& c : unsigned_cases()) {
    INFO(c.function << " of " << c.from);
    const Tensor got = c.function == "mean" ? K::mean(array_of(c.arguments[0], DType(c.from))) : answer(c);
    if (c.function == "mean") {  // float32, as of all integers
      CHECK(got.dtype() == float32);
      CHECK(number(got) == Approx(std::stod(c.result[0])).epsilon(1e-6));
    } else {
      CHECK(got.dtype() == DType(c.to));
      CHECK(texts(got) == c.result);
    }
    ++compared;
  }
  CHECK(compared > 100);
}

TEMPLATE_TEST_CASE("unsigned integers become the nearest float, ties to even", "[unsigned][cast]", std::uint32_t,
                   std::uint64_t) {
  std::vector<TestType> v;
  for (std::uint64_t x : near_ties())
    if (x <= std::numeric_limits<TestType>::max()) v.push_back(static_cast<TestType>(x));
  const std::pair<DType, int> formats[] = {{bfloat16, 8}, {float16, 11}, {float32, 24}, {float64, 53}};
  at_every_level([&](devices::Level) {
    for (auto [dtype, digits] : formats) {
      const std::vector<double> got = values<double>(K::cast(tensor_of(v), dtype));
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < v.size(); ++i) {
        double wanted = nearest(v[i], digits), one;
        if (wanted > largest(dtype)) wanted = INFINITY;
        std::byte held[8];
        convert(held, dtype, &v[i], dtype_of(v.data()), 1);
        convert(&one, float64, held, dtype, 1);
        wrong += got[i] != wanted || one != wanted;
      }
      INFO(dtype.name() << " of " << v.size());
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("floats saturate at the bounds of uint32 and uint64, and NaN gives 0", "[unsigned][cast]") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = tensor_of(std::vector<double>{-1e300, -1, -0.99, -0.0, 0.99, 4294967294.99, 4294967295.99,
                                                 4294967296, 0x1p63, 18446744073709549568.0, 0x1p64, inf, -inf, nan});
  at_every_level([&](devices::Level) {
    CHECK(values<std::uint32_t>(K::cast(x, uint32)) == std::vector<std::uint32_t>{0, 0, 0, 0, 0, 4294967294, 4294967295,
                                                                                  4294967295, 4294967295, 4294967295,
                                                                                  4294967295, 4294967295, 0, 0});
    CHECK(values<std::uint64_t>(K::cast(x, uint64)) ==
          std::vector<std::uint64_t>{0, 0, 0, 0, 0, 4294967294, 4294967295, 4294967296, std::uint64_t(1) << 63,
                                     18446744073709549568u, UINT64_MAX, UINT64_MAX, 0, 0});
    const Tensor y = tensor_of(std::vector<float>{-1, 0x1.fffffep31f, 0x1p32f, 0x1.fffffep63f, 0x1p64f});
    CHECK(values<std::uint32_t>(K::cast(y, uint32)) ==
          std::vector<std::uint32_t>{0, 4294967040, 4294967295, 4294967295, 4294967295});
    CHECK(values<std::uint64_t>(K::cast(y, uint64)) ==
          std::vector<std::uint64_t>{0, 4294967040, 4294967296, 18446742974197923840u, UINT64_MAX});
    CHECK(values<std::uint32_t>(K::cast(K::constant({-2, 65504, INFINITY}, "float16"), uint32)) ==
          std::vector<std::uint32_t>{0, 65504, 4294967295});
  });
}

TEST_CASE("numbers beside uint32 and uint64 fit them, or are refused", "[unsigned]") {
  const Tensor x = K::constant({1, 2}, "uint64"), y = K::constant({1, 2}, "uint32");
  CHECK(values<std::uint64_t>(x + UINT64_MAX) == std::vector<std::uint64_t>{0, 1});
  CHECK(values<std::uint64_t>(x + 0x1p63) ==
        std::vector<std::uint64_t>{(std::uint64_t(1) << 63) + 1, (std::uint64_t(1) << 63) + 2});
  CHECK(values<std::uint32_t>(y * 4294967295u) == std::vector<std::uint32_t>{4294967295, 4294967294});
  CHECK(error_of<ValueError>([&] { x + -1; }) == "add: y -1 does not fit uint64");
  CHECK(error_of<ValueError>([&] { x + 0x1p64; }) != "no error");
  CHECK(error_of<ValueError>([&] { y + 4294967296; }) != "no error");
  CHECK(error_of<ValueError>([&] { y + -1; }) != "no error");
  CHECK(error_of<TypeError>([&] { x + 0.5; }) != "no error");
  CHECK(K::constant(UINT64_MAX, "uint64").item<std::uint64_t>() == UINT64_MAX);
  CHECK(K::constant(UINT64_MAX, "uint64").item<double>() == 0x1p64);
  CHECK(error_of<ValueError>([&] { K::constant(UINT64_MAX, "int64"); }) ==
        "constant: value 18446744073709551615 does not fit int64");
}

TEST_CASE("containers of unsigned integers keep every value", "[unsigned][arguments]") {
  const std::vector<std::uint64_t> v{1, UINT64_MAX, std::uint64_t(1) << 63};
  CHECK(values<std::uint64_t>(K::constant(v, "uint64")) == v);
  CHECK(values<std::uint64_t>(K::constant(std::vector<std::vector<std::uint64_t>>{v}, "uint64")) == v);
  CHECK(values<unsigned long long>(K::constant(std::vector<unsigned long long>{UINT64_MAX}, "uint64")) ==
        std::vector<unsigned long long>{UINT64_MAX});
  CHECK(K::constant(v).dtype() == float32);  // as any container
  CHECK(values<double>(K::constant(v)) == std::vector<double>{1, 0x1p64, 0x1p63});
  const Tensor x = K::constant({1, 2, 3}, "uint64");
  CHECK(values<std::uint64_t>(x + v) == std::vector<std::uint64_t>{2, 1, (std::uint64_t(1) << 63) + 3});
  const std::vector<std::uint64_t> small{1, 2, 3};
  CHECK(values<double>(K::constant({1, 2, 3}) + small) == std::vector<double>{2, 4, 6});
  CHECK(error_of<ValueError>([&] {
          K::constant({1, 2, 3}, "int64") + v;
        }) == "add: y 18446744073709551615 does not fit int64");
}

TEST_CASE("arange and eye have uint32 and uint64", "[unsigned][creation]") {
  CHECK(values<std::uint64_t>(K::arange(UINT64_MAX - 2, UINT64_MAX, 1, "uint64")) ==
        std::vector<std::uint64_t>{UINT64_MAX - 2, UINT64_MAX - 1});
  CHECK(values<std::uint64_t>(K::arange(UINT64_MAX, UINT64_MAX - 5, -2, "uint64")) ==
        std::vector<std::uint64_t>{UINT64_MAX, UINT64_MAX - 2, UINT64_MAX - 4});
  CHECK(values<std::uint64_t>(K::arange(K::constant(UINT64_MAX - 1, "uint64"), UINT64_MAX, 1, "uint64")) ==
        std::vector<std::uint64_t>{UINT64_MAX - 1});
  CHECK(values<std::uint32_t>(K::arange(4294967294, 4294967296, 1, "uint32")) ==
        std::vector<std::uint32_t>{4294967294, 4294967295});
  CHECK(error_of<ValueError>([] { K::arange(-1, 2, 1, "uint64"); }) ==
        "arange: dtype is uint64, which -1 does not fit; ask for int64");
  CHECK(error_of<ValueError>([] { K::arange(UINT64_MAX - 2, UINT64_MAX, 1, "float64"); }) ==
        "arange: dtype is float64, which 18446744073709551613 does not fit; ask for uint64");
  CHECK(values<double>(K::eye(2, "uint64")) == std::vector<double>{1, 0, 0, 1});
}

TEST_CASE("random_uniform draws from all of uint64", "[unsigned][random]") {
  const std::uint64_t high = std::uint64_t(1) << 63;
  double largest = 0;
  for (std::uint64_t v : values<std::uint64_t>(K::random_uniform({2000}, 0, UINT64_MAX, "uint64", 1)))
    largest = std::max(largest, static_cast<double>(v));
  CHECK(largest > 1.8e19);
  for (std::uint64_t v : values<std::uint64_t>(K::random_uniform({100}, high, high + 3, "uint64", 1)))
    CHECK((v >= high && v < high + 3));
  const Tensor low = K::constant(high, "uint64");
  for (std::uint64_t v : values<std::uint64_t>(K::random_uniform({100}, low, UINT64_MAX, "uint64", 1)))
    CHECK(v >= high);
  for (std::uint64_t v : values<std::uint64_t>(K::random_uniform_variable({100}, 0x1p63, 0x1.8p63, "uint64", None, 1)))
    CHECK((v >= high && v < high + high / 2));
  for (std::uint32_t v : values<std::uint32_t>(K::random_uniform({100}, 4294967290, 4294967296, "uint32", 1)))
    CHECK(v >= 4294967290);
  CHECK(error_of<ValueError>([&] { K::random_uniform({2}, high + 1, high, "uint64"); }) ==
        "random_uniform: minval 9223372036854775809 is not below maxval 9223372036854775808");
  CHECK(error_of<ValueError>([&] { K::random_uniform({2}, low, high, "uint64"); }) ==
        "random_uniform: minval 9223372036854775808 is not below maxval 9223372036854775808");
  CHECK(error_of<ValueError>([&] { K::random_uniform({2}, -1, 3, "uint64"); }) ==
        "random_uniform: minval -1 does not fit uint64");
  CHECK(error_of<ValueError>([&] { K::random_uniform({2}, 0, -3, "uint64"); }) ==
        "random_uniform: maxval is -3; uint64 holds 0 to 18446744073709551615, and samples are below maxval");
  CHECK(error_of<ValueError>([&] { K::random_uniform({2}, 0, 4294967297, "uint32"); }) ==
        "random_uniform: maxval is 4294967297; uint32 holds 0 to 4294967295, and samples are below maxval");
}

TEST_CASE("np promotes uint32 and uint64, and adds unsigned integers in uint64", "[unsigned][numpy]") {
  const Tensor small = K::constant({200, 100}, "uint8"), large = tensor_of(std::vector<std::uint64_t>{UINT64_MAX, 2});
  const Tensor middle = K::constant({4294967295u, 1}, "uint32");
  CHECK(np::sum(small).dtype() == uint64);
  CHECK(np::sum(small).item<int>() == 300);
  CHECK(np::cumulative_sum(K::constant({1, 2}, "int8")).dtype() == int64);
  CHECK(np::add(middle, small).dtype() == uint32);
  CHECK(values<std::uint64_t>(np::add(middle, large)) == std::vector<std::uint64_t>{4294967294, 3});
  CHECK(np::add(middle, K::constant({1, 1}, "int32")).dtype() == int64);
  CHECK(error_of<TypeError>([&] { np::add(large, K::constant({1, 1}, "int64")); }).find("cast") != std::string::npos);
  CHECK(np::negative(std::vector<std::uint64_t>{1}).dtype() == uint64);  // a container keeps its dtype
  const std::vector<std::uint64_t> v{18446744073709551499u, 12000000000000000000u};
  CHECK(values<std::uint64_t>(np::round(v, -3)) ==
        std::vector<std::uint64_t>{18446744073709551000u, 12000000000000000000u});
  CHECK(values<std::uint64_t>(np::round(tensor_of(v)[1], -19)) == std::vector<std::uint64_t>{10000000000000000000u});
}
