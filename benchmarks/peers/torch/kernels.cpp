// PyTorch's rows of single kernels; see ours/kernels.cpp.
#include <torch/torch.h>

#include "../../timer.h"
#include "rows.h"

using at::Tensor;
using bench::row;

namespace {

Tensor uniform(at::IntArrayRef shape) { return torch::rand(shape) + 0.1; }

void elementwise() {
  for (auto [n, tag] : {std::pair<int64_t, const char*>{1000, "1e3"}, {100000, "1e5"}, {10000000, "1e7"}}) {
    int64_t size = n;
    std::string t = std::string(".") + tag;
    row("ew.tanh" + t, [=] { return [a = uniform({size})] { Tensor c = a.tanh(); }; });
    row("ew.sigmoid" + t, [=] { return [a = uniform({size})] { Tensor c = a.sigmoid(); }; });
    row("ew.pow" + t, [=] { return [a = uniform({size})] { Tensor c = a.pow(1.7); }; });
  }
  row("ew.remainder.1e5",
      [] { return [a = uniform({100000}) * 100, b = uniform({100000})] { Tensor c = a.remainder(b); }; });
  row("ew.floor_divide.1e5",
      [] { return [a = uniform({100000}) * 100, b = uniform({100000})] { Tensor c = a.floor_divide(b); }; });
  row("ew.cast_f32_i32.1e7", [] { return [a = uniform({10000000}) * 100] { Tensor c = a.to(torch::kInt32); }; });
  row("ew.cast_i32_f32.1e7",
      [] { return [a = torch::randint(1000, {10000000}, torch::kInt32)] { Tensor c = a.to(torch::kFloat32); }; });
}

void reductions() {
  row("red.sum_ax1", [] { return [a = uniform({4096, 4096})] { Tensor c = a.sum(1); }; });
  row("red.argmax_ax1", [] { return [a = uniform({4096, 4096})] { Tensor c = a.argmax(1); }; });
  row("red.cumsum_ax1", [] { return [a = uniform({4096, 4096})] { Tensor c = a.cumsum(1); }; });
  row("red.softmax_1000x10000", [] { return [a = uniform({1000, 10000})] { Tensor c = a.softmax(1); }; });
  row("red.softmax_128x10", [] { return [a = uniform({128, 10})] { Tensor c = a.softmax(1); }; });
}

void products() {
  auto matmul = [](const char* name, std::vector<int64_t> x, std::vector<int64_t> y) {
    row(name, [=] { return [a = uniform(x), b = uniform(y)] { Tensor c = a.matmul(b); }; });
  };
  matmul("mm.sq64", {64, 64}, {64, 64});
  matmul("mm.sq128", {128, 128}, {128, 128});
  matmul("mm.sq256", {256, 256}, {256, 256});
  matmul("mm.tall", {4096, 64}, {64, 4096});
  matmul("mm.inner", {64, 4096}, {4096, 64});
  matmul("mm.m32_k64_n128", {32, 64}, {64, 128});
  matmul("mm.gemv4096", {4096, 4096}, {4096});
  matmul("mm.batched64", {64, 64, 64}, {64, 64, 64});
  matmul("mm.dot_2d", {2048, 256}, {256, 256});
  matmul("mm.dot_3d", {32, 64, 256}, {256, 256});
  auto nt = [](const char* name, int64_t m, int64_t k, int64_t n) {
    row(name, [=] { return [a = uniform({m, k}), b = uniform({n, k})] { Tensor c = a.matmul(b.t()); }; });
  };
  auto tn = [](const char* name, int64_t m, int64_t k, int64_t n) {
    row(name, [=] { return [a = uniform({k, m}), b = uniform({k, n})] { Tensor c = a.t().matmul(b); }; });
  };
  nt("mm.nt1024", 1024, 1024, 1024);
  tn("mm.tn1024", 1024, 1024, 1024);
  tn("mm.tn_k32_64x128", 64, 32, 128);
  nt("mm.nt_m32_k128_n64", 32, 128, 64);
}

/// 1 % of a 10,000 x 10,000 matrix by 128 columns; coordinates as torch sorts them, or rows
/// compressed.
void sparse(const char* name, bool compressed) {
  row(name, [=] {
    Tensor at = torch::randint(10000, {2, 1000000});
    Tensor a = torch::sparse_coo_tensor(at, uniform({1000000}), {10000, 10000}).coalesce();
    if (compressed) a = a.to_sparse_csr();
    return [a, b = uniform({10000, 128})] { Tensor c = a.matmul(b); };
  });
}
/// The gradient of the dense operand, by autograd.
void sparse_back(const char* name, bool compressed) {
  row(name, [=] {
    Tensor at = torch::randint(10000, {2, 1000000});
    Tensor a = torch::sparse_coo_tensor(at, uniform({1000000}), {10000, 10000}).coalesce();
    if (compressed) a = a.to_sparse_csr();
    Tensor b = uniform({10000, 128}).requires_grad_(), y = a.matmul(b), dy = torch::rand_like(y);
    return [=] { auto g = torch::autograd::grad({y}, {b}, {dy}, /*retain_graph=*/true); };
  });
}

void indexing() {
  row("idx.gather_f", [] {
    return [w = uniform({50000, 128}), i = torch::randint(50000, {4096})] { Tensor y = torch::embedding(w, i); };
  });
  row("idx.gather_b", [] {
    Tensor w = uniform({50000, 128}).requires_grad_(), i = torch::randint(50000, {4096});
    Tensor y = torch::embedding(w, i), dy = torch::rand_like(y);
    return [=] { auto g = torch::autograd::grad({y}, {w}, {dy}, /*retain_graph=*/true); };
  });
  row("idx.transpose0231", [] {
    return [a = uniform({32, 64, 56, 56})] { Tensor c = a.permute({0, 2, 3, 1}).contiguous(); };
  });
  row("idx.transpose2d_4096", [] { return [a = uniform({4096, 4096})] { Tensor c = a.t().contiguous(); }; });
}

void transforms() {
  auto complex = [](at::IntArrayRef shape) { return torch::complex(uniform(shape), uniform(shape)); };
  row("fft.2e20", [=] { return [x = complex({1 << 20})] { Tensor y = torch::fft::fft(x); }; });
  row("fft.r2e20", [=] { return [x = uniform({1 << 20})] { Tensor y = torch::fft::rfft(x); }; });
  row("fft.rows1000", [=] { return [x = complex({1000, 1000})] { Tensor y = torch::fft::fft(x); }; });
  row("fft.rrows1000", [=] { return [x = uniform({1000, 1000})] { Tensor y = torch::fft::rfft(x); }; });
  row("fft.both1000", [=] { return [x = complex({1000, 1000})] { Tensor y = torch::fft::fft2(x); }; });
  row("fft.prime1009", [=] { return [x = complex({1009, 1009})] { Tensor y = torch::fft::fft(x); }; });
}

/// Losses from probabilities between 1e-7 and 1 - 1e-7, as Keras has them; torch's own functions are for logarithms.
Tensor clipped(const Tensor& p) { return p.clamp(1e-7, 1 - 1e-7); }

void losses() {
  auto probabilities = [] { return torch::softmax(uniform({1024, 1000}), 1).requires_grad_(); };
  row("nn.prob_ce_1024x1000_fb", [=] {
    Tensor p = probabilities(), t = torch::one_hot(torch::randint(1000, {1024}), 1000).to(torch::kFloat32);
    return [=] {
      Tensor loss = -(t * clipped(p / p.sum(1, true)).log()).sum(1).mean();
      auto g = torch::autograd::grad({loss}, {p});
    };
  });
  row("nn.sparse_prob_ce_1024x1000_fb", [=] {
    return [p = probabilities(), t = torch::randint(1000, {1024})] {
      Tensor q = clipped(p), loss = (q.sum(1).log() - q.gather(1, t.unsqueeze(1)).squeeze(1).log()).mean();
      auto g = torch::autograd::grad({loss}, {p});
    };
  });
  row("nn.binary_ce_1024x1000_fb", [=] {
    return [p = (torch::rand({1024, 1000}) * 0.9 + 0.05).requires_grad_(), t = torch::rand({1024, 1000})] {
      auto g = torch::autograd::grad({torch::binary_cross_entropy(clipped(p), t)}, {p});
    };
  });
  row("nn.softmax_ce_1024x1000_fb", [] {
    Tensor z = uniform({1024, 1000}).requires_grad_();
    Tensor t = torch::one_hot(torch::randint(1000, {1024}), 1000).to(torch::kFloat32);
    return [=] { auto g = torch::autograd::grad({torch::cross_entropy_loss(z, t)}, {z}); };
  });
  row("nn.sparse_ce_1024x1000_fb", [] {
    return [z = uniform({1024, 1000}).requires_grad_(), t = torch::randint(1000, {1024})] {
      auto g = torch::autograd::grad({torch::cross_entropy_loss(z, t)}, {z});
    };
  });
}

/// 100 steps of 32 samples, 28 classes and 20 labels, from logits.
struct Speech {
  Tensor logits = torch::randn({100, 32, 28}), labels = torch::randint(0, 27, {32, 20});
  Tensor steps = torch::full({32}, 100, torch::kLong), lengths = torch::full({32}, 20, torch::kLong);
  Tensor cost(const Tensor& x) const {
    return torch::ctc_loss(torch::log_softmax(x, 2), labels, steps, lengths, /*blank=*/27, at::Reduction::Mean,
                           /*zero_infinity=*/true);
  }
};
void ctc() {
  row("nn.ctc_f", [] {
    return [s = Speech()] {
      torch::NoGradGuard g;
      Tensor y = s.cost(s.logits);
    };
  });
  row("nn.ctc_fb", [] {
    return [s = Speech(), x = torch::randn({100, 32, 28}, torch::requires_grad())] {
      auto g = torch::autograd::grad({s.cost(x)}, {x});
    };
  });
}

/// Batch normalisation in training, x and everything that comes of it channels first or last.
void normalisation(const std::string& layout, at::MemoryFormat format) {
  auto data = [=] { return (torch::rand({32, 64, 56, 56}) - 0.5).contiguous(format); };
  auto normalised = [](const Tensor& x, const Tensor& w, const Tensor& b) {
    return torch::batch_norm(x, w, b, {}, {}, /*training=*/true, 0.1, 1e-3, /*cudnn=*/false);
  };
  row("nn.bn_56x64_f" + layout, [=] {
    return [=, x = data(), w = torch::ones({64}), b = torch::zeros({64})] { Tensor y = normalised(x, w, b); };
  });
  row("nn.bn_56x64_b" + layout, [=] {
    Tensor x = data().requires_grad_(), w = torch::ones({64}, torch::requires_grad()),
           b = torch::zeros({64}, torch::requires_grad());
    Tensor y = normalised(x, w, b), dy = torch::rand_like(y);
    return [=] { auto g = torch::autograd::grad({y}, {x, w, b}, {dy}, /*retain_graph=*/true); };
  });
}

}  // namespace

void kernel_rows() {
  elementwise(), reductions(), products(), indexing(), transforms(), losses(), ctc();
  sparse("sparse.dot_1e4_1pct_128", true), sparse("sparse.dot_1e4_1pct_128.coo", false);
  sparse_back("sparse.dot_1e4_1pct_128_b", true);
  sparse_back("sparse.dot_1e4_1pct_128_b.coo", false);
  normalisation(".cl", at::MemoryFormat::ChannelsLast);
  normalisation(".cf", at::MemoryFormat::Contiguous);
}
