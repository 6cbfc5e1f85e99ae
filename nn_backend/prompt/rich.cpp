// nn_backend/prompt/rich.cpp - pictures as PNG, drawings as SVG.
#include <png.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/text.h"
#include "nn_backend/prompt/front_end.h"

namespace kassette::repl {
namespace {

/// Pixels of (height, width, channels), uint8.
struct Pixels {
  std::int64_t height, width, channels;
  const std::uint8_t* data;
};

/// A small image with each pixel as a square of several, so that it can be seen; empty where it is large enough.
std::vector<std::uint8_t> enlarged(Pixels& p) {
  constexpr std::int64_t kSide = 240;
  const std::int64_t times = kSide / std::max<std::int64_t>({p.height, p.width, 1});
  if (times < 2) return {};
  std::vector<std::uint8_t> out(static_cast<std::size_t>(p.height * p.width * p.channels * times * times));
  std::uint8_t* to = out.data();
  for (std::int64_t y = 0; y < p.height * times; ++y)
    for (std::int64_t x = 0; x < p.width * times; ++x, to += p.channels)
      std::memcpy(to, p.data + (y / times * p.width + x / times) * p.channels, static_cast<std::size_t>(p.channels));
  p = {p.height * times, p.width * times, p.channels, out.data()};
  return out;
}

std::string png_of(const Pixels& p) {
  constexpr png_uint_32 kFormats[] = {0, PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB, PNG_FORMAT_RGBA};
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(p.height);
  image.width = static_cast<png_uint_32>(p.width);
  image.format = kFormats[p.channels];
  std::string bytes(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t size = bytes.size();
  if (!png_image_write_to_memory(&image, bytes.data(), &size, 0, p.data, 0, nullptr))
    fail<RuntimeError>({"display"}, "libpng: ", image.message);
  bytes.resize(size);
  return bytes;
}

}  // namespace

std::string png_of(const Picture& picture) {
  if (picture.text().empty()) return "";
  const Tensor image = picture.pixels();
  Pixels pixels = {image.shape()[0], image.shape()[1], image.shape()[2], image.data<std::uint8_t>()};
  const std::vector<std::uint8_t> larger = enlarged(pixels);
  return png_of(pixels);
}

void add_rich(const Picture& picture, Forms& forms) {
  if (std::string png = png_of(picture); !png.empty()) forms.add("image/png", std::move(png));
}

void add_rich(const Drawing& drawing, Forms& forms) {
  const Text svg = drawing.svg();
  if (!svg.empty()) forms.add("image/svg+xml", svg.c_str());
}

}  // namespace kassette::repl
