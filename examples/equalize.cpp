// examples/equalize.cpp - histogram equalisation of a picture: grey values are spread so that each range of them is
// used as often. `equalize in.png out.png`; without arguments it makes a dark picture itself.
#include <cstdio>

#include <kassette/io.h>
#include <kassette/numpy.h>

namespace np = kassette::numpy;
using kassette::Tensor;

/// The picture of uint8 (rows, columns), or with colours behind, with its values spread. Colours keep their ratio.
Tensor equalized(const Tensor& picture) {
  const Tensor grey = picture.ndim() == 3 ? np::astype(np::rint(np::mean(picture, -1)), "uint8") : picture;
  const Tensor counts = np::bincount(np::ravel(grey), {.minlength = 256});
  const Tensor below = np::cumsum(counts);
  const Tensor first = np::min(np::where(below > 0, below, below[-1]));
  // The share of the pixels that are darker, as a grey value: a table of 256.
  const Tensor share = np::astype(below - first, "float32") / np::maximum(np::astype(below[-1] - first, "float32"), 1);
  const Tensor table = np::astype(np::rint(np::clip(share, 0, 1) * 255), "uint8");
  if (picture.ndim() != 3) return np::take(table, np::astype(picture, "int32"));
  const Tensor wanted = np::astype(np::take(table, np::astype(grey, "int32")), "float32");
  const Tensor scale = wanted / np::maximum(np::astype(grey, "float32"), 1);
  return np::astype(np::clip(np::rint(np::astype(picture, "float32") * np::expand_dims(scale, -1)), 0, 255), "uint8");
}

/// How evenly the values are used: 0 for one value, 8 bits for all alike.
double entropy(const Tensor& grey) {
  const Tensor counts = np::astype(np::bincount(np::ravel(grey), {.minlength = 256}), "float32");
  const Tensor p = counts / np::sum(counts);
  return -np::sum(np::where(p > 0, p * np::log2(np::where(p > 0, p, 1)), 0)).item<double>();
}

int main(int n, char** arguments) {
  Tensor picture;
  if (n > 2) {
    picture = kassette::load_png(arguments[1]);
  } else {  // two soft lights in the dark
    const auto at = np::meshgrid({np::linspace(-1, 1, 160), np::linspace(-1, 1, 120)});
    auto light = [&](double x, double y) { return np::exp(-8 * (np::square(at[0] - x) + np::square(at[1] - y))); };
    picture = np::astype(np::rint(60 * (light(-0.4, 0.2) + 0.5 * light(0.5, -0.3)) + 8), "uint8");
  }
  const Tensor better = equalized(picture);
  if (n > 2) kassette::save_png(arguments[2], better);
  const Tensor before = np::percentile(np::astype(picture, "float32"), {1, 50, 99}),
               after = np::percentile(np::astype(better, "float32"), {1, 50, 99});
  auto show = [](const char* name, const Tensor& t) {
    std::printf("%s: the darkest hundredth up to %.0f, half up to %.0f, all but a hundredth up to %.0f\n", name,
                t[0].item<double>(), t[1].item<double>(), t[2].item<double>());
  };
  show("before", before);
  show("after ", after);
  if (n > 2) return 0;
  std::printf("bits a pixel: %.2f, then %.2f\n", entropy(picture), entropy(better));
  return after[2].item<double>() - after[0].item<double>() > 200 ? 0 : 1;
}
