// tests/ops/elementwise/rounding_test.cpp - numbers become float16 and bfloat16 with one rounding, however they come
// in. The values are those of the formats' definitions (IEEE 754, binary16; bfloat16 with its 8 exponent and 7 fraction
// bits), and the nearest one follows from the midpoint: below it the lower, above it the upper, at it the even one.
#include <kassette/backend.h>
#include <kassette/io.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>
#include <limits>

#include "core/print/decimal.h"
#include "tests/io/folder.h"
#include "tests/ops/levels.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

struct Format {
  DType dtype;
  int fraction_bits, bias;
  int infinity() const { return dtype == float16 ? 0x7c00 : 0x7f80; }
  /// The value of non-negative bits; that of infinity as if the largest exponent went on, 2^(bias + 1).
  double value(int bits) const {
    const int exponent = bits >> fraction_bits, fraction = bits & ((1 << fraction_bits) - 1);
    return exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                         : std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
  }
};
const Format kFormats[] = {{float16, 10, 15}, {bfloat16, 7, 127}};

/// Numbers, and the bits of the nearest elements.
template <class T>
struct Numbers {
  std::vector<T> x;
  std::vector<int> bits;
  void add(T v, int to) {
    x.push_back(v);
    bits.push_back(to);
    if constexpr (std::is_signed_v<T> || std::is_floating_point_v<T>) {
      x.push_back(-v);
      bits.push_back(to | 0x8000);
    }
  }
};

/// Every midpoint of two neighbours, with the numbers next to it and a few others on each side.
Numbers<double> ties(const Format& f) {
  Numbers<double> all;
  for (int low = 0; low < f.infinity(); ++low) {
    const double below = f.value(low), above = f.value(low + 1), tie = (below + above) / 2, far = (above - below) / 2;
    all.add(below, low);
    all.add(tie, low & 1 ? low + 1 : low);
    for (const double away : {0x1p-14, 0x1p-27, 0x1p-40}) {
      all.add(tie - far * away, low);
      all.add(tie + far * away, low + 1);
    }
    all.add(std::nextafter(tie, 0), low);
    all.add(std::nextafter(tie, HUGE_VAL), low + 1);
  }
  all.add(std::numeric_limits<double>::max(), f.infinity());
  all.add(HUGE_VAL, f.infinity());
  all.add(std::numeric_limits<double>::denorm_min(), 0);
  return all;
}

/// Every midpoint that is an integer of type T, and the integers beside it.
template <class T>
Numbers<T> integer_ties(const Format& f) {
  Numbers<T> all;
  for (int low = f.bias << f.fraction_bits; low < f.infinity(); ++low) {
    const double tie = (f.value(low) + f.value(low + 1)) / 2;
    if (tie != std::floor(tie) || tie >= std::ldexp(1, std::numeric_limits<T>::digits)) continue;
    const auto at = static_cast<T>(tie);
    all.add(at - 1, low);
    all.add(at, low & 1 ? low + 1 : low);
    all.add(at + 1, low + 1);
  }
  return all;
}

int bits_at(const Tensor& t, std::int64_t i) {
  std::uint16_t bits;
  std::memcpy(&bits, Access::desc(t).data() + 2 * i, 2);
  return bits;
}
template <class T>
std::int64_t wrong(const Tensor& t, const Numbers<T>& numbers, std::size_t step = 1) {
  REQUIRE(t.size() == static_cast<std::int64_t>((numbers.x.size() + step - 1) / step));
  std::int64_t n = 0;
  for (std::size_t i = 0; i < numbers.x.size(); i += step)
    n += bits_at(t, static_cast<std::int64_t>(i / step)) != numbers.bits[i];
  return n;
}

}  // namespace

