// PyTorch's rows of np, np::linalg and nn; see ours/numpy.cpp.
#include <torch/torch.h>

#include "../../timer.h"
#include "rows.h"

using at::Tensor;
using bench::row;

namespace {

constexpr int64_t kMillion = 1000000;

Tensor uniform(at::IntArrayRef shape) { return torch::rand(shape) + 0.1; }
Tensor places(int64_t most, int64_t n) { return torch::randint(most, {n}); }

void order() {
  row("np.sort.1e6", [] { return [x = uniform({kMillion})] { auto y = torch::sort(x); }; });
  row("np.sort_i32.1e6",
      [] { return [x = torch::randint(1 << 30, {kMillion}, torch::kInt32)] { auto y = torch::sort(x); }; });
  row("np.argsort.1e6", [] { return [x = uniform({kMillion})] { Tensor y = torch::argsort(x); }; });
  row("np.sort.rows1000", [] { return [x = uniform({1000, 1000})] { auto y = torch::sort(x); }; });
  row("np.argsort.rows1000", [] { return [x = uniform({1000, 1000})] { Tensor y = torch::argsort(x); }; });
  row("np.top_k10.1000x1e4", [] { return [x = uniform({1000, 10000})] { auto y = torch::topk(x, 10); }; });
}
void selection() {
  row("np.take.1e6",
      [] { return [x = uniform({kMillion}), i = places(kMillion, kMillion)] { Tensor y = torch::take(x, i); }; });
  row("np.mask.1e6", [] {
    return [x = uniform({kMillion}), m = uniform({kMillion}) > 0.6] { Tensor y = torch::masked_select(x, m); };
  });
  row("np.scatter_add.1e6", [] {
    return [x = uniform({kMillion}), i = places(kMillion, kMillion), v = uniform({kMillion})] {
      Tensor y = x.scatter_add(0, i, v);
    };
  });
  row("np.segment_sum.1e6", [] {
    return [x = uniform({kMillion}), i = std::get<0>(torch::sort(places(1000, kMillion)))] {
      Tensor y = torch::zeros({1000}).scatter_add_(0, i, x);
    };
  });
  row("np.cumsum.1e6", [] { return [x = uniform({kMillion})] { Tensor y = x.cumsum(0); }; });
}
void elementwise() {
  constexpr int64_t kMany = 10000000;
  row("np.where.1e7", [] {
    return
        [m = uniform({kMany}) > 0.6, x = uniform({kMany}), y = uniform({kMany})] { Tensor z = torch::where(m, x, y); };
  });
  row("np.floor.1e7", [] { return [x = uniform({kMany}) * 10] { Tensor y = x.floor(); }; });
  row("np.erf.1e7", [] { return [x = uniform({kMany})] { Tensor y = x.erf(); }; });
  row("np.arctan2.1e7", [] { return [x = uniform({kMany}), y = uniform({kMany})] { Tensor z = x.atan2(y); }; });
}
void small() {
  row("small.where", [] {
    return [m = uniform({4}) > 0.6, x = uniform({4}), y = uniform({4})] { Tensor z = torch::where(m, x, y); };
  });
  row("small.take", [] { return [x = uniform({4}), i = places(4, 4)] { Tensor y = torch::take(x, i); }; });
  row("small.at_set", [] {
    return [x = uniform({4}), v = uniform({1})[0]] {
      Tensor y = x.clone();
      y.select(0, 2).copy_(v);
    };
  });
}
void products() {
  row("np.matmul.64x64x64", [] {
    return [a = uniform({64, 64, 64}), b = uniform({64, 64, 64})] { Tensor c = a.matmul(b); };
  });
  row("np.einsum.64x64x64", [] {
    return [a = uniform({64, 64, 64}), b = uniform({64, 64, 64})] { Tensor c = torch::einsum("bij,bjk->bik", {a, b}); };
  });
  for (auto [name, n, width] :
       {std::tuple("np.cdist.1000x1000x64", 1000, 64), std::tuple("np.cdist.3000x3000x3", 3000, 3)})
    row(name, [=] { return [a = uniform({n, width}), b = uniform({n, width})] { Tensor d = torch::cdist(a, b); }; });
}

/// Batch 8, 8 heads, 512 positions, width 64: PyTorch has heads before positions.
Tensor heads() { return uniform({8, 8, 512, 64}) - 0.6; }
void attention() {
  auto forward = [](const char* name, bool causal) {
    row(name, [=] {
      return [=, q = heads(), k = heads(), v = heads()] {
        torch::NoGradGuard g;
        Tensor y = at::scaled_dot_product_attention(q, k, v, {}, 0.0, causal);
      };
    });
  };
  forward("nn.attention_f", false);
  forward("nn.attention_causal_f", true);
  row("nn.attention_fb", [] {
    return [q = heads().requires_grad_(), k = heads().requires_grad_(), v = heads().requires_grad_(), dy = heads()] {
      auto g = torch::autograd::grad({at::scaled_dot_product_attention(q, k, v)}, {q, k, v}, {dy});
    };
  });
}

Tensor definite(const Tensor& x) { return x.matmul(x.mT()) + x.size(-1) * torch::eye(x.size(-1)); }
void factorisations(const std::string& tag, const std::vector<int64_t>& shape) {
  const std::string t = "." + tag;
  row("la.solve" + t,
      [=] { return [a = definite(uniform(shape)), b = uniform(shape)] { Tensor y = at::linalg_solve(a, b); }; });
  row("la.cholesky" + t, [=] { return [a = definite(uniform(shape))] { Tensor y = at::linalg_cholesky(a); }; });
  row("la.eigh" + t, [=] { return [a = definite(uniform(shape))] { auto y = at::linalg_eigh(a); }; });
  row("la.svd" + t, [=] { return [a = uniform(shape)] { auto y = at::linalg_svd(a, /*full_matrices=*/false); }; });
}

}  // namespace

void numpy_rows() {
  order(), selection(), elementwise(), small(), products(), attention();
  factorisations("64", {64, 64});
  factorisations("512", {512, 512});
  factorisations("4096x8x8", {4096, 8, 8});
}
