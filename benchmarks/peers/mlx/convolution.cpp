// MLX's rows of convolution and pooling, channels last; see ours/convolution.cpp.
#include <functional>
#include <string>

#include <mlx/mlx.h>

#include "../../timer.h"
#include "rows.h"

namespace mx = mlx::core;
using Array = mx::array;
using Arrays = std::vector<Array>;
using bench::row;

namespace {

Array centred(mx::Shape shape) {
  Array a = mx::random::uniform(-0.5f, 0.5f, shape);
  mx::eval(a);
  return a;
}

/// f(operands), and its gradients from a cotangent that is given.
void forward_and_back(const std::string& name, const std::vector<mx::Shape>& shapes,
                      std::function<Array(const Arrays&)> f) {
  auto operands = [=] {
    Arrays all;
    for (const mx::Shape& shape : shapes) all.push_back(centred(shape));
    return all;
  };
  row(name + "_f.cl", [=] { return [=, in = operands()] { mx::eval(f(in)); }; });
  row(name + "_fb.cl", [=] {
    Arrays in = operands(), ones = {mx::ones_like(f(in))};
    mx::eval(ones);
    auto vector = [=](const Arrays& a) { return Arrays{f(a)}; };
    return [=] {
      auto [y, gradients] = mx::vjp(vector, in, ones);
      mx::eval(y), mx::eval(gradients);
    };
  });
}

}  // namespace

void convolution_rows() {
  auto conv2d = [](const char* name, mx::Shape x, mx::Shape kernel, int stride, int pad, int groups = 1) {
    forward_and_back(std::string("conv.") + name, {x, kernel}, [=](const Arrays& in) {
      return mx::conv2d(in[0], in[1], {stride, stride}, {pad, pad}, {1, 1}, groups);
    });
  };
  conv2d("c3x3_56x64", {8, 56, 56, 64}, {64, 3, 3, 64}, 1, 1);
  conv2d("c3x3_56x64_n1", {1, 56, 56, 64}, {64, 3, 3, 64}, 1, 1);
  conv2d("c7x7_112x3", {8, 112, 112, 3}, {64, 7, 7, 3}, 2, 3);
  conv2d("c3x3_28x128", {8, 28, 28, 128}, {128, 3, 3, 128}, 1, 1);
  conv2d("c1x1_14x256", {8, 14, 14, 256}, {1024, 1, 1, 256}, 1, 0);
  conv2d("dw3x3_56x64", {8, 56, 56, 64}, {64, 3, 3, 1}, 1, 1, 64);
  forward_and_back("conv.c1d_k5", {{32, 1000, 64}, {128, 5, 64}}, [](const Arrays& in) {
    return mx::conv1d(mx::pad(in[0], {{0, 0}, {4, 0}, {0, 0}}), in[1]);
  });
  forward_and_back("conv.c3d_k3", {{2, 16, 56, 56, 16}, {32, 3, 3, 3, 16}}, [](const Arrays& in) {
    return mx::conv3d(in[0], in[1], {1, 1, 1}, {1, 1, 1});
  });
  forward_and_back("conv.t4x4_28x64", {{8, 28, 28, 64}, {32, 4, 4, 64}}, [](const Arrays& in) {
    return mx::conv_transpose2d(in[0], in[1], {2, 2}, {1, 1});
  });
  const std::vector<mx::Shape> images = {{8, 56, 56, 64}};
  auto windows = [](const Array& x) { return mx::reshape(x, {8, 28, 2, 28, 2, 64}); };
  forward_and_back("pool.max2_56x64", images, [=](const Arrays& in) {
    return mx::max(windows(in[0]), std::vector<int>{2, 4});
  });
  forward_and_back("pool.avg2_56x64", images, [=](const Arrays& in) {
    return mx::mean(windows(in[0]), std::vector<int>{2, 4});
  });
}
