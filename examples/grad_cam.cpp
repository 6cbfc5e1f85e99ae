// examples/grad_cam.cpp - a network that was only told which digit is in a noisy picture also knows where it is:
// Grad-CAM (Selvaraju et al. 2017), and a saliency map (Simonyan, Vedaldi and Zisserman 2013), in the terminal, and as
// grad_cam.png or the file that is named.
#include <kassette/inspect.h>

#include <cstdio>
#include <iostream>
#include <string>

#include "digits_cnn.h"

namespace K = kassette::backend;
using kassette::slice;
using kassette::Tensor;
using kassette::Tensors;

constexpr int kSize = 24;  // of a picture; a digit has 8

// Reads a digit anywhere: how strong each shape is where it is strongest makes the scores.
struct Finder {
  Convolution strokes{1, 32}, shapes{32, 64};
  Dense scores{64, 10};
  Tensors weights = {strokes.kernel, strokes.bias, shapes.kernel, shapes.bias, scores.kernel, scores.bias};

  Tensor features(const Tensor& x) const { return shapes(K::pool2d(strokes(x), {2, 2}, {2, 2})); }
  Tensor classify(const Tensor& features) const { return scores(K::max(features, {1, 2})); }
  Tensor operator()(const Tensor& x) const { return classify(features(x)); }
};

// Digits at a place in larger pictures, under noise.
Tensor placed(const Tensor& digits, int row, int column) {
  Tensor x = K::spatial_2d_padding(digits, {{row, kSize - 8 - row}, {column, kSize - 8 - column}});
  return K::clip(x + K::random_uniform(K::shape(x), 0, 0.4), 0, 1);
}
Tensor anywhere(const Tensor& digits, std::mt19937& random) {
  return placed(digits, int(random() % (kSize - 7)), int(random() % (kSize - 7)));
}

// Maps (n, rows, columns, 1) as (n, rows, columns), the largest of each 1.
Tensor bright(const Tensor& maps) {
  Tensor flat = K::squeeze(maps, -1);
  return flat / K::maximum(K::max(flat, {1, 2}, /*keepdims=*/true), K::epsilon());
}

// Where those features are active that speak for the class.
Tensor grad_cam(const Finder& net, const Tensor& x, const Tensor& classes) {
  Tensor features = net.features(x), score = K::sum(net.classify(features) * K::one_hot(classes, 10));
  Tensor importance = K::mean(K::gradients(score, {features})[0], {1, 2}, /*keepdims=*/true);
  Tensor coarse = K::relu(K::sum(importance * features, -1, /*keepdims=*/true));
  return bright(K::resize_images(coarse, 2, 2, "channels_last", "bilinear"));
}

// Which pixels change the score of the class most.
Tensor saliency(const Finder& net, const Tensor& x, const Tensor& classes) {
  Tensor pixels = K::variable(x), score = K::sum(net(pixels) * K::one_hot(classes, 10));
  return bright(K::abs(K::gradients(score, {pixels})[0]));
}

// How many of the maps (n, kSize, kSize) are brightest on the digit, whose corner is at (row, column).
int on_the_digit(const Tensor& maps, int row, int column) {
  int count = 0;
  for (int place : K::argmax(K::batch_flatten(maps)).to_vector<int>()) {
    const int r = place / kSize - row, c = place % kSize - column;
    count += r >= 0 && r < 8 && c >= 0 && c < 8;
  }
  return count;
}

// Pictures side by side, in red where the maps are bright.
Tensor painted(const Tensor& pictures, const Tensor& maps) {
  Tensor ink = mosaic(pictures, 5, 4), red = mosaic(maps, 5, 4);
  return K::stack({K::maximum(ink, red), ink * (1.0 - red), ink * (1.0 - red)}, -1);
}

int main(int argc, char** argv) {
  std::mt19937 random(3);
  K::set_random_seed(1);
  const Digits digits(random);
  const Finder net;
  std::printf("epoch    loss\n");
  train(net, digits, 20, random, anywhere, [](int epoch, double loss) {
    if (epoch % 5 == 0) std::printf("%5d %7.4f\n", epoch, loss);
  });

  // Held-out digits, 36 at a time at places that the network was never told.
  Tensors pictures, heat, sensitive;
  double right = 0, by_heat = 0, by_saliency = 0;
  for (int first = 0; first < 360; first += 36) {
    const int row = int(random() % (kSize - 7)), column = int(random() % (kSize - 7));
    const Tensor x = placed(images(digits.x_test[slice(first, first + 36)]), row, column), said = K::argmax(net(x));
    const Tensor cam = grad_cam(net, x, said), map = saliency(net, x, said);
    right += 36 * accuracy(net, x, digits.y_test[slice(first, first + 36)]);
    by_heat += on_the_digit(cam, row, column);
    by_saliency += on_the_digit(map, row, column);
    if (pictures.size() < 5)
      pictures.push_back(K::squeeze(x, -1)[0]), heat.push_back(cam[0]), sensitive.push_back(map[0]);
  }

  const std::string file = argc > 1 ? argv[1] : "grad_cam.png";
  const Tensor plain = K::stack(pictures);
  const kassette::Picture picture = kassette::imshow(K::concatenate(
      {painted(plain, 0.0 * plain), painted(plain, K::stack(heat)), painted(plain, K::stack(sensitive))}, 0));
  picture.save(file);
  std::cout << "\npictures, Grad-CAM and saliency, also in " << file << ":\n" << picture << "\n\n";
  std::printf(
      "of 360 held-out digits, %.0f are read right; the map is brightest on the digit in %.0f (Grad-CAM) and %.0f (saliency)\n",
      right, by_heat, by_saliency);
  return right > 330 && by_heat > 270 && by_saliency > 320 ? 0 : 1;  // by chance, 40
}
