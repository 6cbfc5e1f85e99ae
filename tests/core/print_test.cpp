// tests/core/print_test.cpp - printing, against what NumPy printed (tests/data/print_cases.txt).
#include <kassette/backend.h>
#include <kassette/error.h>
#include <kassette/print.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "core/convert.h"
#include "core/print/decimal.h"
#include "ops/engine/operand.h"
#include "tests/catch.h"
#include "tests/results.h"
#include "tests/settings.h"
#include "tests/sources.h"

using namespace kassette;
using namespace kassette::ops;
using namespace kassette::test;

namespace {

struct Case {
  std::string title, values, expected;
  Tensor tensor;
  PrintOptions options;
};

Case read_case(const std::string& title, std::ifstream& in) {
  Case c;
  c.title = title;
  std::istringstream head(title);
  std::string word, dtype, shape;
  head >> word >> dtype >> shape;
  while (head >> word) {
    std::string name = word.substr(0, word.find('='));
    int value = std::atoi(word.c_str() + name.size() + 1);
    if (name == "precision") c.options.precision = value;
    else if (name == "threshold") c.options.threshold = value;
    else if (name == "edgeitems") c.options.edgeitems = value;
    else if (name == "linewidth") c.options.linewidth = value;
    else if (name == "suppress") c.options.sci_mode = SciMode::suppress;
    else FAIL("unknown option " << name);
  }
  TensorSpec spec;
  spec.dtype = DType(dtype);
  std::istringstream dims(shape == "()" ? "" : shape);
  while (std::getline(dims, word, ',')) spec.dims[spec.rank++] = std::atoll(word.c_str());
  std::getline(in, c.values);
  std::istringstream list(c.values);
  std::vector<double> v;
  list >> word;
  if (word == "ramp") {
    double start, step;
    list >> start >> step;
    for (std::int64_t i = 0; i < spec.numel(); ++i) v.push_back(start + static_cast<double>(i) * step);
  } else if (!c.values.empty()) {
    do v.push_back(std::strtod(word.c_str(), nullptr));
    while (list >> word);
  }
  REQUIRE(static_cast<std::int64_t>(v.size()) == spec.numel());
  c.tensor = empty_tensor(spec);
  convert(Access::desc(c.tensor).data(), spec.dtype, v.data(), float64, spec.numel());
  std::getline(in, word);
  for (int i = std::atoi(word.c_str()); i > 0; --i) {
    std::getline(in, word);
    c.expected += word + (i > 1 ? "\n" : "");
  }
  return c;
}

}  // namespace

TEST_CASE("arrays print as NumPy printed them", "[print]") {
  std::ifstream in(kSourceTree / "tests/data/print_cases.txt");
  std::string line;
  int n = 0;
  while (std::getline(in, line)) {
    if (line[0] == '#') continue;
    Case c = read_case(line, in);
    INFO(c.title << "\n" << c.values);
    CHECK(std::string(array_text(c.tensor, c.options).c_str()) == c.expected);
    ++n;
  }
  CHECK(n > 200);
}

TEST_CASE("operator<< closes with shape, dtype and device", "[print]") {
  CHECK(printed(as_tensor({{0.5, -1.0}, {2.0, 0.25}}, float32, "test")) ==
        "[[ 0.5  -1.  ]\n [ 2.    0.25]]\n(2, 2) float32 cpu");
  CHECK(printed(as_tensor({1, 2, 3}, int32, "test")) == "[1 2 3] (3,) int32 cpu");
  CHECK(printed(as_tensor(2.5, float64, "test")) == "2.5 () float64 cpu");
  CHECK(printed(as_tensor({}, float32, "test")) == "[] (0,) float32 cpu");
  CHECK(printed(as_tensor({true, false}, bool_, "test")) == "[ True False] (2,) bool cpu");
}

TEST_CASE("uint64 prints its upper half as such", "[print]") {
  // NumPy: print(np.array([1, 2**64 - 1], np.uint64)), print(np.uint64(2**63))
  CHECK(printed(backend::constant(std::vector<std::uint64_t>{1, UINT64_MAX}, "uint64")) ==
        "[                   1 18446744073709551615] (2,) uint64 cpu");
  CHECK(printed(backend::constant(std::uint64_t(1) << 63, "uint64")) == "9223372036854775808 () uint64 cpu");
  CHECK(printed(backend::constant(4294967295u, "uint32")) == "4294967295 () uint32 cpu");
}

TEST_CASE("bfloat16 prints its shortest digits", "[print]") {
  CHECK(printed(as_tensor({1.0 / 3, 2, -0.1}, bfloat16, "test")) == "[ 0.334  2.    -0.1  ] (3,) bfloat16 cpu");
  CHECK(printed(as_tensor(3.0e38, bfloat16, "test")) == "3e+38 () bfloat16 cpu");
}

