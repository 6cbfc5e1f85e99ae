// nn_backend/inspect/image.cpp - matrices and pictures as pixels, and pixels as characters.
#include <algorithm>
#include <cmath>

#include "core/convert.h"
#include "core/io/file.h"
#include "nn_backend/inspect/drawing.h"
#include "nn_backend/inspect/summary.h"

namespace kassette::inspect {
namespace {

std::uint8_t level(double share) { return share > 0 ? static_cast<std::uint8_t>(std::min(share, 1.0) * 255 + 0.5) : 0; }

/// Scales an RGB image down by averaging.
struct Shrunk {
  int width, height;
  std::vector<Rgb> pixels;
  Rgb at(int y, int x) const { return y < height ? pixels[y * width + x] : Rgb{0, 0, 0}; }
};
Shrunk shrunk(const std::uint8_t* rgb, std::int64_t h, std::int64_t w, int most_rows, int most_columns) {
  double by = std::max({1.0, static_cast<double>(w) / most_columns, static_cast<double>(h) / most_rows});
  Shrunk s{std::max(1, static_cast<int>(static_cast<double>(w) / by)),
           std::max(1, static_cast<int>(static_cast<double>(h) / by)),
           {}};
  for (std::int64_t y = 0; y < s.height; ++y)
    for (std::int64_t x = 0; x < s.width; ++x) {
      std::int64_t y0 = y * h / s.height, y1 = (y + 1) * h / s.height, x0 = x * w / s.width, x1 = (x + 1) * w / s.width;
      std::int64_t sum[3] = {}, n = (y1 - y0) * (x1 - x0);
      for (std::int64_t i = y0; i < y1; ++i)
        for (std::int64_t j = x0; j < x1; ++j)
          for (int c = 0; c < 3; ++c) sum[c] += rgb[3 * (i * w + j) + c];
      auto mean = [&](int c) { return static_cast<std::uint8_t>((sum[c] + n / 2) / n); };
      s.pixels.push_back({mean(0), mean(1), mean(2)});
    }
  return s;
}

bool same(Rgb a, Rgb b) { return a.r == b.r && a.g == b.g && a.b == b.b; }

/// Shows two rows of pixels as a row of half-block characters.
std::string colored_row(const Shrunk& s, int y) {
  std::string out;
  Rgb top{}, bottom{};
  for (int x = 0; x < s.width; ++x) {
    Rgb t = s.at(y, x), b = s.at(y + 1, x);
    if (x == 0 || !same(t, top)) set_color(out, top = t);
    if (y + 1 < s.height && (x == 0 || !same(b, bottom))) set_background(out, bottom = b);
    out += "▀";
  }
  return out + kNoColor + '\n';
}

/// Shows two rows of pixels as a row of characters; the denser the character, the lighter the pixels.
std::string shaded_row(const Shrunk& s, int y, bool unicode) {
  constexpr const char* kShades[] = {" ", "░", "▒", "▓", "█"};
  constexpr const char* kSigns[] = {" ", ".", ":", "-", "=", "+", "*", "#", "%", "@"};
  std::string out;
  for (int x = 0; x < s.width; ++x) {
    double light = 0;
    int rows = y + 1 < s.height ? 2 : 1;
    for (int i = 0; i < rows; ++i) {
      Rgb c = s.at(y + i, x);
      light += (0.299 * c.r + 0.587 * c.g + 0.114 * c.b) / 255 / rows;
    }
    out += unicode ? kShades[std::lround(light * 4)] : kSigns[std::lround(light * 9)];
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out + '\n';
}

}  // namespace

Tensor image_pixels(const Tensor& image) {
  const TensorDesc& b = Access::desc(image);
  std::int64_t h = b.dims[0], w = b.dims[1], channels = b.rank == 3 ? b.dims[2] : 1;
  io::NewTensor out = io::new_tensor(TensorSpec(uint8, {h, w, 3}));
  if (h * w == 0) return out.tensor;
  auto* to = reinterpret_cast<std::uint8_t*>(out.data);
  Summary s = channels == 1 ? summarize(b, b.data()) : Summary();
  dispatch(b.dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    auto* from = reinterpret_cast<const T*>(b.data());
    auto bright = [&](T v) -> double {
      double d = convert_one<double>(v);
      return std::is_same_v<T, std::uint8_t> ? d / 255 : std::is_same_v<T, std::uint16_t> ? d / 65535 : d;
    };
    for (std::int64_t i = 0; i < h * w; ++i, to += 3) {
      if (channels == 1) {
        double v = convert_one<double>(from[i]);
        to[0] = to[1] = to[2] = v != v ? 0 : v - v != 0 ? (v > 0 ? 255 : 0) : level(fraction(v, s.min, s.max));
        continue;
      }
      // Transparent images are shown on white.
      double alpha = channels == 4 ? std::clamp(bright(from[i * 4 + 3]), 0.0, 1.0) : 1;
      for (int c = 0; c < 3; ++c) to[c] = level(alpha * std::min(bright(from[i * channels + c]), 1.0) + 1 - alpha);
    }
  });
  return out.tensor;
}

std::string image_text(const Tensor& image, const PlotFrame& frame) {
  Tensor pixels = image_pixels(image);
  std::int64_t h = pixels.shape()[0], w = pixels.shape()[1];
  if (h * w == 0) return "nothing to draw: no element";
  Shrunk s = shrunk(pixels.data<std::uint8_t>(), h, w, 2 * frame.image_height, frame.width);
  std::string out;
  for (int y = 0; y < s.height; y += 2)
    out += frame.glyphs == Glyphs::color ? colored_row(s, y) : shaded_row(s, y, frame.glyphs == Glyphs::unicode);
  return out;
}

}  // namespace kassette::inspect
