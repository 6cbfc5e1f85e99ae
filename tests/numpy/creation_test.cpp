// tests/numpy/creation_test.cpp - the functions of np that take no tensors. The values are NumPy's.
#include <kassette/numpy.h>

#include "tests/catch.h"
#include "tests/results.h"

namespace np = kassette::numpy;
namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;
using Doubles = std::vector<double>;

TEST_CASE("np::array keeps the dtype of containers and gives numbers floatx", "[numpy]") {
  CHECK(np::array(Doubles{0.1}).dtype() == float64);
  CHECK(np::array(std::vector<std::int8_t>{1}).dtype() == int8);
  CHECK(np::array({1, 2}).dtype() == float32);
  CHECK(np::array(1).dtype() == float32);
  CHECK(number(np::array(Doubles{0.1})) == 0.1);
  CHECK(np::array(Doubles{0.1}, "float32").dtype() == float32);
  CHECK_FALSE(K::is_variable(np::zeros({2})));
  CHECK(np::add(Doubles{1, 2}, 1).dtype() == float64);
  CHECK(np::add(std::vector<int>{1, 2}, std::vector<std::int64_t>{1, 2}).dtype() == int64);
  CHECK(np::add(1, 2).dtype() == float32);
}

TEST_CASE("two dtypes of one kind are promoted as the array API says, of two kinds refused", "[numpy]") {
  const auto of = [](const char* a, const char* b) {
    return std::string(np::add(np::ones(1, a), np::ones(1, b)).dtype().name());
  };
  CHECK(of("int8", "int8") == "int8");
  CHECK(of("int8", "int32") == "int32");
  CHECK(of("int8", "uint8") == "int16");
  CHECK(of("uint8", "uint16") == "uint16");
  CHECK(of("uint16", "int8") == "int32");
  CHECK(of("uint16", "int64") == "int64");
  CHECK(of("float32", "float64") == "float64");
  CHECK(of("float16", "float32") == "float32");
  CHECK(of("float16", "bfloat16") == "float32");
  for (const char* other : {"int32", "bool"})
    CHECK(error_of<TypeError>([&] { np::add(np::ones(1), np::ones(1, other)); }) ==
          std::string("add: y is ") + other + " and x is float32; cast one of them (K::cast)");
  CHECK(error_of<TypeError>([&] { np::add(np::ones(1, "bool"), np::ones(1, "int8")); }).find("cast") !=
        std::string::npos);
  CHECK(error_of<TypeError>([&] { np::add(np::ones(1, "int8"), 0.5); }) ==
        "add: y 0.5 is not an integer, and int8 is wanted; convert it with K::cast");
}

TEST_CASE("np::eye, arange, indices and fromfunction are NumPy's", "[numpy]") {
  CHECK(values(np::eye(2, 3, 1)) == Doubles{0, 1, 0, 0, 0, 1});
  CHECK(values(np::eye(3, 2, -1)) == Doubles{0, 0, 1, 0, 0, 1});
  CHECK(values(np::eye(2, None, 5)) == Doubles{0, 0, 0, 0});
  CHECK(np::eye(0).shape() == Shape{0, 0});
  CHECK(values(np::identity(2, "int8")) == Doubles{1, 0, 0, 1});
  CHECK(np::arange(3).dtype() == int64);
  CHECK(np::arange(3.0).dtype() == float32);
  CHECK(values(np::arange(1, 8, 3)) == Doubles{1, 4, 7});
  CHECK(np::arange(3, 1).size() == 0);
  CHECK(values(np::indices({2, 2})) == Doubles{0, 0, 1, 1, 0, 1, 0, 1});
  CHECK(np::indices({}).shape() == Shape{0});
  const Tensor product = np::fromfunction([](const Tensors& at) { return at[0] * at[1]; }, {3, 3}, "int32");
  CHECK(values(product) == Doubles{0, 0, 0, 0, 1, 2, 0, 2, 4});
  CHECK(product.dtype() == int32);
  CHECK(np::empty({2, 3}).shape() == Shape{2, 3});
  CHECK(np::empty_like(np::ones(2, "int8")).dtype() == int8);
  CHECK_THROWS_AS(np::eye(-1), ValueError);
  CHECK_THROWS_AS(np::linspace(0, 1, -1), ValueError);
}

TEST_CASE("the windows are NumPy's", "[numpy]") {
  const auto near = [](const Tensor& x, const Doubles& expected) {
    return number(np::max(np::abs(x - K::constant(expected, x.dtype())))) < 1e-6;
  };
  CHECK(near(np::hanning(5), {0, 0.5, 1, 0.5, 0}));
  CHECK(near(np::hamming(5), {0.08, 0.54, 1, 0.54, 0.08}));
  CHECK(near(np::blackman(5), {-1.38777878e-17, 0.34, 1, 0.34, -1.38777878e-17}));
  CHECK(near(np::bartlett(5), {0, 0.5, 1, 0.5, 0}));
  CHECK(near(np::kaiser(5, 14), {7.72686684e-06, 1.64932188e-01, 1, 1.64932188e-01, 7.72686684e-06}));
  CHECK(values(np::hanning(1)) == Doubles{1});
  CHECK(np::hanning(0).size() == 0);
}
