// tests/core/error_test.cpp - errors keep their parts: function, argument, given, expected, remedy.
#include <string>
#include <tuple>
#include <utility>

#include <kassette/backend.h>

#include "tests/catch.h"
#include "tests/results.h"

using namespace kassette;
using namespace kassette::test;
namespace K = kassette::backend;

namespace {

using Parts = std::tuple<std::string, std::string, std::string>;

Parts parts(const Error& e) { return {e.what(), e.function(), e.argument()}; }

template <class F>
Parts parts_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return parts(e);
  }
  return {"no error", "", ""};
}

}  // namespace

TEST_CASE("an error is composed of a function, an argument and a message", "[errors]") {
  CHECK(parts(ValueError("pad", "x", "is a scalar")) == Parts("pad: x is a scalar", "pad", "x"));
  CHECK(parts(ValueError("pad", "", "no room")) == Parts("pad: no room", "pad", ""));
  CHECK(parts(ValueError("pad: no room")) == Parts("pad: no room", "", ""));
  CHECK(parts(ValueError("")) == Parts("", "", ""));
}

TEST_CASE("what was given, what must be and the remedy are parts of their own", "[errors]") {
  const auto rest = [](const Error& e) { return Parts(e.given(), e.expected(), e.remedy()); };
  const ValueError whole("pad", "x", "is a scalar", "it must have an axis", "K::expand_dims makes one");
  CHECK(parts(whole) == Parts("pad: x is a scalar; it must have an axis; K::expand_dims makes one", "pad", "x"));
  CHECK(rest(whole) == Parts("is a scalar", "it must have an axis", "K::expand_dims makes one"));
  const ValueError short_one("pad", "x", "is a scalar", "", "K::expand_dims makes one");
  CHECK(std::string(short_one.what()) == "pad: x is a scalar; K::expand_dims makes one");
  CHECK(rest(short_one) == Parts("is a scalar", "", "K::expand_dims makes one"));
  CHECK(rest(ValueError("no room")) == Parts("no room", "", ""));
  ValueError copy("another");
  copy = whole;
  CHECK(rest(copy) == rest(whole));

  Tensor x = K::constant({1, 2}), a = K::placeholder({2}), b = K::placeholder({2}, None, "int32");
  const auto rest_of = [&](auto f) {
    try {
      f();
    } catch (const Error& e) {
      return rest(e);
    }
    return Parts("no error", "", "");
  };
  CHECK(rest_of([&] { K::repeat(K::ones({2, 3}), 0); }) == Parts("is 0", "it must be at least 1", ""));
  const Parts cast("float32 and int32", "", "cast one of them (K::cast), tensors are not promoted");
  CHECK(rest_of([&] { x + K::cast(x, "int32"); }) == cast);
  CHECK(rest_of([&] { a + b; }) == cast);
  // Behind another function's name, and with a step of a loop, they stay.
  const Tensor n = K::placeholder({K::None}, None, "int32");
  auto powers = K::function({n}, {K::map_fn([](const Tensor& m) { return K::pow(K::constant(2, "int32"), m); }, n)});
  CHECK(rest_of([&] {
          powers({{1, -1}});
        }) == Parts("holds a negative integer (step 1 of 2 of map_fn)", "", "cast x to a float dtype (K::cast)"));
  CHECK(rest_of([&] { K::get_value(K::gather(x, {5})); }) ==
        Parts("hold 5, which is out of range for an axis of size 2", "", ""));
}

TEST_CASE("a copy of an error has its parts", "[errors]") {
  const TypeError e("slice", "start", "is a list");
  TypeError copy = e, other("dot", "", "a longer message than the other one");
  CHECK(parts(copy) == parts(e));
  copy = other;
  CHECK(parts(copy) == parts(other));
  copy = std::as_const(copy);
  CHECK(parts(copy) == parts(other));
}

TEST_CASE("an error of an op inside of a function has the function's name and keeps its own class", "[errors]") {
  Tensor x = K::constant({{1, 2, 3}, {4, 5, 6}});
  CHECK(parts_of([&] { K::dot(x, x); }) ==
        Parts("dot: (2, 3) x (2, 3): inner dimensions differ, 3 against 2", "dot", ""));
  CHECK(std::get<1>(parts_of([&] { K::binary_crossentropy(x, K::constant({1, 2})); })) == "binary_crossentropy");
  Tensor p = K::placeholder({K::None}), q = K::placeholder({K::None});
  auto f = K::function({p, q}, {K::binary_crossentropy(p, q)});
  CHECK(std::get<1>(parts_of([&] { f({{1, 2}, {1, 2, 3}}); })) == "binary_crossentropy");
}

TEST_CASE("the user's own error in a function's name is no error of that function", "[errors]") {
  struct Mine : ValueError {
    using ValueError::ValueError;
  };
  Tensor x = K::constant({1, 2});
  CHECK_THROWS_AS(K::map_fn([](const Tensor&) -> Tensor { throw Mine("add: mine"); }, x), Mine);
  CHECK(parts_of([&] { K::map_fn([](const Tensor&) -> Tensor { throw Mine("add: mine"); }, x); }) ==
        Parts("add: mine", "", ""));
}
