// examples/transformer.cpp - a small decoder-only transformer learns to sort: it reads numbers and goes on with the
// same numbers in order. It answers one number at a time, and keeps the keys and values of those before.
#include <cstdio>
#include <utility>
#include <vector>

#include <kassette/numpy.h>
#include <kassette/nn.h>

#include "dense.h"

namespace K = kassette::backend;
namespace np = kassette::numpy;
namespace nn = kassette::nn;
using kassette::all;
using kassette::slice;
using kassette::Tensor;
using kassette::Tensors;

constexpr int kNumbers = 10, kLength = 8, kSteps = 2 * kLength, kWidth = 64, kHeads = 4;
constexpr int kGo = kNumbers;  // the sign between the numbers and the answer

/// The keys and values of the positions that a block has seen, (batch, positions, heads, width of a head).
struct Cache {
  Tensor keys, values;
};

struct Block {
  Dense qkv{kWidth, 3 * kWidth}, out{kWidth, kWidth}, up{kWidth, 4 * kWidth}, down{4 * kWidth, kWidth};
  Tensor scale1 = K::ones({kWidth}), scale2 = K::ones({kWidth});

  Tensors weights() const {
    Tensors list = weights_of({qkv, out, up, down});
    list.push_back(scale1), list.push_back(scale2);
    return list;
  }
  /// x is (batch, positions, width). The positions see those of the cache, which they join, and each other up to
  /// themselves; behind a cache there is one.
  Tensor operator()(const Tensor& x, Cache* cache = nullptr) const {
    Tensor heads[3];
    const Tensor parts = qkv(nn::rms_normalization(x, scale1));
    for (int i = 0; i < 3; ++i)
      heads[i] = K::reshape(parts(all, all, slice(i * kWidth, (i + 1) * kWidth)),
                            {K::shape(x)[0], K::shape(x)[1], kHeads, kWidth / kHeads});
    auto& [query, key, value] = heads;
    const bool goes_on = cache && cache->keys.defined();
    if (goes_on) {
      key = np::concatenate({cache->keys, key}, 1);
      value = np::concatenate({cache->values, value}, 1);
    }
    if (cache) *cache = {key, value};
    const Tensor seen = nn::dot_product_attention(query, key, value, {.is_causal = !goes_on});
    const Tensor y = x + out(K::reshape(seen, K::shape(x)));
    return y + down(nn::gelu(up(nn::rms_normalization(y, scale2))));
  }
};

struct Transformer {
  Tensor tokens = K::random_normal_variable({kNumbers + 1, kWidth}, 0, 0.3),
         positions = K::random_normal_variable({kSteps, kWidth}, 0, 0.3);
  Block blocks[2];
  Dense scores{kWidth, kNumbers};

  Tensors weights() const {
    Tensors list = weights_of({scores});
    for (const Block& b : blocks)
      for (const Tensor& w : b.weights()) list.push_back(w);
    list.push_back(tokens), list.push_back(positions);
    return list;
  }
  /// The scores of the next number at each position, of which the first is number `from`.
  Tensor operator()(const Tensor& ids, int from = 0, Cache* caches = nullptr) const {
    const std::int64_t n = ids.shape()[1];
    Tensor x = K::gather(tokens, ids) + positions[slice(from, from + n)];
    for (int i = 0; i < 2; ++i) x = blocks[i](x, caches ? caches + i : nullptr);
    return scores(x);
  }
};

/// Numbers at random, (samples, kLength), and the same in order.
std::pair<Tensor, Tensor> draw(const np::random::Generator& random, int samples) {
  const Tensor numbers = random.integers(0, kNumbers, {samples, kLength}, {.dtype = "int32"});
  return {numbers, np::sort(numbers)};
}
/// What the transformer reads: the numbers, the sign, and the answer but for its last one.
Tensor sequence(const Tensor& numbers, const Tensor& answer) {
  return np::concatenate(
      {np::pad(numbers, {{0, 0}, {0, 1}}, "constant", {.constant_values = kGo}), answer(all, slice(0, -1))}, 1);
}

int main() {
  K::set_random_seed(3);
  const np::random::Generator random(7);
  const Transformer model;
  kassette::Function train;
  K::symbolic([&] {
    const Tensor ids = K::placeholder({K::None, kSteps}, K::None, "int32"),
                 answer = K::placeholder({K::None, kLength}, K::None, "int32");
    const Tensor scores = model(ids)(all, slice(kLength, K::None));
    const Tensor loss = K::mean(K::sparse_categorical_crossentropy(answer, scores, /*from_logits=*/true));
    train = K::function({ids, answer}, {loss}, adam(loss, model.weights()));
  })();
  std::printf(" step  cross-entropy\n");
  for (int step = 1; step <= 300; ++step) {
    const auto [numbers, answer] = draw(random, 64);
    const double loss = train({sequence(numbers, answer), answer})[0].item<double>();
    if (step % 100 == 0) std::printf("%5d  %.4f\n", step, loss);
  }

  // The numbers and the sign at once, then one position at a time.
  const auto [numbers, answer] = draw(random, 200);
  Cache caches[2];
  Tensor next = np::pad(numbers, {{0, 0}, {0, 1}}, "constant", {.constant_values = kGo});
  Tensors said;
  for (int i = 0; i < kLength; ++i) {
    const Tensor scores = model(next, i ? kLength + i : 0, caches);
    next = np::expand_dims(K::cast(np::argmax(scores(all, -1), 1), "int32"), 1);
    said.push_back(next);
  }
  const Tensor sorted = np::concatenate(said, 1), whole = np::all(np::equal(sorted, answer), 1);
  const double right = np::mean(K::cast(whole, "float32")).item<double>();
  // What the cache gives is what reading the whole sequence gives.
  const Tensor again = np::argmax(model(sequence(numbers, sorted))(all, slice(kLength, K::None)), 2);
  const bool same = np::all(np::equal(again, K::cast(sorted, "int64"))).item<bool>();
  std::printf("held out: %.1f %% of 200 sequences sorted; with and without a cache %s\n", 100 * right,
              same ? "the same" : "different");
  return right > 0.9 && same ? 0 : 1;
}