TEST_CASE("float64 and integers become half types with one rounding, at every midpoint and level", "[cast]") {
  for (const Format& f : kFormats) {
    INFO(f.dtype);
    const Numbers<double> reals = ties(f);
    const auto narrow = integer_ties<std::int32_t>(f);
    const auto wide = integer_ties<std::int64_t>(f);
    CHECK(reals.x.size() > 500'000);
    CHECK(narrow.x.size() > 5'000);
    at_every_level([&](devices::Level) {
      CHECK(wrong(K::cast(tensor_of(reals.x), f.dtype), reals) == 0);
      CHECK(wrong(K::cast(tensor_of(narrow.x), f.dtype), narrow) == 0);
      CHECK(wrong(K::cast(tensor_of(wide.x), f.dtype), wide) == 0);
    });
  }
}

TEST_CASE("numbers, lists, arrays, feeds and assigned values become half types with one rounding", "[cast]") {
  for (const Format& f : kFormats) {
    INFO(f.dtype);
    const Numbers<double> reals = ties(f);
    const auto wide = integer_ties<std::int64_t>(f);
    const auto n = static_cast<std::int64_t>(reals.x.size());
    CHECK(wrong(K::constant(reals.x, f.dtype), reals) == 0);
    CHECK(wrong(K::constant(wide.x, f.dtype), wide) == 0);

    Tensor v = K::variable(K::zeros({n}, f.dtype), f.dtype);
    K::set_value(v, tensor_of(reals.x));
    CHECK(wrong(K::get_value(v), reals) == 0);
    Tensor in = K::placeholder({K::None}, K::None, f.dtype);
    auto same = K::function({in}, {K::identity(in)});
    CHECK(wrong(same({tensor_of(reals.x)})[0], reals) == 0);

    const Tensor one = K::ones({1}, f.dtype);
    std::int64_t off = 0;
    for (std::size_t i = 0; i < reals.x.size(); i += 31) {
      const double x = reals.x[i];
      const int to = reals.bits[i];
      off += bits_at(K::constant(x, f.dtype), 0) != to;
      off += bits_at(K::constant(x, f.dtype, {3}), 2) != to;
      off += bits_at(K::constant({0.0, x}, f.dtype), 1) != to;
      off += bits_at(one * x, 0) != to;
      if (x > 0) off += bits_at(K::clip(K::constant(HUGE_VAL, f.dtype, {1}), 0, x), 0) != to;
    }
    for (std::size_t i = 0; i < wide.x.size(); i += 7) {
      off += bits_at(K::constant(wide.x[i], f.dtype), 0) != wide.bits[i];
      off += bits_at(K::constant({std::int64_t(0), wide.x[i]}, f.dtype), 1) != wide.bits[i];
      off += bits_at(one * wide.x[i], 0) != wide.bits[i];
    }
    CHECK(off == 0);
  }
  // 2^64 - 2^55 is the midpoint of 2^64 - 2^56 and 2^64.
  const std::uint64_t tie = std::uint64_t(0) - (std::uint64_t(1) << 55);
  CHECK(bits_at(K::constant(tie - 1, bfloat16), 0) == 0x5f7f);
  CHECK(bits_at(K::constant(tie, bfloat16), 0) == 0x5f80);
}

TEST_CASE("integers become float32 with one rounding", "[cast]") {
  // float64 rounds 2^53 + 2^29 + 1 to the midpoint of two float32; float32 has 2^53 + 2^30 for it.
  const std::int64_t x = (std::int64_t(1) << 53) + (std::int64_t(1) << 29) + 1;
  const float above = 0x1p53f + 0x1p30f;
  CHECK(K::constant(x, float32).item<float>() == above);
  CHECK(K::constant({x, x}, float32)(1).item<float>() == above);
  CHECK(K::constant({K::constant(1.0, float32), Operand(x)})(1).item<float>() == above);
  CHECK((K::ones({1}, float32) * x).item<float>() == above);
  CHECK(K::clip(K::constant(HUGE_VAL, float32), 0, x).item<float>() == above);
  CHECK(K::cast(K::constant(x, int64), float32).item<float>() == above);
  const std::uint64_t y = (std::uint64_t(1) << 63) + (std::uint64_t(1) << 39) + 1;
  CHECK(K::constant(y, float32).item<float>() == 0x1p63f + 0x1p40f);
}

TEST_CASE("decimal numbers in files become half types with one rounding", "[io]") {
  // 1.00048828125 = 1 + 2^-11 is a midpoint of float16, 1.00390625 = 1 + 2^-8 of bfloat16, 65520 the one below
  // infinity. With a 1 behind 30 zeros they are above it, although the nearest float64 is the midpoint.
  const std::string zeros(30, '0'), nines(30, '9');
  Folder folder;
  const auto bits = [&](const std::string& text, DType dtype) {
    std::ofstream(folder / "x.csv") << text << '\n';
    LoadCsvOptions options;
    options.dtype = dtype;
    const Tensor t = load_csv(folder / "x.csv", options);
    std::vector<int> all;
    for (std::int64_t i = 0; i < t.size(); ++i) all.push_back(bits_at(t, i));
    return all;
  };
  CHECK(bits("1.00048828125,1.00048828125" + zeros + "1,-0.00100048828125" + zeros + "1E+3,1.00048828124" + nines,
             float16) == std::vector<int>{0x3c00, 0x3c01, 0xbc01, 0x3c00});
  CHECK(bits("65519.999,65519." + nines + ",65520,65520.00,6.552E4,+655200e-1,2047,2049", float16) ==
        std::vector<int>{0x7bff, 0x7bff, 0x7c00, 0x7c00, 0x7c00, 0x7c00, 0x67ff, 0x6800});
  CHECK(bits("1.00390625,1.00390625" + zeros + "1,1.00390624" + nines + ",1.01171875,1.01171874" + nines, bfloat16) ==
        std::vector<int>{0x3f80, 0x3f81, 0x3f80, 0x3f82, 0x3f81});
  // Half of the smallest number, 2^-25.
  CHECK(bits("2.98023223876953125e-8,2.98023223876953125" + zeros + "1e-8,0,-0,1e-400,nan,inf", float16) ==
        std::vector<int>{0, 1, 0, 0x8000, 0, 0x7e00, 0x7c00});
}
