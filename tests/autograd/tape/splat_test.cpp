// tests/autograd/tape/splat_test.cpp - gradients of sums and means: one number repeated. See Note [Splats].
#include <kassette/runtime.h>
#include <kassette/testing.h>

#include <functional>
#include <vector>

#include "tests/catch.h"

namespace K = kassette::backend;
using kassette::Tensor;
using kassette::Tensors;
using List = std::vector<float>;

namespace {

List values(const Tensor& t) { return t.to_vector<float>(); }
Tensor x_values() { return K::constant({{0.5, -1.25, 2}, {-3, 0.1, 7}}); }

}  // namespace

TEST_CASE("the gradient of a sum has the shape of what was summed", "[tape]") {
  Tensor x = K::variable(x_values());
  CHECK(values(K::gradients(K::sum(x), {x})[0]) == List(6, 1));
  CHECK(K::gradients(K::sum(x), {x})[0].shape() == x.shape());
  CHECK(values(K::gradients(K::mean(x), {x})[0]) == List(6, 1.f / 6));
  CHECK(K::gradients(K::sum(x, {0, 1}, /*keepdims=*/true), {x})[0].shape() == x.shape());
  CHECK(values(K::gradients(x, {x})[0]) == List(6, 1));
  CHECK(values(K::gradients(K::sum(-x) + K::sum(x * 3.0), {x})[0]) == List(6, 2));
  Tensor half = K::cast(x, "float16");
  CHECK(K::gradients(K::mean(half), {x})[0].shape() == x.shape());
}

TEST_CASE("one number broadcasts along what was broadcast, and is summed there", "[tape]") {
  Tensor x = K::variable(x_values()), row = K::variable({1, 2, 4}), one = K::variable(3.0);
  Tensors g = K::gradients(K::sum(x * row + one), {x, row, one});
  CHECK(values(g[0]) == List{1, 2, 4, 1, 2, 4});
  CHECK(values(g[1]) == List{-2.5f, -1.25f + 0.1f, 9});
  CHECK(values(g[2]) == List{6});
  CHECK(values(K::gradients(K::sum(x * K::constant({1, 2, 4})), {x})[0]) == List{1, 2, 4, 1, 2, 4});
  CHECK(K::gradients(K::sum(K::constant({{{1}}}) * x), {x})[0].shape() == x.shape());
}

TEST_CASE("an intermediate tensor's gradient is whole, read on or not", "[tape]") {
  Tensor x = K::variable(x_values()), y = K::square(x), z = -y;
  Tensors g = K::gradients(K::sum(z), {z, y, x});
  CHECK(values(g[0]) == List(6, 1));
  CHECK(values(g[1]) == List(6, -1));
  CHECK(values(g[2]) == List{-1, 2.5, -4, 6, -0.2f, -14});
}

TEST_CASE("numbers and whole tensors add up to a cotangent in any order, whoever reads it", "[tape]") {
  const Tensor start = x_values(), w = K::constant({{1, -2, 3}, {-4, 5, -6}});
  Tensor x = K::variable(start), y = x * 1.0;
  const auto numbers = [&] { return K::sum(y); };
  const auto whole = [&] { return K::sum(y * w); };
  const auto product = [&] { return K::sum(K::dot(y, K::transpose(w))); };  // column sums of w
  const List of_whole = values(w), of_product{-3, 3, -3, -3, 3, -3};
  for (int order = 0; order < 27; ++order) {
    Tensor loss = K::constant(0);
    List expected(6, 0);
    for (int k = 0, rest = order; k < 3; ++k, rest /= 3) {
      loss = loss + (rest % 3 == 0 ? numbers() : rest % 3 == 1 ? whole() : product());
      for (std::size_t i = 0; i < 6; ++i)
        expected[i] += rest % 3 == 0 ? 1 : rest % 3 == 1 ? of_whole[i] : of_product[i];
    }
    const Tensors g = K::gradients(loss, {x, y});
    CHECK(values(g[0]) == expected);
    CHECK(values(g[1]) == expected);
  }
  // Read by a product, a slice and a reshape.
  CHECK(values(K::gradients(K::sum(K::dot(x, K::transpose(w))), {x})[0]) == of_product);
  CHECK(values(K::gradients(K::sum(K::reshape(x, {3, 2})), {x})[0]) == List(6, 1));
  CHECK(values(K::gradients(K::mean(K::sum(x, 1)), {x})[0]) == List(6, 0.5));
}

TEST_CASE("the factor of a sum is its gradient, whatever becomes of it", "[tape]") {
  Tensor x = K::variable(x_values()), w = K::variable(x_values());
  Tensor g = K::gradients(K::sum(x * w), {x})[0];
  K::update_add(w, K::ones_like(w));
  CHECK(values(g) == values(x_values()));
  K::update_sub(x, g);
  CHECK(values(x) == List(6, 0));
  CHECK(values(g) == values(x_values()));
}

TEST_CASE("the gradient of a sum takes no memory for the number that is repeated", "[tape]") {
  constexpr int kSize = 100000, kBytes = 4 * kSize;
  Tensor x = K::variable(K::ones({kSize})), w = K::ones({kSize}), products = K::sum(x * w),
         squares = K::sum(K::square(x));
  auto peak_of = [&](const Tensor& loss) {
    std::int64_t live = kassette::memory_stats().live;
    kassette::reset_peak_memory();
    Tensors g = K::gradients(loss, {x});
    return kassette::memory_stats().peak - live;
  };
  CHECK(peak_of(products) < 1.5 * kBytes);
  CHECK(peak_of(squares) < 2.5 * kBytes);
}

TEST_CASE("a pass with one number for a cotangent is bit-identical to a plan, to second order", "[tape]") {
  using Loss = std::function<Tensor(const Tensor&)>;
  const Loss losses[] = {
      [](const Tensor& x) { return K::sum(K::square(x)); },
      [](const Tensor& x) { return K::mean(K::square(x - 0.3)); },
      [](const Tensor& x) { return K::mean(K::tanh(-x) * 3.0) + K::sum(x * x) * 0.1; },
      [](const Tensor& x) { return K::sum(K::relu(x) + K::abs(x) / 7.0); },
      [](const Tensor& x) { return K::mean(K::maximum(x, 0.2) * K::clip(x, -1, 1)); },
      [](const Tensor& x) {
        return K::sum(K::exp(x * 0.1), {0, 1}, true) * K::constant({{0.7}});
      },
  };
  for (const Loss& loss : losses) {
    Tensor x = K::variable(x_values());
    auto both = [&] {
      Tensor g = K::gradients(loss(x), {x})[0];
      return Tensors{g, K::gradients(K::sum(K::square(g)), {x})[0]};
    };
    Tensors now = both(), planned = K::symbolic([&] { return K::function({}, both()); })()({});
    for (int i = 0; i < 2; ++i) {
      INFO("loss " << &loss - losses << ", order " << i + 1);
      CHECK(values(now[i]) == values(planned[i]));
    }
  }
}
