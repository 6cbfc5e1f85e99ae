// tests/ops/product/bias_test.cpp - a bias and a relu behind a product, in a function on the CPU: one pass, with the
// bits of doing one after the other.
#include <kassette/backend.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "core/fast_paths.h"
#include "ops/product/matmul.h"
#include "tests/catch.h"
#include "tests/results.h"
#include "tests/settings.h"
#include "tests/sweeps/sample.h"

using namespace kassette;
using namespace kassette::ops;
using namespace kassette::test;
namespace K = kassette::backend;

namespace {

using Layer = std::function<Tensor(const Tensors& in)>;

Tensor draw(const std::vector<std::int64_t>& shape, std::uint64_t seed, DType dtype) {
  std::size_t n = 1;
  for (std::int64_t d : shape) n *= static_cast<std::size_t>(d);
  return K::eval(K::cast(f64(numbers(n, seed), shape), dtype));
}

/// What a K::function of the layer returns in its second call. `taken` gets how often, in the first, the bias was added
/// within a product, and how often the bias and the relu.
Tensor run(const Layer& layer, const Tensors& in, bool allowed, std::vector<std::int64_t>* taken) {
  SettingsScope restore;
  if (!allowed) fast_path_thresholds.off |= fast_path_bit(FastPath::with_bias);
  Tensors holders;
  for (const Tensor& t : in) holders.push_back(K::placeholder(t.shape(), K::None, t.dtype()));
  Function f = K::function(holders, {layer(holders)});
  CountedPaths counting;
  f(in);
  *taken = {times_taken(FastPath::with_bias), times_taken(FastPath::with_bias_relu)};
  return f(in)[0];
}

/// Expects that a product takes the bias, or the bias and the relu, `times` times, with the bits of separate ops.
void check(const Layer& layer, const Tensors& in, std::vector<std::int64_t> times) {
  std::vector<std::int64_t> taken, none;
  const Tensor once = run(layer, in, true, &taken), apart = run(layer, in, false, &none);
  CHECK(taken == times);
  CHECK(none == std::vector<std::int64_t>{0, 0});
  CHECK(same_bits(once, apart));
  CHECK(same_bits(once, K::eval(layer(in))));
}

Tensor biased(const Tensors& in) { return K::bias_add(K::dot(in[0], in[1]), in[2]); }
Tensor rectified(const Tensors& in) { return K::relu(biased(in)); }

}  // namespace

TEST_CASE("a product takes the bias and the relu behind it, with the bits of separate ops", "[products][function]") {
  struct Size {
    std::int64_t m, k, n;
  };
  // Parts of vectors, of blocks and of strips; k in one part and in several; one tile and many.
  const Size size =
      GENERATE(values<Size>({{6, 5, 7}, {3, 40, 16}, {15, 384, 33}, {40, 385, 70}, {37, 1000, 2100}, {300, 64, 31}}));
  for (DType dtype : {float32, float64}) {
    CAPTURE(size.m, size.k, size.n, dtype.name());
    const Tensors in = {draw({size.m, size.k}, 1, dtype), draw({size.k, size.n}, 2, dtype), draw({size.n}, 3, dtype)};
    check(biased, in, {1, 0});
    check(rectified, in, {0, 1});
  }
}

TEST_CASE("the product that takes a bias may have any order of its operands", "[products][function]") {
  const Tensor x = draw({6, 5}, 1, float32), w = draw({5, 7}, 2, float32), b = draw({7}, 3, float32);
  const Tensor turned_x = K::eval(K::transpose(x)), turned_w = K::eval(K::transpose(w));
  check([](const Tensors& in) { return in[2] + K::dot(in[0], in[1]); }, {x, w, b}, {1, 0});
  check([](const Tensors& in) { return K::relu(matmul(in[0], in[1], true, false) + in[2]); }, {turned_x, w, b}, {0, 1});
  check([](const Tensors& in) { return matmul(in[0], in[1], false, true) + in[2]; }, {x, turned_w, b}, {1, 0});
  check([](const Tensors& in) { return matmul(in[0], in[1], true, true) + in[2]; }, {turned_x, turned_w, b}, {1, 0});
  check(rectified, {K::eval(K::reshape(x, {2, 3, 5})), w, b}, {0, 1});
}

TEST_CASE("the product takes what is not finite as separate ops do", "[products][function]") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = f64({1, 2, nan, 4, inf, 6, -1, -0.0, 0, 0, -0.0, -0.0}, {6, 2}), w = draw({2, 7}, 2, float64),
               b = f64({0, -0.0, nan, -inf, 1, 2, -3}, {7});
  check(biased, {x, w, b}, {1, 0});
  check(rectified, {x, w, b}, {0, 1});
}

TEST_CASE("a bias stays apart from a product that is no sum in blocks", "[products][function]") {
  const Tensor w = draw({40, 70}, 2, float32), b = draw({70}, 3, float32);
  check(rectified, {draw({1, 40}, 1, float32), w, b}, {0, 0});                                            // a vector
  check(rectified, {draw({3, 2}, 1, float32), draw({2, 3}, 2, float32), draw({3}, 3, float32)}, {0, 0});  // tiny
  check(rectified, {draw({30, 4000}, 1, float32), draw({4000, 20}, 2, float32), draw({20}, 3, float32)},
        {0, 0});  // long
  check(rectified, {draw({6, 40}, 1, float16), draw({40, 70}, 2, float16), draw({70}, 3, float16)}, {0, 0});
  // The product is wanted as well.
  check(
      [](const Tensors& in) {
        Tensor y = K::dot(in[0], in[1]);
        return (y + in[2]) * y;
      },
      {draw({6, 40}, 1, float32), w, b}, {0, 0});
  // Another bias for each row.
  check([](const Tensors& in) { return K::dot(in[0], in[1]) + in[2]; },
        {draw({6, 40}, 1, float32), w, draw({6, 1}, 3, float32)}, {0, 0});
}