TEST_CASE("what has no elements to show prints what it is", "[print]") {
  CHECK(printed(Tensor()) == "Tensor()");
  CHECK(printed(make_leaf(Leaf::placeholder, TensorSpec(float32, {-1, 2}), cpu, {}, "x")) ==
        "Tensor(\"x\", shape=(None, 2), dtype=float32, device=cpu, symbolic)");
  CHECK(printed(make_leaf(Leaf::placeholder, TensorSpec(int32, {}), cpu, {}, None)) ==
        "Tensor(shape=(), dtype=int32, device=cpu, symbolic)");
  CHECK(printed(make_leaf(Leaf::variable, TensorSpec(float32, {3}), cpu, {}, "w")) ==
        "Tensor(\"w\", shape=(3,), dtype=float32, device=cpu, no value yet)");
  CHECK_THROWS_WITH(array_text(Tensor()),
                    "print: an empty Tensor (a gradient that is None, or an uninitialised variable?)");
  CHECK_THROWS_AS(array_text(make_leaf(Leaf::placeholder, TensorSpec(float32, {2}), cpu, {}, "x")), ValueError);
}

TEST_CASE("a variable prints its value", "[print]") {
  Tensor v = as_tensor({1.5, 2}, float32, "test");
  Tensor w = make_leaf(Leaf::variable, Access::desc(v), cpu, {Access::desc(v).storage, 0}, "w");
  CHECK(printed(w) == "[1.5 2. ] (2,) float32 cpu");
}

TEST_CASE("lists of tensors indent their elements", "[print]") {
  std::ostringstream os;
  Tensors list(as_tensor({{1, 2}, {3, 4}}, int32, "test"));
  list.push_back(as_tensor(1, int32, "test"));
  list.push_back(Tensor());
  os << list;
  CHECK(os.str() == "[[[1 2]\n  [3 4]]\n (2, 2) int32 cpu,\n 1 () int32 cpu,\n Tensor()]");
}

TEST_CASE("print options hold for all that is printed", "[print]") {
  Tensor x = as_tensor({1.0 / 3, 1e-7, 2}, float64, "test");
  test::SettingsScope restore;
  PrintOptions o;
  o.precision = 3;
  o.sci_mode = SciMode::never;
  o.details = false;
  set_print_options(o);
  std::string never = printed(x);
  o.sci_mode = SciMode::always;
  set_print_options(o);
  std::string always = printed(x);
  std::ostringstream os;
  os << print_options();
  CHECK(never == "[0.333 0.    2.   ]");
  CHECK(always == "[3.333e-01 1.000e-07 2.000e+00]");
  CHECK(os.str() ==
        "PrintOptions(precision=3, sci_mode=always, details=false, threshold=1000, edgeitems=3, linewidth=75)");
  set_print_options({});
  o.precision = -1;
  CHECK_THROWS_WITH(set_print_options(o), "set_print_options: precision is -1; it must not be negative");
  CHECK(print_options().precision == 8);
}

TEST_CASE("every float16 and bfloat16 prints the fewest digits that read back", "[print]") {
  for (DType dtype : {float16, bfloat16}) {
    int wrong = 0, longest = 0, shorter = 0;
    const auto bits_of = [&](const std::string& s) {
      const auto f = static_cast<float>(std::strtod(s.c_str(), nullptr));
      return dtype == float16 ? to_half(f).bits : to_bfloat16(f).bits;
    };
    for (int i = 0; i < (dtype == float16 ? 0x7c00 : 0x7f80); ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      const double v = dtype == float16 ? to_float(Half{bits}) : to_float(BFloat16{bits});
      const Decimal d = shortest_decimal(v, dtype);
      std::string s(1, d.digits[0]);
      s += "." + std::string(d.digits + 1, static_cast<std::size_t>(d.count - 1)) + "e" + std::to_string(d.exponent);
      wrong += bits_of(s) != bits;
      // The two neighbours with a digit less.
      const int exponent = d.exponent - d.count + 2;
      const auto below = static_cast<std::int64_t>(std::floor(v / std::pow(10., exponent)));
      for (std::int64_t n = below; d.count > 1 && n <= below + 1; ++n)
        shorter += bits_of(std::to_string(n) + "e" + std::to_string(exponent)) == bits;
      longest = std::max(longest, d.count);
    }
    INFO(dtype);
    CHECK(wrong == 0);
    CHECK(shorter == 0);
    CHECK(longest == (dtype == float16 ? 5 : 4));
  }
}

TEST_CASE("text compares, copies and is empty when zeroed", "[print]") {
  Text a("floor"), b = a, empty;
  CHECK(a == "floor");
  CHECK(b == a);
  CHECK(a != "ceil");
  CHECK(empty.empty());
  CHECK(empty.c_str()[0] == 0);
  b = empty;
  CHECK(b.size() == 0);
  CHECK(DType(Text("int32")) == int32);
}
