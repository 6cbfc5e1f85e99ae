// tests/nn_backend/creation_test.cpp - variables, placeholders, constants.
#include <kassette/backend.h>

#include <vector>

#include "tests/catch.h"

namespace K = kassette::backend;
using namespace kassette;

namespace {

std::vector<double> values(const Tensor& t) { return t.to_vector<double>(); }

}  // namespace

TEST_CASE("a variable has floatx and the value's shape", "[creation]") {
  Tensor v = K::variable({{1, 2, 3}, {4, 5, 6}});
  CHECK(v.dtype() == float32);
  CHECK(v.shape() == Shape{2, 3});
  CHECK(values(v) == std::vector<double>{1, 2, 3, 4, 5, 6});
  CHECK(K::is_variable(v));
  CHECK_FALSE(v.symbolic());
}

TEST_CASE("a variable takes int and bool dtypes, a tensor is cast", "[creation]") {
  CHECK(K::variable(1, "int16").dtype() == int16);
  CHECK(K::variable(false, "bool").dtype() == bool_);
  CHECK(K::dtype(K::variable(1, "float64")) == float64);
  Tensor c = K::constant({1.75, -2.5}, "float64");
  Tensor v = K::variable(c);
  CHECK(v.dtype() == float32);
  CHECK(values(v) == std::vector<double>{1.75, -2.5});
  CHECK(values(K::variable(c, "int32")) == std::vector<double>{1, -2});
  CHECK_THROWS_AS(K::variable(1, "unsupported"), TypeError);
}

TEST_CASE("a constant has no history", "[creation]") {
  Tensor v = K::variable({1, 2});
  Tensor c = K::constant(v);
  CHECK_FALSE(K::is_variable(c));
  CHECK(values(c) == std::vector<double>{1, 2});
  CHECK(K::constant(3).dtype() == float32);
  CHECK(K::constant(3).shape() == Shape{});
}

TEST_CASE("a placeholder has the declared shape", "[creation]") {
  Tensor p = K::placeholder({K::None, 3}, None, "int32", false, "p");
  CHECK(p.symbolic());
  CHECK(p.dtype() == int32);
  CHECK(K::int_shape(p)[0] == None);
  CHECK(K::int_shape(p)[1] == 3);
  CHECK(K::ndim(K::placeholder(None, 2)) == 2);
  CHECK(K::int_shape(K::placeholder({})) == Shape{});
  CHECK(K::ndim(K::placeholder()) == None);
  CHECK_THROWS_WITH(K::placeholder({-1, 2}), "placeholder: a size of -1; an unknown size is K::None");
  CHECK_THROWS_WITH(K::placeholder(None, 9), "placeholder: ndim 9; a rank lies between 0 and 8");
  CHECK_THROWS_AS(K::placeholder({2}, None, None, true), NotImplementedError);
}

TEST_CASE("a variable of a symbolic tensor is refused", "[creation]") {
  CHECK_THROWS_AS(K::variable(K::placeholder({2})), ValueError);
  CHECK_THROWS_WITH(K::variable(Tensor()), "variable: the value is an empty Tensor (an uninitialised variable?)");
}
