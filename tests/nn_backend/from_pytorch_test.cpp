// tests/nn_backend/from_pytorch_test.cpp - the rows of docs/from_pytorch.md, against what PyTorch computes:
// tests/data/make_pytorch_rows.py.
#include <kassette/backend.h>

#include <cmath>

#include "tests/nn_backend/page_rows.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

PageRows rows() {
  const Tensor m = input({2, 3}), p = input({3, 4}, 1), b = input({2, 3, 4}), c = input({2, 4, 5}, 2);
  const Tensor logits = input({3, 4}, 3), ids = K::constant({1, 0, 3}, "int64");
  const Tensor bits = K::constant({{0, 1, 1, 0}, {1, 0, 1, 1}, {0, 0, 1, 0}}, "float64");
  const Tensor w = K::variable(input({3, 4}, 5), "float64");
  const Tensor image = K::permute_dimensions(input({2, 3, 6, 6}), {0, 2, 3, 1});
  const auto kernel = [](const Tensor& weight) { return K::permute_dimensions(weight, {2, 3, 1, 0}); };
  const Tensor k = kernel(input({4, 3, 3, 3}, 1));
  const auto back = [](const Tensor& y) { return K::permute_dimensions(y, {0, 3, 1, 2}); };
  return {
      {"`x @ y`, `torch.matmul` of matrices", [=] { return K::dot(m, p); }},
      {"`x @ y`, `torch.bmm` of three axes and more", [=] { return matmul(b, c); }},
      {"`x.view(-1, 2)`",
       [=] {
         return K::reshape(b, {-1, 2});
       }},
      {"`x.permute(2, 0, 1)`",
       [=] {
         return K::permute_dimensions(b, {2, 0, 1});
       }},
      {"`x.unsqueeze(1)`, `x.squeeze(1)`", [=] { return K::expand_dims(K::squeeze(K::expand_dims(m, 1), 1), 1); }},
      {"`torch.cat([x, y], dim=0)`",
       [=] {
         return K::concatenate({m, 2 * m}, 0);
       }},
      {"`torch.stack([x, y])`",
       [=] {
         return K::stack({m, 2 * m});
       }},
      {"`torch.where(c, a, b)`", [=] { return K::switch_(m > 0, m, 2 * m); }},
      {"`x.sum()`, `x.mean()`, `x.sum(dim=1)`", [=] { return K::sum(b, 1); }},
      {"`x.max(dim=1)`", [=] { return K::max(b, 1); }},
      {"`x.std()`, `x.var()`", [=] { return K::std(b) * std::sqrt(24 / (24 - 1.0)); }},
      {"`x.std(correction=0)`", [=] { return K::std(b); }},
      {"`x.argmax()`", [=] { return K::argmax(K::flatten(b)); }},
      {"`x.argmax(dim=1)`", [=] { return K::argmax(b, 1); }},
      {"`x.cumsum(dim=1)`", [=] { return K::cumsum(b, 1); }},
      {"`x.clamp(a, b)`", [=] { return K::clip(b, -0.5, 0.75); }},
      {"`torch.sqrt(x)`", [=] { return K::sqrt(K::abs(b)); }},
      {"`loss.backward(); w.grad`", [=] { return K::gradients(K::sum(K::pow(w, 3)), {w})[0]; }},
      {"`F.softmax(x, dim=1)`", [=] { return K::softmax(b, 1); }},
      {"`F.log_softmax(x, dim=1)`", [=] { return b - K::logsumexp(b, 1, true); }},
      {"`F.leaky_relu(x, 0.1)`, `F.elu(x)`", [=] { return K::relu(b, 0.1); }},
      {"`F.hardsigmoid(x)`", [=] { return K::clip(b / 6 + 0.5, 0, 1); }},
      {"`F.normalize(x, dim=1)`", [=] { return K::l2_normalize(b, 1); }},
      {"`F.one_hot(i, 5)`", [=] { return K::one_hot(ids, 5); }},
      {"`F.embedding(i, w)`",
       [=] {
         return K::gather(input({5, 2}), ids);
       }},
      {"`F.mse_loss(x, t)`", [=] { return K::mean(K::square(logits - bits)); }},
      {"`F.cross_entropy(logits, ids)`",
       [=] { return K::mean(K::sparse_categorical_crossentropy(ids, logits, true)); }},
      {"`F.nll_loss(log_p, ids)`",
       [=] {
         const Tensor log_p = logits - K::logsumexp(logits, -1, true);
         return -K::mean(K::sum(K::cast(K::one_hot(ids, 4), "float64") * log_p, -1));
       }},
      {"`F.binary_cross_entropy_with_logits(x, t)`",
       [=] { return K::mean(K::binary_crossentropy(bits, logits, true)); }},
      {"`F.binary_cross_entropy(p, t)`", [=] { return K::mean(K::binary_crossentropy(bits, K::sigmoid(logits))); }},
      {"`F.conv2d(x, w, b)`", [=] { return back(K::bias_add(K::conv2d(image, k), input({4}, 2))); }},
      {"`padding=1`", [=] { return back(K::conv2d(K::spatial_2d_padding(image), k)); }},
      {"`padding=\"same\"`",
       [=] {
         return back(K::conv2d(image, k, {1, 1}, "same"));
       }},
      {"`groups=c`",
       [=] {
         const Tensor weight = input({6, 1, 3, 3}, 1);
         return back(
             K::depthwise_conv2d(image, K::permute_dimensions(K::reshape(weight, {3, -1, 3, 3}), {2, 3, 0, 1})));
       }},
      {"`F.max_pool2d(x, 2)`",
       [=] {
         return back(K::pool2d(image, {2, 2}, {2, 2}));
       }},
      {"`F.avg_pool2d(x, 3, 1, padding=1)`",
       [=] {
         return back(K::pool2d(image, {3, 3}, {1, 1}, "same", K::None, "avg"));
       }},
      {"`F.conv_transpose2d(x, w, stride=2, padding=1)`, w of 4 x 4",
       [=] {
         return back(K::conv2d_transpose(image, kernel(input({3, 4, 4, 4}, 1)), {2, 12, 12, 4}, {2, 2}, "same"));
       }},
      {"`F.interpolate(x, scale_factor=2)`", [=] { return back(K::resize_images(image, 2, 2, "channels_last")); }},
  };
}

