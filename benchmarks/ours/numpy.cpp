// Rows of np, np::linalg and nn: order, selection, elementwise functions, attention, factorisations.
#include <kassette/nn.h>
#include <kassette/numpy.h>

#include "../timer.h"
#include "rows.h"

using bench::row;
namespace np = kassette::numpy;
namespace nn = kassette::nn;

namespace {

constexpr int kMillion = 1000000;

void order() {
  row("np.sort.1e6", [] { return [x = uniform(kMillion)] { Tensor y = np::sort(x); }; });
  row("np.sort_i32.1e6", [] { return [x = integers(1 << 30, kMillion)] { Tensor y = np::sort(x); }; });
  row("np.argsort.1e6", [] { return [x = uniform(kMillion)] { Tensor y = np::argsort(x); }; });
  row("np.sort.rows1000", [] { return [x = uniform(1000, 1000)] { Tensor y = np::sort(x); }; });
  row("np.argsort.rows1000", [] { return [x = uniform(1000, 1000)] { Tensor y = np::argsort(x); }; });
  row("np.top_k10.1000x1e4", [] { return [x = uniform(1000, 10000)] { auto y = np::top_k(x, 10); }; });
}
void selection() {
  row("np.take.1e6",
      [] { return [x = uniform(kMillion), i = integers(kMillion, kMillion)] { Tensor y = np::take(x, i); }; });
  row("np.mask.1e6", [] { return [x = uniform(kMillion), m = uniform(kMillion) > 0.6] { Tensor y = x(m); }; });
  row("np.scatter_add.1e6", [] {
    return
        [x = uniform(kMillion), i = integers(kMillion, kMillion), v = uniform(kMillion)] { Tensor y = x.at(i).add(v); };
  });
  row("np.segment_sum.1e6", [] {
    return [x = uniform(kMillion), i = np::sort(integers(1000, kMillion))] { Tensor y = np::segment_sum(x, i, 1000); };
  });
  row("np.cumsum.1e6", [] { return [x = uniform(kMillion)] { Tensor y = np::cumsum(x); }; });
}
void elementwise() {
  constexpr int kMany = 10000000;
  row("np.where.1e7", [] {
    return [m = uniform(kMany) > 0.6, x = uniform(kMany), y = uniform(kMany)] { Tensor z = np::where(m, x, y); };
  });
  row("np.floor.1e7", [] { return [x = uniform(kMany) * 10] { Tensor y = np::floor(x); }; });
  row("np.erf.1e7", [] { return [x = uniform(kMany)] { Tensor y = np::erf(x); }; });
  row("np.arctan2.1e7", [] { return [x = uniform(kMany), y = uniform(kMany)] { Tensor z = np::arctan2(x, y); }; });
}
void small() {
  row("small.where",
      [] { return [m = uniform(4) > 0.6, x = uniform(4), y = uniform(4)] { Tensor z = np::where(m, x, y); }; });
  row("small.take", [] { return [x = uniform(4), i = integers(4, 4)] { Tensor y = np::take(x, i); }; });
  row("small.at_set", [] { return [x = uniform(4), v = uniform(1)[0]] { Tensor y = x.at(2).set(v); }; });
}
void products() {
  row("np.matmul.64x64x64",
      [] { return [a = uniform(64, 64, 64), b = uniform(64, 64, 64)] { Tensor c = np::matmul(a, b); }; });
  row("np.einsum.64x64x64", [] {
    return [a = uniform(64, 64, 64), b = uniform(64, 64, 64)] { Tensor c = np::einsum("bij,bjk->bik", {a, b}); };
  });
  row("np.cdist.1000x1000x64",
      [] { return [a = uniform(1000, 64), b = uniform(1000, 64)] { Tensor d = np::cdist(a, b); }; });
  row("np.cdist.3000x3000x3",
      [] { return [a = uniform(3000, 3), b = uniform(3000, 3)] { Tensor d = np::cdist(a, b); }; });
}

/// Batch 8, 512 positions, 8 heads of width 64.
Tensor heads() { return uniform(8, 512, 8, 64) - 0.6; }
void attention() {
  row("nn.attention_f",
      [] { return [q = heads(), k = heads(), v = heads()] { Tensor y = nn::dot_product_attention(q, k, v); }; });
  row("nn.attention_fb", [] {
    return [q = K::variable(heads()), k = K::variable(heads()), v = K::variable(heads()), dy = heads()] {
      Tensors g = K::gradients(K::sum(nn::dot_product_attention(q, k, v) * dy), {q, k, v});
    };
  });
  row("nn.attention_causal_f", [] {
    return
        [q = heads(), k = heads(), v = heads()] { Tensor y = nn::dot_product_attention(q, k, v, {.is_causal = true}); };
  });
}

/// Symmetric positive definite matrices (..., n, n).
Tensor definite(const Tensor& x) {
  const int n = x.shape()[-1];
  return np::matmul(x, np::matrix_transpose(x)) + n * np::eye(n, kassette::None, 0, "float32");
}
void factorisations(const std::string& tag, const Tensor& x) {
  const std::string t = "." + tag;
  row("la.solve" + t, [=] { return [a = definite(x), b = x] { Tensor y = np::linalg::solve(a, b); }; });
  row("la.cholesky" + t, [=] { return [a = definite(x)] { Tensor y = np::linalg::cholesky(a); }; });
  row("la.eigh" + t, [=] { return [a = definite(x)] { auto y = np::linalg::eigh(a); }; });
  row("la.svd" + t, [=] { return [a = x] { auto y = np::linalg::svd(a); }; });
}

}  // namespace

void numpy_rows() {
  order(), selection(), elementwise(), small(), products(), attention();
  factorisations("64", uniform(64, 64));
  factorisations("512", uniform(512, 512));
  factorisations("4096x8x8", uniform(4096, 8, 8));
}
