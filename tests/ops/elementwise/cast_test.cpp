// tests/ops/elementwise/cast_test.cpp - conversion between every two dtypes by vector code, against conversions of C++
// element by element.
#include <limits>
#include <random>

#include "core/convert.h"
#include "ops/elementwise/cast.h"
#include "ops/engine/expr.h"
#include "tests/ops/levels.h"

using namespace kassette;
using namespace kassette::ops;
using namespace kassette::test;

namespace {

/// All values of types of 8 and 16 bits; for wider types, the values around the bounds of the narrower ones, and random
/// bits.
template <class T>
std::vector<T> values_of() {
  std::vector<T> x;
  if constexpr (std::is_same_v<T, bool>) {
    return x;  // of one byte each, made apart
  } else if constexpr (sizeof(T) <= 2) {
    for (int bits = 0; bits < 1 << (8 * sizeof(T)); ++bits) {
      auto pattern = static_cast<std::conditional_t<sizeof(T) == 1, std::uint8_t, std::uint16_t>>(bits);
      T v;
      std::memcpy(&v, &pattern, sizeof v);
      x.push_back(v);
    }
  } else {
    std::mt19937_64 random(1);
    for (int bits : {0, 7, 8, 15, 16, 24, 31, 32, 53, 62})
      for (int off = -2; off <= 2; ++off)
        for (int sign : {-1, 1}) x.push_back(static_cast<T>(sign * (std::int64_t(1) << bits) + off));
    x.push_back(std::numeric_limits<T>::lowest());
    x.push_back(std::numeric_limits<T>::max());
    for (int i = 0; i < 3000; ++i) {
      auto v = static_cast<std::int64_t>(random()) >> (i % 61);
      if constexpr (std::is_floating_point_v<T>) x.push_back(std::ldexp(static_cast<T>(v), -(i % 40)));
      else x.push_back(static_cast<T>(v));
    }
    if constexpr (std::is_unsigned_v<T>)  // the upper half
      for (std::size_t i = 0, n = x.size(); i < n; ++i) x.push_back(static_cast<T>(~x[i]));
    if constexpr (std::is_floating_point_v<T>)
      for (T at : {T(0x1p31), T(0x1p32), T(0x1p63), T(0x1p64)})
        for (T v : {at, std::nextafter(at, T(0)), std::nextafter(at, 2 * at)}) x.push_back(v);
    if constexpr (std::is_floating_point_v<T>)
      for (T v : {std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity(),
                  std::numeric_limits<T>::quiet_NaN(), T(-0.0), T(0.5), std::numeric_limits<T>::denorm_min(), T(65504),
                  T(65519.9), T(65520), T(1e-8)})
        x.push_back(v);
  }
  return x;
}

Tensor tensor_of_all(DType dtype) {
  return dispatch(dtype, [&](auto* p) {
    using T = std::remove_pointer_t<decltype(p)>;
    if constexpr (std::is_same_v<T, bool>) {
      Tensor t = empty_tensor(TensorSpec(bool_, {200}));
      for (int i = 0; i < 200; ++i) mutable_data<bool>(t)[i] = i * i % 7 % 2;
      return t;
    } else {
      return tensor_of(values_of<T>());
    }
  });
}

}  // namespace

TEST_CASE("a cast between any two dtypes gives what its elements give one by one, at every level and length",
          "[cast]") {
  at_every_level([](devices::Level) {
    for (DType from : kAllDTypes) {
      Tensor x = tensor_of_all(from);
      for (DType to : kAllDTypes) {
        if (to == from) continue;
        INFO(from.name() << " to " << to.name());
        std::vector<std::byte> wanted(static_cast<std::size_t>(x.size() * to.size()));
        convert(wanted.data(), to, Access::desc(x).data(), from, x.size());
        for (std::int64_t skip = 0; skip < 67; skip += skip < 3 ? 1 : 13) {  // tails, and starts that are not aligned
          Tensor part = x(slice(skip, None)), made = cast(part, to);
          std::int64_t wrong = 0;
          for (std::int64_t i = 0; i < part.size(); ++i) {
            const std::byte *a = Access::desc(made).data() + i * to.size(), *b = wanted.data() + (i + skip) * to.size();
            if (std::memcmp(a, b, static_cast<std::size_t>(to.size())) == 0) continue;
            // Of NaN only that it is one: instructions and code make different bits of it.
            double was = 0;
            convert(&was, float64, Access::desc(part).data() + i * from.size(), from, 1);
            wrong += !std::isnan(was) || !to.is_float();
          }
          CHECK(wrong == 0);
        }
      }
    }
  });
}

TEST_CASE("integers wrap, bool is 0 or 1, and anything but 0 is true", "[cast]") {
  std::vector<std::int64_t> x{0, 1, -1, 127, 128, 255, 256, -129, 65536, std::int64_t(1) << 32, INT64_MIN, INT64_MAX};
  at_every_level([&](devices::Level) {
    Tensor t = tensor_of(x);
    auto ints = [](const Tensor& y) { return std::vector<int>(y.to_vector<int>()); };
    CHECK(ints(cast(t, int8)) == std::vector<int>{0, 1, -1, 127, -128, -1, 0, 127, 0, 0, 0, -1});
    CHECK(ints(cast(t, uint8)) == std::vector<int>{0, 1, 255, 127, 128, 255, 0, 127, 0, 0, 0, 255});
    CHECK(ints(cast(t, uint16)) == std::vector<int>{0, 1, 65535, 127, 128, 255, 256, 65407, 0, 0, 0, 65535});
    CHECK(std::vector<std::uint32_t>(cast(t, uint32).to_vector<std::uint32_t>()) ==
          std::vector<std::uint32_t>{0, 1, 0xffffffff, 127, 128, 255, 256, 0xffffff7f, 65536, 0, 0, 0xffffffff});
    CHECK(std::vector<std::uint64_t>(cast(t, uint64).to_vector<std::uint64_t>()) ==
          std::vector<std::uint64_t>(x.begin(), x.end()));
    CHECK(ints(cast(t, int32)) == std::vector<int>{0, 1, -1, 127, 128, 255, 256, -129, 65536, 0, 0, -1});
    CHECK(ints(cast(cast(t, bool_), int64)) == std::vector<int>{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
    CHECK(ints(cast(cast(cast(t, int8), int16), bfloat16)) ==
          std::vector<int>{0, 1, -1, 127, -128, -1, 0, 127, 0, 0, 0, -1});
  });
}