// Rows about memory, types, devices, randomness and the form of a call, which have no number to compare.
const std::set<std::string> kWithoutNumber = {
    "`torch.tensor([[1., 2.]])`",
    "`torch.tensor(..., requires_grad=True)`, `nn.Parameter`",
    "`torch.zeros(2, 3)`",
    "`x.dtype`, `x.shape`, `x.numel()`",
    "`x.item()`, `x.tolist()`",
    "`x.to('cuda')`",
    "`create_graph=True`",
    "`x.detach()`",
    "`with torch.no_grad():`",
    "`with torch.no_grad(): w -= lr * g`",
    "`torch.allclose`, `torch.testing`",
    "`torch.zeros_like(x)`",
    "`torch.from_blob(p, {2, 3}, dtype)`",
    "`torch.profiler.profile()`",
    "`torch.autograd.detect_anomaly()`",
    "`torch.save`, `numpy.save`",
    "`F.dropout(x, p)`",
    "`x` of (n, c, h, w)",
    "`conv.weight`, (out, in, h, w); of `ConvTranspose2d`, (in, out, h, w)",
};

}  // namespace

TEST_CASE("each row of the page for users of PyTorch gives what PyTorch gives", "[sources][pytorch]") {
  check_page("docs/from_pytorch.md", "| PyTorch | kassette |", "tests/data/pytorch_rows.txt", rows(), kWithoutNumber);
}
