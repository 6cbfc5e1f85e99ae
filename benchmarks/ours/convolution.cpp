// Times convolution, pooling and resizing in both data formats, the forward pass alone and with the gradients of input
// and kernel, and a training step of a small convolutional network.
#include <functional>
#include <string>
#include <vector>

#include "../timer.h"
#include "networks.h"
#include "rows.h"

using bench::own_process;
using bench::row;

namespace {

/// `channels_last`, a shape, in a data format.
Sizes arranged(Sizes shape, const std::string& format) {
  if (format == "channels_first") {
    shape.insert(shape.begin() + 1, shape.back());
    shape.pop_back();
  }
  return shape;
}

/// f(operands), and its gradients from a cotangent of ones. `name` ends where "_f" or "_fb" and the layout follow.
template <class F>
void forward_and_back(const std::string& name, const std::vector<Sizes>& shapes, const std::string& format, F f) {
  const std::string layout = format == "channels_last" ? ".cl" : ".cf";
  auto operands = [=] {
    Tensors all;
    for (const Sizes& shape : shapes) all.push_back(centred(all.empty() ? arranged(shape, format) : shape));
    return all;
  };
  row(name + "_f" + layout, [=] { return [=, in = operands()] { Tensor y = f(in); }; });
  row(name + "_fb" + layout, [=] {
    Tensors in;
    for (const Tensor& t : operands()) in.push_back(K::variable(t));
    return [=] { Tensors g = K::gradients(f(in), in); };
  });
}

void convolutions(const std::string& format) {
  auto options = [=](kassette::Dims strides, const char* padding) {
    K::ConvOptions o;
    o.strides = strides, o.padding = padding, o.data_format = format;
    return o;
  };
  auto conv2d = [=](const std::string& name, const Sizes& x, const Sizes& kernel, int stride) {
    forward_and_back("conv." + name, {x, kernel}, format,
                     [=](const Tensors& in) { return K::conv2d(in[0], in[1], options(stride, "same")); });
  };
  conv2d("c3x3_56x64", {8, 56, 56, 64}, {3, 3, 64, 64}, 1);
  conv2d("c3x3_56x64_n1", {1, 56, 56, 64}, {3, 3, 64, 64}, 1);
  conv2d("c3x3_56x64_n64", {64, 56, 56, 64}, {3, 3, 64, 64}, 1);
  conv2d("c7x7_112x3", {8, 112, 112, 3}, {7, 7, 3, 64}, 2);
  conv2d("c3x3_28x128", {8, 28, 28, 128}, {3, 3, 128, 128}, 1);
  conv2d("c1x1_14x256", {8, 14, 14, 256}, {1, 1, 256, 1024}, 1);
  forward_and_back("conv.dw3x3_56x64", {{8, 56, 56, 64}, {3, 3, 64, 1}}, format,
                   [=](const Tensors& in) { return K::depthwise_conv2d(in[0], in[1], options(1, "same")); });
  // Keras has "causal" with the channels last alone.
  const char* padding = format == "channels_last" ? "causal" : "same";
  forward_and_back("conv.c1d_k5", {{32, 1000, 64}, {5, 64, 128}}, format,
                   [=](const Tensors& in) { return K::conv1d(in[0], in[1], options(1, padding)); });
  forward_and_back("conv.c3d_k3", {{2, 16, 56, 56, 16}, {3, 3, 3, 16, 32}}, format,
                   [=](const Tensors& in) { return K::conv3d(in[0], in[1], options(1, "same")); });
  const Sizes enlarged = arranged({8, 56, 56, 32}, format);
  forward_and_back("conv.t4x4_28x64", {{8, 28, 28, 64}, {4, 4, 32, 64}}, format,
                   [=](const Tensors& in) { return K::conv2d_transpose(in[0], in[1], enlarged, options(2, "same")); });
}

void pooling(const std::string& format) {
  const std::vector<Sizes> images = {{8, 56, 56, 64}};
  for (const char* mode : {"max", "avg"})
    forward_and_back(std::string("pool.") + mode + "2_56x64", images, format, [=](const Tensors& in) {
      return K::pool2d(in[0], {2, 2}, {2, 2}, "valid", format, mode);
    });
  forward_and_back("pool.resize2_56x64", images, format,
                   [=](const Tensors& in) { return K::resize_images(in[0], 2, 2, format, "bilinear"); });
}

void network() {
  row("train.cnn_b64", [] { return [net = Cnn()] { net.step(); }; });
  row("train.cnn_b64.fn", [] {
    Cnn net;
    return [net, f = net.function()] { Tensors out = f({net.x, net.labels}); };
  });
  own_process("mem.cnn_b64", [] {
    Cnn net;
    return bench::peak_of([&] {
      for (int i = 0; i < 3; ++i) net.step();
    });
  });
  own_process("mem.cnn_b64.fn", [] {
    Cnn net;
    kassette::Function f = net.function();
    return bench::peak_of([&] {
      for (int i = 0; i < 3; ++i) f({net.x, net.labels});
    });
  });
}

}  // namespace

void convolution_rows() {
  for (const char* format : {"channels_last", "channels_first"}) convolutions(format), pooling(format);
  network();
}
