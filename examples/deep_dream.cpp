// examples/deep_dream.cpp - what a network that reads digits would like to see: pictures that excite each of its
// filters (Erhan et al. 2009), and a page of digits that it exaggerates, size by size (Mordvintsev, Olah and Tyka
// 2015). Saves both, as dream_filters.png and deep_dream.png, or in the folder that is named.
#include <kassette/inspect.h>

#include <cstdio>
#include <functional>
#include <iostream>
#include <string>

#include "digits_cnn.h"

namespace K = kassette::backend;
using kassette::slice;
using kassette::Tensor;
using kassette::Tensors;

// A function of pictures (n, rows, columns, 1): their `objective`, and the pictures after a step of gradient ascent on
// it.
kassette::Function ascent(const std::function<Tensor(const Tensor&)>& objective, double step) {
  Tensor x = K::placeholder({K::None, K::None, K::None, 1}), value = objective(x), g = K::gradients(value, {x})[0];
  Tensor strength = K::sqrt(K::mean(K::square(g), {1, 2, 3}, /*keepdims=*/true));
  return K::function({x}, {value, K::clip(x + step * g / (strength + K::epsilon()), 0, 1)});
}

// Takes `steps` steps of gradient ascent and prints the first and the last value; false if a step did not raise it.
bool climb(const kassette::Function& up, Tensor& x, int steps) {
  bool rises = true;
  double before = -1;
  for (int i = 0; i < steps; ++i) {
    Tensors out = up({x});
    const double now = out[0].item<double>();
    rises = rises && now > before;
    if (i == 0 || i == steps - 1) std::printf("%s%.4f", i == 0 ? "" : " -> ", now);
    before = now, x = out[1];
  }
  std::puts(rises ? "" : ", not at every step");
  return rises;
}

int main(int argc, char** argv) {
  std::mt19937 random(3);
  K::set_random_seed(1);
  const Digits digits(random);
  const DigitsCnn net;
  train(net, digits, 20, random, shifted, [](int, double) {});

  // A picture for each of the 64 filters, all of them at once: picture i is to excite filter i.
  std::printf("what excites the filters: ");
  Tensor wishes = K::random_uniform({64, 12, 12, 1}, 0.4, 0.6);
  bool rises = climb(ascent(
                         [&](const Tensor& x) {
                           return K::sum(K::mean(net.features(x), {1, 2}) * K::eye(64)) / 64.0;
                         },
                         0.05),
                     wishes, 20);

  // A page of digits: whatever the network sees in it, let it see more of that; then the same at twice the size.
  Tensor page = K::reshape(mosaic(K::squeeze(images(digits.x_test[slice(0, 32)]), -1), 8, 1), {1, 40, 80, 1});
  auto more = ascent([&](const Tensor& x) { return K::mean(K::square(net.features(x))); }, 0.03);
  for (int octave = 0; octave < 3; ++octave) {
    if (octave > 0) page = K::resize_images(page, 2, 2, "channels_last", "bilinear");
    std::printf("the dream at %3d x %3d: ", int(page.shape()[1]), int(page.shape()[2]));
    rises = climb(more, page, 10) && rises;
  }

  const std::string folder = argc > 1 ? argv[1] + std::string("/") : "";
  const kassette::Picture filters = kassette::imshow(mosaic(K::squeeze(wishes, -1), 16, 3));
  const kassette::Picture dream = kassette::imshow(K::squeeze(page[0], -1));
  filters.save(folder + "dream_filters.png"), dream.save(folder + "deep_dream.png");
  std::cout << '\n' << dream << '\n';
  return rises ? 0 : 1;
}
