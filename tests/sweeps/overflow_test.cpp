// tests/sweeps/overflow_test.cpp - sizes that do not fit, empty lists, and what <kassette/testing.h> says of bad results.
#include <kassette/testing.h>

#include <cmath>
#include <string>

#include "tests/catch.h"
#include "tests/sweeps/sample.h"

namespace K = kassette::backend;
using namespace kassette;

namespace {

/// The message of a refusal by E; else what happened instead.
template <class E, class F>
std::string refused(F f) {
  test::Ledger ledger;
  std::string said = "no error";
  try {
    f();
  } catch (const E& e) {
    said = e.what();
  } catch (const std::exception& e) {
    said = std::string("another exception: ") + e.what();
  }
  if (std::string kept = ledger.change(); !kept.empty()) said += "; leaves " + kept;
  return said.find('\n') == std::string::npos ? said : "more than one line: " + said;
}

}  // namespace

TEST_CASE("sizes beyond 64 bits are a ValueError wherever a shape is made, and nothing is allocated", "[bad]") {
  std::int64_t big = std::int64_t(1) << 40;
  Tensor one = K::constant(1), x = K::constant(1, "float32", {2, 3});
  auto check = [](const std::string& said, const std::string& name) {
    INFO(said);
    CHECK(said.find(name + ": ") == 0);
    CHECK(said.find("is too large to address") != std::string::npos);
    CHECK(said.find("leaves") == std::string::npos);
    CHECK(said.find("another exception") == std::string::npos);
  };
  check(refused<ValueError>([&] { K::zeros({big, big}); }), "zeros");
  check(refused<ValueError>([&] { K::ones({big, big}); }), "ones");
  check(refused<ValueError>([&] { K::constant(1, "float32", {big, big}); }), "constant");
  check(refused<ValueError>([&] { K::eye({big, big}); }), "eye");
  check(refused<ValueError>([&] { K::random_uniform({big, big}); }), "random_uniform");
  check(refused<ValueError>([&] { K::tile(x, {big, big}); }), "tile");
  CHECK(refused<ValueError>([&] { K::reshape(x, {big, big}); }).find("reshape: ") == 0);
}

TEST_CASE("broadcasting to more bytes than there are is a MemoryError, one line, and nothing stays", "[bad]") {
  Tensor column = K::zeros({1 << 22, 1}), row = K::zeros({1, 1 << 22});
  std::string said = refused<MemoryError>([&] { column + row; });
  INFO(said);
  CHECK(said.find("leaves") == std::string::npos);
  CHECK(said.find("another exception") == std::string::npos);
  CHECK(said != "no error");
}

TEST_CASE("an empty list is a ValueError that names the function", "[bad]") {
  CHECK(refused<ValueError>([] { K::concatenate(Tensors()); }).find("concatenate: ") == 0);
  CHECK(refused<ValueError>([] { K::stack(Tensors()); }).find("stack: ") == 0);
}

TEST_CASE("compare counts what differs, and names the worst element and the shapes", "[testing]") {
  Tensor a = K::constant({{1, 2, 3}, {4, 5, 6}}, "float64"), b = K::constant({{1, 2.5, 3}, {4, 5, 7}}, "float64");
  testing::Comparison c = testing::compare(a, b);
  CHECK_FALSE(c);
  CHECK(c.count == 2);
  CHECK(c.where == 5);
  CHECK(c.worst == 1);
  CHECK(c.message == "2 of 6 elements differ, most at (1, 2): 6, expected 7");
  CHECK(testing::compare(a, b, {.atol = 1}));
  CHECK(testing::compare(a, K::constant({1, 2}, "float64")).message == "shape (2, 3), expected (2,)");
  CHECK(testing::compare(a, K::cast(a, "float32")).message == "dtype float64, expected float32");
  CHECK(testing::compare(K::constant({NAN, INFINITY}), K::constant({NAN, INFINITY})));
  CHECK_FALSE(testing::compare(K::constant({1.0}), K::constant({INFINITY}), {.rtol = 1}));
  CHECK(refused<AssertionError>([&] { testing::assert_close(a, b); }).find("assert_close: 2 of 6") == 0);
}

TEST_CASE("gradcheck finds a wrong gradient, and gradgradcheck a wrong second one", "[testing]") {
  Tensor x = K::constant({0.5, 0.75, -20.0}, "float64");
  CHECK(testing::gradcheck([](const Tensors& in) { return K::exp(in[0]); }, {x}));
  CHECK(testing::gradgradcheck([](const Tensors& in) { return K::exp(in[0]); }, {x}));
  // x * stop(x) has the value of x^2 and half its gradient; (x^2 - stop(x)^2) stop(x) + ... only a wrong second one.
  auto half = [](const Tensors& in) { return in[0] * K::stop_gradient(in[0]); };
  testing::Comparison c = testing::gradcheck(half, {x});
  CHECK_FALSE(c);
  CHECK(c.count == 3);
  CHECK(c.where == 2);
  CHECK(c.message.find("input 0: 3 of 3 elements differ, most at (2): gradient ") == 0);
  auto linear = [](const Tensors& in) {   // the value and gradient of x^2, but a gradient that is a constant
    Tensor s = K::stop_gradient(in[0]);
    return 2.0 * s * in[0] - s * s;
  };
  CHECK(testing::gradgradcheck([](const Tensors& in) { return K::square(in[0]); }, {x}));
  CHECK(testing::gradgradcheck(linear, {x}).message.find("second order: input 0: ") == 0);
}
