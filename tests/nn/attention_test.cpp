// tests/nn/attention_test.cpp - attention over more than one tile, what no key is seen by, threads, memory, dropout.
// The expected values are those of the products and the softmax that define it.
#include <kassette/backend.h>
#include <kassette/nn.h>
#include <kassette/numpy.h>
#include <kassette/runtime.h>

#include <cmath>
#include <vector>

#include "tests/catch.h"
#include "tests/results.h"

using namespace kassette;
using namespace kassette::test;
namespace K = kassette::backend;
namespace nn = kassette::nn;
namespace np = kassette::numpy;

namespace {

Tensor numbers(std::initializer_list<std::int64_t> dims, int seed, DType dtype = float64) {
  const std::vector<std::int64_t> shape(dims);
  std::int64_t n = 1;
  for (std::int64_t d : shape) n *= d;
  return K::variable(np::reshape(np::sin(np::arange(0, n, 1, float64) * (0.37 + seed)), shape), dtype);
}
/// softmax(q k^T / sqrt(width) + mask) v by products of matrices.
Tensor by_definition(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& added) {
  auto heads = [](const Tensor& x) { return K::permute_dimensions(x, {0, 2, 1, 3}); };
  const Tensor scores = np::matmul(heads(q), K::permute_dimensions(k, {0, 2, 3, 1})) / std::sqrt(double(q.shape()[3]));
  return heads(np::matmul(K::softmax(added.defined() ? scores + added : scores), heads(v)));
}
Tensor minus_infinity_unless(const Tensor& seen) { return K::log(K::cast(seen, float64)); }
double most_apart(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  return K::max(K::abs(K::cast(a, float64) - K::cast(b, float64))).item<double>();
}

}  // namespace

TEST_CASE("attention over many tiles is that of its definition, and so are its gradients", "[nn]") {
  const Tensor q = numbers({2, 150, 2, 8}, 1), k = numbers({2, 600, 2, 8}, 2), v = numbers({2, 600, 2, 5}, 3);
  const Tensor rows = K::reshape(K::arange(150), {150, 1}), columns = K::arange(600);
  const Tensor causal = minus_infinity_unless(columns <= rows);
  const Tensor odd = K::not_equal(columns % 3, 1);
  struct {
    nn::AttentionOptions options;
    Tensor added;
  } const all[] = {{{}, Tensor()},
                   {{.is_causal = true}, causal},
                   {{.mask = odd}, minus_infinity_unless(odd)},
                   {{.bias = numbers({2, 150, 600}, 4)}, numbers({2, 150, 600}, 4)}};
  for (const auto& row : all) {
    INFO(&row - all);
    const Tensor y = nn::dot_product_attention(q, k, v, row.options), wanted = by_definition(q, k, v, row.added);
    CHECK(most_apart(y, wanted) < 1e-12);
    const Tensor weight = numbers({2, 150, 2, 5}, 5);
    const Tensors got = K::gradients(K::sum(y * weight), {q, k, v}),
                  expected = K::gradients(K::sum(wanted * weight), {q, k, v});
    for (int i = 0; i < 3; ++i) CHECK(most_apart(got[i], expected[i]) < 1e-12);
    for (DType half : {float16, bfloat16, float32}) {
      nn::AttentionOptions options = row.options;
      if (options.bias.defined()) options.bias = K::cast(options.bias, half);
      const Tensor rounded = nn::dot_product_attention(K::cast(q, half), K::cast(k, half), K::cast(v, half), options);
      CHECK(rounded.dtype() == half);
      CHECK(most_apart(rounded, wanted) < (half == bfloat16 ? 0.03 : half == float16 ? 0.004 : 1e-5));
    }
  }
}

TEST_CASE("attention has the same bits for any number of threads", "[nn]") {
  const Tensor q = numbers({2, 150, 2, 8}, 1, float32), k = numbers({2, 300, 2, 8}, 2, float32);
  const int before = num_threads();
  auto results = [&] {
    const Tensor y = nn::dot_product_attention(q, k, k);
    Tensors all = K::gradients(K::sum(K::square(y)), {q, k});
    all.push_back(y);
    return all;
  };
  set_num_threads(1);
  const Tensors one = results();
  set_num_threads(3);
  const Tensors three = results();
  set_num_threads(before);
  for (int i = 0; i < 3; ++i) CHECK(values<float>(one[i]) == values<float>(three[i]));
}

TEST_CASE("a query of attention that sees no key gives zeros, and no gradient", "[nn]") {
  const Tensor q = numbers({1, 2, 1, 3}, 1), k = numbers({1, 4, 1, 3}, 2);
  const Tensor mask = K::constant({{true, true, false, true}, {false, false, false, false}}, bool_);
  const Tensor y = nn::dot_product_attention(q, k, k, {.mask = mask});
  CHECK(values<double>(K::cast(y(all, 1), float64)) == std::vector<double>{0, 0, 0});
  const Tensors slopes = K::gradients(K::sum(K::square(y)), {q, k});
  for (const Tensor& slope : slopes) CHECK(std::isfinite(K::sum(slope).item<double>()));
  CHECK(values<double>(slopes[0](all, 1)) == std::vector<double>{0, 0, 0});
  CHECK(K::sum(K::abs(nn::dot_product_attention(q, K::zeros({1, 0, 1, 3}, float64), K::zeros({1, 0, 1, 3}, float64))))
            .item<double>() == 0);
}

TEST_CASE("the memory of attention and of its gradient is linear in the length", "[nn]") {
  const Tensor x = numbers({1, 4096, 1, 4}, 1, float32);  // the weights would take 64 MiB
  reset_peak_memory();
  const std::int64_t before = memory_stats().live;
  (void)K::gradients(K::sum(nn::dot_product_attention(x, x, x, {.is_causal = true})), {x});
  CHECK(memory_stats().peak - before < 8 << 20);
}

TEST_CASE("dropout of attention keeps its mean, and draws the same with a seed", "[nn]") {
  const Tensor q = numbers({1, 40, 2, 4}, 1), v = K::ones({1, 500, 2, 4}, float64), k = numbers({1, 500, 2, 4}, 2);
  const nn::AttentionOptions options{.dropout = 0.25, .seed = 5};
  const Tensor y = nn::dot_product_attention(q, k, v, options);
  CHECK(K::mean(y).item<double>() == Approx(1).epsilon(0.02));
  CHECK(most_apart(y, K::ones({1, 40, 2, 4}, float64)) > 1e-3);
  CHECK(most_apart(y, nn::dot_product_attention(q, k, v, options)) == 0);
}

TEST_CASE("attention refuses what does not fit", "[nn]") {
  const Tensor q = K::zeros({2, 3, 2, 4});
  CHECK_THROWS_WITH(nn::dot_product_attention(q, K::zeros({2, 5, 2, 3}), K::zeros({2, 5, 2, 3})),
                    "dot_product_attention: key has shape (2, 5, 2, 3) and query (2, 3, 2, 4); they must have the same "
                    "width");
  CHECK_THROWS_WITH(nn::dot_product_attention(q, q, q, {.mask = K::zeros({3, 3})}),
                    "dot_product_attention: mask is float32; it must be bool; numbers that are added to the scores are "
                    "`bias`");
  CHECK_THROWS_WITH(nn::dot_product_attention(q, q, q, {.dropout = 1}),
                    "dot_product_attention: dropout is 1; it must be at least 0 and below 1");
}
