// examples/cnn.cpp - a small convolutional network learns to read handwritten digits, and shows the filters that it has
// found: in the terminal, and as cnn_filters.png or the file that is named.
#include <kassette/inspect.h>
#include <kassette/io.h>

#include <cstdio>
#include <iostream>
#include <string>

#include "digits_cnn.h"

namespace K = kassette::backend;
using kassette::Tensor;

// (rows, columns, input channels, filters) as pictures (filters, rows, columns), each from black, its least, to white.
Tensor filters(const Tensor& kernel) {
  Tensor each = K::permute_dimensions(kernel(kassette::all, kassette::all, 0), {2, 0, 1});
  Tensor least = K::min(each, {1, 2}, /*keepdims=*/true), most = K::max(each, {1, 2}, /*keepdims=*/true);
  return (each - least) / (most - least);
}

int main(int argc, char** argv) {
  std::mt19937 random(3);
  K::set_random_seed(1);
  const Digits digits(random);
  const DigitsCnn net;
  const Tensor x = images(digits.x_test);
  std::printf("epoch    loss  held-out accuracy\n");
  train(net, digits, 40, random, shifted, [&](int epoch, double loss) {
    if (epoch % 5 == 0) std::printf("%5d %7.4f  %6.2f %%\n", epoch, loss, 100 * accuracy(net, x, digits.y_test));
  });

  const std::string file = argc > 1 ? argv[1] : "cnn_filters.png";
  const kassette::Picture picture = kassette::imshow(mosaic(filters(net.strokes.kernel), 8));
  picture.save(file);
  std::cout << "\nwhat the first layer looks for, also in " << file << ":\n" << picture << '\n';

  const double right = accuracy(net, x, digits.y_test);
  std::printf("%.2f %% of the held-out digits are read right\n", 100 * right);
  return right >= 0.985 && kassette::load_png(file).shape() == kassette::Shape{160, 320, 3} ? 0 : 1;
}
