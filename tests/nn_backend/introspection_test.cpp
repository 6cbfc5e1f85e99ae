// tests/nn_backend/introspection_test.cpp - asking tensors what they are.
#include <kassette/backend.h>

#include "tests/catch.h"

namespace K = kassette::backend;
using namespace kassette;

TEST_CASE("tensors know what they are", "[introspection]") {
  Tensor v = K::variable({{1, 2}, {3, 4}, {5, 6}, {7, 8}}), p = K::placeholder({K::None, 2}), c = K::constant({1, 2});
  CHECK(K::is_variable(v));
  CHECK_FALSE(K::is_variable(p));
  CHECK_FALSE(K::is_variable(1));
  CHECK(K::is_placeholder(p));
  CHECK_FALSE(K::is_placeholder(v));
  CHECK_FALSE(K::is_placeholder({1, 2}));
  CHECK(K::is_tensor(c));
  CHECK_FALSE(K::is_tensor({1, 2}));
  CHECK_FALSE(K::is_tensor(Tensor()));
  CHECK_FALSE(K::is_keras_tensor(v));
  CHECK_FALSE(K::is_keras_tensor(p));
  CHECK_THROWS_WITH(K::is_keras_tensor({1, 2}), "is_keras_tensor: a list is not a tensor");
  CHECK(K::count_params(v) == 8);
  CHECK(K::count_params(3.0) == 1);
  CHECK(K::int_shape(v) == Shape{4, 2});
  CHECK(K::int_shape({{1, 2, 3}, {4, 5, 6}}) == Shape{2, 3});
  CHECK(K::ndim(p) == 2);
  CHECK(K::dtype(v) == float32);
  CHECK_THROWS_WITH(K::count_params(p), "count_params: (None, 2) has an unknown size; K::size(x) stands for it");
}
