// PyTorch's rows of convolution and pooling; see ours/convolution.cpp.
#include <string>
#include <vector>

#include <torch/torch.h>

#include "../../timer.h"
#include "rows.h"

using at::Tensor;
using bench::own_process;
using bench::row;
using Tensors = std::vector<Tensor>;
using Sizes = std::vector<int64_t>;

namespace {

bool last = true;  // the layout of the rows that are being made

Tensor centred(const Sizes& shape) {
  Tensor t = torch::rand(shape) - 0.5;
  if (!last || shape.size() < 4) return t;
  return t.contiguous(shape.size() == 5 ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::ChannelsLast);
}

/// f(operands), and its gradients from a cotangent of ones. Shapes are (batch, channels, space).
template <class F>
void forward_and_back(const std::string& name, const std::vector<Sizes>& shapes, F f) {
  const bool channels_last = last;
  const std::string layout = last ? ".cl" : ".cf";
  auto operands = [=](bool tracked) {
    last = channels_last;
    Tensors all;
    for (const Sizes& shape : shapes) all.push_back(centred(shape).requires_grad_(tracked));
    return all;
  };
  row(name + "_f" + layout, [=] {
    return [=, in = operands(false)] {
      torch::NoGradGuard unrecorded;
      Tensor y = f(in);
    };
  });
  row(name + "_fb" + layout, [=] {
    Tensors in = operands(true);
    Tensor ones = torch::ones_like(f(in));
    return [=] { auto g = torch::autograd::grad({f(in)}, in, {ones}); };
  });
}

void convolutions() {
  auto conv2d = [](const std::string& name, const Sizes& x, const Sizes& kernel, int64_t stride, int64_t pad) {
    forward_and_back("conv." + name, {x, kernel},
                     [=](const Tensors& in) { return torch::conv2d(in[0], in[1], {}, stride, pad); });
  };
  conv2d("c3x3_56x64", {8, 64, 56, 56}, {64, 64, 3, 3}, 1, 1);
  conv2d("c3x3_56x64_n1", {1, 64, 56, 56}, {64, 64, 3, 3}, 1, 1);
  conv2d("c3x3_56x64_n64", {64, 64, 56, 56}, {64, 64, 3, 3}, 1, 1);
  conv2d("c7x7_112x3", {8, 3, 112, 112}, {64, 3, 7, 7}, 2, 3);
  conv2d("c3x3_28x128", {8, 128, 28, 28}, {128, 128, 3, 3}, 1, 1);
  conv2d("c1x1_14x256", {8, 256, 14, 14}, {1024, 256, 1, 1}, 1, 0);
  forward_and_back("conv.dw3x3_56x64", {{8, 64, 56, 56}, {64, 1, 3, 3}},
                   [](const Tensors& in) { return torch::conv2d(in[0], in[1], {}, 1, 1, 1, /*groups=*/64); });
  if (last)  // a view with the channels in the middle: there is no channels-last conv1d
    forward_and_back("conv.c1d_k5", {{32, 1000, 64}, {128, 64, 5}}, [](const Tensors& in) {
      Tensor x = torch::constant_pad_nd(in[0].transpose(1, 2), {4, 0});
      return torch::conv1d(x, in[1]).transpose(1, 2);
    });
  else
    forward_and_back("conv.c1d_k5", {{32, 64, 1000}, {128, 64, 5}},
                     [](const Tensors& in) { return torch::conv1d(in[0], in[1], {}, 1, 2); });
  forward_and_back("conv.c3d_k3", {{2, 16, 16, 56, 56}, {32, 16, 3, 3, 3}},
                   [](const Tensors& in) { return torch::conv3d(in[0], in[1], {}, 1, 1); });
  forward_and_back("conv.t4x4_28x64", {{8, 64, 28, 28}, {64, 32, 4, 4}},
                   [](const Tensors& in) { return torch::conv_transpose2d(in[0], in[1], {}, 2, 1); });
}

void pooling() {
  auto images = [](const char* name, auto f) {
    forward_and_back(std::string("pool.") + name, {{8, 64, 56, 56}}, [=](const Tensors& in) { return f(in[0]); });
  };
  images("max2_56x64", [](const Tensor& x) { return torch::max_pool2d(x, 2); });
  images("avg2_56x64", [](const Tensor& x) { return torch::avg_pool2d(x, 2); });
  images("resize2_56x64", [](const Tensor& x) { return torch::upsample_bilinear2d(x, {112, 112}, false); });
}

/// One step of the network, channels first or last.
auto cnn_step(bool channels_last) {
  last = channels_last;
  Tensors parameters;
  for (const Sizes& shape : std::vector<Sizes>{{32, 1, 3, 3}, {64, 32, 3, 3}, {128, 1600}, {10, 128}}) {
    parameters.push_back((centred(shape) * 0.1).requires_grad_());
    parameters.push_back(torch::zeros(shape[0]).requires_grad_());
  }
  Tensor x = centred({64, 1, 28, 28}) + 0.6, labels = torch::randint(10, {64});
  return [=] {
    const Tensors& p = parameters;
    Tensor h = torch::max_pool2d(torch::relu(torch::conv2d(x, p[0], p[1])), 2);
    h = torch::max_pool2d(torch::relu(torch::conv2d(h, p[2], p[3])), 2);
    h = torch::relu(torch::linear(h.reshape({64, 1600}), p[4], p[5]));
    Tensor loss = torch::cross_entropy_loss(torch::linear(h, p[6], p[7]), labels);
    auto gradients = torch::autograd::grad({loss}, parameters);
    torch::NoGradGuard unrecorded;
    for (size_t i = 0; i < p.size(); ++i) Tensor(p[i]).sub_(gradients[i], 0.01);
  };
}

}  // namespace

void convolution_rows() {
  for (bool layout : {true, false}) last = layout, convolutions(), pooling();
  for (bool layout : {true, false}) {  // the layout that PyTorch has by default is the faster one
    const std::string end = layout ? ".cl" : "";
    row("train.cnn_b64" + end, [=] { return cnn_step(layout); });
    own_process("mem.cnn_b64" + end, [=] {
      auto step = cnn_step(layout);
      return bench::peak_of([&] {
        for (int i = 0; i < 3; ++i) step();
      });
    });
  }
}
