// Rows of single kernels and of families of K: elementwise functions, reductions, products,
// indexing, losses with their gradients.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <kassette/numpy.h>

#include "../timer.h"
#include "rows.h"

using bench::row;

namespace {

void elementwise() {
  for (auto [n, tag] : {std::pair<int, const char*>{1000, "1e3"}, {100000, "1e5"}, {10000000, "1e7"}}) {
    int size = n;
    std::string t = std::string(".") + tag;
    row("ew.tanh" + t, [=] { return [a = uniform(size)] { Tensor c = K::tanh(a); }; });
    row("ew.sigmoid" + t, [=] { return [a = uniform(size)] { Tensor c = K::sigmoid(a); }; });
    row("ew.pow" + t, [=] { return [a = uniform(size)] { Tensor c = K::pow(a, 1.7); }; });
  }
  row("ew.remainder.1e5", [] { return [a = uniform(100000) * 100.0, b = uniform(100000)] { Tensor c = a % b; }; });
  row("ew.floor_divide.1e5",
      [] { return [a = uniform(100000) * 100.0, b = uniform(100000)] { Tensor c = kassette::floor_divide(a, b); }; });
  row("ew.cast_f32_i32.1e7", [] { return [a = uniform(10000000) * 100.0] { Tensor c = K::cast(a, "int32"); }; });
  row("ew.cast_i32_f32.1e7", [] { return [a = integers(1000, 10000000)] { Tensor c = K::cast(a, "float32"); }; });
}

void reductions() {
  row("red.sum_ax1", [] { return [a = uniform(4096, 4096)] { Tensor c = K::sum(a, 1); }; });
  row("red.argmax_ax1", [] { return [a = uniform(4096, 4096)] { Tensor c = K::argmax(a, 1); }; });
  row("red.cumsum_ax1", [] { return [a = uniform(4096, 4096)] { Tensor c = K::cumsum(a, 1); }; });
  row("red.softmax_1000x10000", [] { return [a = uniform(1000, 10000)] { Tensor c = K::softmax(a); }; });
  row("red.softmax_128x10", [] { return [a = uniform(128, 10)] { Tensor c = K::softmax(a); }; });
}

/// A product of [n, n] matrices, either of them transposed, through batch_dot's axes.
void transposed(const char* name, int of_x, int of_y) {
  row(name, [=] {
    return [=, a = uniform(1, 1024, 1024), b = uniform(1, 1024, 1024)] { Tensor c = K::batch_dot(a, b, {of_x, of_y}); };
  });
}
void products() {
  auto dot = [](const char* name, int m, int k, int n) {
    row(name, [=] { return [a = uniform(m, k), b = uniform(k, n)] { Tensor c = K::dot(a, b); }; });
  };
  dot("mm.sq64", 64, 64, 64);
  dot("mm.sq128", 128, 128, 128);
  dot("mm.sq256", 256, 256, 256);
  dot("mm.tall", 4096, 64, 4096);
  dot("mm.inner", 64, 4096, 64);
  dot("mm.m32_k64_n128", 32, 64, 128);
  dot("mm.gemv4096", 4096, 4096, 1);
  transposed("mm.nt1024", 2, 2);
  transposed("mm.tn1024", 1, 1);
  row("mm.tn_k32_64x128", [] {  // the gradient of a dense layer's weights
    return [a = uniform(1, 32, 64), b = uniform(1, 32, 128)] { Tensor c = K::batch_dot(a, b, {1, 1}); };
  });
  row("mm.nt_m32_k128_n64", [] {  // the gradient of its input
    return [a = uniform(1, 32, 128), b = uniform(1, 64, 128)] { Tensor c = K::batch_dot(a, b, {2, 2}); };
  });
  row("mm.batched64",
      [] { return [a = uniform(64, 64, 64), b = uniform(64, 64, 64)] { Tensor c = K::batch_dot(a, b); }; });
  dot("mm.dot_2d", 2048, 256, 256);
  row("mm.dot_3d", [] { return [a = uniform(32, 64, 256), b = uniform(256, 256)] { Tensor c = K::dot(a, b); }; });
}

void indexing() {
  row("idx.gather_f",
      [] { return [w = uniform(50000, 128), i = integers(50000, 4096)] { Tensor y = K::gather(w, i); }; });
  row("idx.gather_b", [] {  // the cotangent is ones, made anew
    Tensor w = K::variable(uniform(50000, 128)), y = K::gather(w, integers(50000, 4096));
    return [=] { Tensors g = K::gradients(y, {w}); };
  });
  row("idx.transpose0231", [] {
    return [a = uniform(32, 64, 56, 56)] { Tensor c = K::permute_dimensions(a, {0, 2, 3, 1}); };
  });
  row("idx.transpose2d_4096", [] { return [a = uniform(4096, 4096)] { Tensor c = K::transpose(a); }; });
}

/// 1 % of a 10,000 x 10,000 matrix by 128 columns, its entries row by row.
Tensor hundredth() {
  constexpr int kSize = 10000, kEntries = 1000000;
  std::mt19937 generator(1);
  std::vector<std::int64_t> places;
  while (places.size() < kEntries) places.push_back(generator() % (std::int64_t(kSize) * kSize));
  std::sort(places.begin(), places.end());
  std::vector<std::int64_t> indices;
  for (std::int64_t p : places) indices.insert(indices.end(), {p / kSize, p % kSize});
  return K::sparse_coo(indices, draw(kEntries, std::uniform_real_distribution<float>(0.1f, 1.1f)), {kSize, kSize});
}
void sparse() {
  row("sparse.dot_1e4_1pct_128",
      [] { return [a = hundredth(), x = uniform(10000, 128)] { Tensor y = K::dot(a, x); }; });
  row("sparse.dot_1e4_1pct_128_b", [] {  // the gradient of the dense operand
    Tensor x = K::variable(uniform(10000, 128)), dy = uniform(10000, 128);
    Tensor loss = K::sum(K::dot(hundredth(), x) * dy);
    return [=] { Tensors g = K::gradients(loss, {x}); };
  });
}

/// Complex numbers and (r) real ones, one long row, many rows, and both axes of a matrix.
void transforms() {
  namespace fft = kassette::numpy::fft;
  row("fft.2e20", [] {
    return [x = fft::ComplexPair{uniform(1 << 20), uniform(1 << 20)}] { fft::ComplexPair y = fft::fft(x); };
  });
  row("fft.r2e20", [] { return [x = uniform(1 << 20)] { fft::ComplexPair y = fft::rfft(x); }; });
  row("fft.rows1000", [] {
    return [x = fft::ComplexPair{uniform(1000, 1000), uniform(1000, 1000)}] { fft::ComplexPair y = fft::fft(x); };
  });
  row("fft.rrows1000", [] { return [x = uniform(1000, 1000)] { fft::ComplexPair y = fft::rfft(x); }; });
  row("fft.both1000", [] {
    return [x = fft::ComplexPair{uniform(1000, 1000), uniform(1000, 1000)}] { fft::ComplexPair y = fft::fft2(x); };
  });
  row("fft.prime1009", [] {
    return [x = fft::ComplexPair{uniform(1009, 1009), uniform(1009, 1009)}] { fft::ComplexPair y = fft::fft(x); };
  });
}

/// Cross-entropy of 1024 rows of 1000 classes, with the gradient of the logits or probabilities.
void losses() {
  row("nn.prob_ce_1024x1000_fb", [] {
    return [p = K::variable(K::softmax(uniform(1024, 1000))), t = K::one_hot(integers(1000, 1024), 1000)] {
      Tensors g = K::gradients(K::mean(K::categorical_crossentropy(t, p)), {p});
    };
  });
  row("nn.sparse_prob_ce_1024x1000_fb", [] {
    return [p = K::variable(K::softmax(uniform(1024, 1000))), t = integers(1000, 1024)] {
      Tensors g = K::gradients(K::mean(K::sparse_categorical_crossentropy(t, p)), {p});
    };
  });
  row("nn.binary_ce_1024x1000_fb", [] {
    return [p = K::variable(uniform(1024, 1000) * 0.9), t = uniform(1024, 1000)] {
      Tensors g = K::gradients(K::mean(K::binary_crossentropy(t, p)), {p});
    };
  });
  row("nn.softmax_ce_1024x1000_fb", [] {
    return [z = K::variable(uniform(1024, 1000)), t = K::one_hot(integers(1000, 1024), 1000)] {
      Tensors g = K::gradients(K::mean(K::categorical_crossentropy(t, z, /*from_logits=*/true)), {z});
    };
  });
  row("nn.sparse_ce_1024x1000_fb", [] {
    return [z = K::variable(uniform(1024, 1000)), t = integers(1000, 1024)] {
      Tensors g = K::gradients(K::mean(K::sparse_categorical_crossentropy(t, z, /*from_logits=*/true)), {z});
    };
  });
}

/// 32 samples of 100 steps, 28 classes and 20 labels.
struct Speech {
  Tensor logits = K::reshape(K::constant(draw(32 * 100 * 28, std::normal_distribution<float>())), {32, 100, 28});
  Tensor labels = K::reshape(integers(27, 32 * 20), {32, 20});
  Tensor steps = K::ones({32, 1}, "int32") * 100, lengths = K::ones({32, 1}, "int32") * 20;
  Tensor cost(const Tensor& scores) const { return K::mean(K::ctc_batch_cost(labels, scores, steps, lengths)); }
};
/// CTC from logits, and (.K) from what softmax makes of them; reading them with a beam of 100.
void ctc() {
  row("nn.ctc_f", [] { return [s = Speech()] { Tensor y = s.cost(K::softmax(s.logits)); }; });
  row("nn.ctc_fb", [] {
    return [s = Speech(), x = K::variable(Speech().logits)] { Tensors g = K::gradients(s.cost(K::softmax(x)), {x}); };
  });
  row("nn.ctc_f.K", [] { return [s = Speech(), p = K::softmax(Speech().logits)] { Tensor y = s.cost(p); }; });
  row("nn.ctc_fb.K", [] {
    return [s = Speech(), p = K::variable(K::softmax(Speech().logits))] { Tensors g = K::gradients(s.cost(p), {p}); };
  });
  row("nn.ctc_beam100", [] {
    return [p = K::softmax(Speech().logits), steps = K::ones({32}, "int32") * 100] {
      auto result = K::ctc_decode(p, steps, /*greedy=*/false);
    };
  });
}

/// Batch normalisation in training of 32 images of 56 x 56 with 64 channels; x has `shape`.
void normalisation(const std::string& layout, const std::vector<int>& shape, const std::vector<int>& axes) {
  auto data = [=] { return uniform(shape[0], shape[1], shape[2], shape[3]) - 0.6; };
  auto normalised = [=](const Tensor& x, const Tensor& scale, const Tensor& offset) {
    return K::normalize_batch_in_training(x, scale, offset, axes).normalized;
  };
  row("nn.bn_56x64_f" + layout, [=] {
    return [=, x = data(), scale = K::ones({64}), offset = K::zeros({64})] { Tensor y = normalised(x, scale, offset); };
  });
  row("nn.bn_56x64_b" + layout, [=] {  // from a cotangent dy, as the peers' rows
    Tensor x = K::variable(data()), scale = K::variable(K::ones({64})), offset = K::variable(K::zeros({64})),
           dy = data(), loss = K::sum(normalised(x, scale, offset) * dy);
    return [=] { Tensors g = K::gradients(loss, {x, scale, offset}); };
  });
}

}  // namespace

void kernel_rows() {
  elementwise(), reductions(), products(), indexing(), sparse(), transforms(), losses(), ctc();
  normalisation(".cl", {32, 56, 56, 64}, {0, 1, 2});
  normalisation(".cf", {32, 64, 56, 56}, {0, 2, 3});
}
