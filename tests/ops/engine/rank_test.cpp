// tests/ops/engine/rank_test.cpp - no op and no loop makes a tensor with more axes than a shape can hold, and no axis
// out of range is accepted.
#include <kassette/backend.h>
#include <kassette/testing.h>

#include <climits>
#include <vector>

#include "tests/catch.h"

namespace K = kassette::backend;
using namespace kassette;

namespace {

const Shape kEight{1, 1, 1, 1, 1, 1, 1, 2};
const std::vector<int> kBadAxes{8, -9, 100, -100, INT_MAX, INT_MIN, INT_MIN + 1};

}  // namespace

TEST_CASE("a shape has 0 to 8 sizes, or an unknown number", "[shape]") {
  const std::int64_t dims[13] = {};
  CHECK_THROWS_WITH(Shape(dims, 13), "Shape: rank 13; a tensor has 0 to 8 axes");
  CHECK_THROWS_WITH(Shape(dims, -3), "Shape: rank -3; a tensor has 0 to 8 axes");
  CHECK_THROWS_WITH((Shape{1, 2, 3, 4, 5, 6, 7, 8, 9}), "Shape: rank 9; a tensor has 0 to 8 axes");
  CHECK(Shape(dims, 8).rank() == 8);
  CHECK(Shape(nullptr, -1) == K::None);
  const Shape s{2, 3};
  for (int axis : kBadAxes) CHECK_THROWS_AS(s[axis], ValueError);
  CHECK_THROWS_WITH(s[INT_MIN], "shape: axis -2147483648 is out of range for (2, 3) of rank 2");
  CHECK(s[-2] == 2);
}

TEST_CASE("outputs of rank 8 cannot be stacked, by eager loops and by those of a function", "[loop]") {
  auto folded = [](const Tensor& t) { return K::reshape(t, kEight); };
  auto step = [](const Tensor& t, const Tensors& s) {
    return K::Step{K::reshape(t, {1, 1, 1, 1, 1, 1, 1, -1}), {s[0]}};
  };
  Tensor rows = K::ones({3, 2}), sequence = K::ones({1, 3, 2}), state = K::zeros({1, 2});
  CHECK_THROWS_AS(K::map_fn(folded, rows), ValueError);
  CHECK_THROWS_AS(K::rnn(step, sequence, {state}), ValueError);
  const char* said = "map_fn: outputs of shape (1, 1, 1, 1, 1, 1, 1, 2), stacked: rank 9; a tensor has 0 to 8 axes";
  for (const Shape& shape : {Shape{3, 2}, Shape{-1, 2}, Shape{-1, -1}}) {
    Tensor x = K::placeholder(shape);
    CHECK_THROWS_WITH(K::function({x}, {K::map_fn(folded, x)})({rows}), said);
  }
  Tensor xs = K::placeholder({K::None, K::None, 2}), s = K::placeholder({K::None, 2});
  CHECK_THROWS_AS(K::function({xs, s}, {K::rnn(step, xs, {s}).outputs})({sequence, state}), ValueError);
  // The rank of what the step gives is known only when the function is called.
  Tensor x = K::placeholder({K::None, 2}), to = K::placeholder({K::None}, K::None, "int32");
  auto f = K::function({x, to}, {K::map_fn([&](const Tensor& t) { return K::reshape(t, to); }, x)});
  CHECK(f({rows, Tensor(K::constant({1, 2}, "int32"))})[0].shape() == Shape{3, 1, 2});
  Tensor eight = K::constant({1, 1, 1, 1, 1, 1, 1, 2}, "int32");
  CHECK_THROWS_AS(f({rows, eight}), ValueError);
  CHECK_THROWS_AS(f({K::ones({0, 2}), eight}), ValueError);
}

TEST_CASE("an axis outside of the tensor is a ValueError in every function, INT_MIN too", "[axes]") {
  using OpCall = void (*)(const Tensor& x, int axis);
  const OpCall calls[] = {
      [](const Tensor& x, int a) { (void)K::sum(x, a); },
      [](const Tensor& x, int a) {
        (void)K::mean(x, {0, a});
      },
      [](const Tensor& x, int a) { (void)K::argmax(x, a); },
      [](const Tensor& x, int a) { (void)K::logsumexp(x, a); },
      [](const Tensor& x, int a) { (void)K::cumsum(x, a); },
      [](const Tensor& x, int a) { (void)K::softmax(x, a); },
      [](const Tensor& x, int a) { (void)K::l2_normalize(x, a); },
      [](const Tensor& x, int a) { (void)K::batch_normalization(x, x, x, x, x, a); },
      [](const Tensor& x, int a) { (void)K::batch_normalization(x, K::ones({3}), K::ones({3}), K::None, K::None, a); },
      [](const Tensor& x, int a) { (void)K::normalize_batch_in_training(x, K::None, K::None, a); },
      [](const Tensor& x, int a) { (void)K::categorical_crossentropy(x, x, false, a); },
      [](const Tensor& x, int a) { (void)K::categorical_crossentropy(x, x, true, a); },
      [](const Tensor& x, int a) { (void)K::sparse_categorical_crossentropy(K::ones({2}, "int32"), x, false, a); },
      [](const Tensor& x, int a) {
        (void)K::concatenate({x, x}, a);
      },
      [](const Tensor& x, int a) {
        (void)K::stack({x, x}, a);
      },
      [](const Tensor& x, int a) { (void)K::expand_dims(x, a); },
      [](const Tensor& x, int a) { (void)K::squeeze(x, a); },
      [](const Tensor& x, int a) { (void)K::repeat_elements(x, 2, a); },
      [](const Tensor& x, int a) { (void)K::reverse(x, a); },
      [](const Tensor& x, int a) {
        (void)K::permute_dimensions(x, {0, a});
      },
      [](const Tensor& x, int a) { (void)K::batch_dot(x, x, a); },
      [](const Tensor& x, int a) { (void)x.shape()[a]; },
      [](const Tensor& x, int a) { (void)x[a]; },
      [](const Tensor& x, int a) { (void)x(0, a); },
  };
  for (const OpCall& call : calls)
    for (int axis : kBadAxes) {
      INFO("function " << &call - calls << ", axis " << axis);
      for (const Tensor& x : {K::ones({2, 3}), K::ones({}), K::placeholder({2, 3}), K::placeholder({})})
        CHECK_THROWS_AS(call(x, axis), ValueError);
    }
}

TEST_CASE("a scalar is normalised along its last axis alone, the default", "[normalization]") {
  CHECK(K::batch_normalization(4.0, 1.0, 8.999, K::None, K::None).item<float>() == Approx(1.0));
  for (int axis : {0, -2, -9, 7, INT_MIN, INT_MAX})
    CHECK_THROWS_AS(K::batch_normalization(K::ones({}), K::ones({1}), K::ones({1}), K::None, K::None, axis),
                    ValueError);
}
