// nn_backend/inspect/axes.cpp - axes and labels around plots and histograms.
#include "nn_backend/inspect/axes.h"

#include <unistd.h>

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "core/io/file.h"
#include "core/print/decimal.h"
#include "nn_backend/inspect/terminal.h"

namespace kassette::inspect {

Range widened(double low, double high) {
  if (low < high) return {low, high};
  double pad = std::max(0.5, std::fabs(low) * 1e-3);
  return {std::max(low - pad, -DBL_MAX), std::min(high + pad, DBL_MAX)};
}

std::string label(double v) { return general_text(v, 4); }

PlotFrame frame_of(Style style, int width, int height) {
  Terminal t = terminal(STDOUT_FILENO);
  PlotFrame f;
  f.width = width ? width : std::min(t.width, 80);
  f.height = height ? height : std::clamp(t.height - 6, 4, 15);
  f.image_height = height ? height : std::max(t.height - 2, 4);
  f.glyphs = style == Style::ascii     ? Glyphs::ascii
             : style == Style::unicode ? Glyphs::unicode
             : style == Style::color   ? Glyphs::color
             : !t.unicode              ? Glyphs::ascii
             : t.color                 ? Glyphs::color
                                       : Glyphs::unicode;
  return f;
}

namespace {
std::size_t label_width(Range y) { return std::max(label(y.low).size(), label(y.high).size()); }
std::string repeated(const char* s, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += s;
  return out;
}
}  // namespace

int inner_width(const PlotFrame& frame, Range y) {
  return std::max(8, frame.width - static_cast<int>(label_width(y)) - 1);
}

std::string with_axes(int rows, int columns, Range x, Range y, bool unicode,
                      const std::function<std::string(int)>& row) {
  std::size_t width = label_width(y);
  std::string s;
  for (int r = 0; r < rows; ++r) {
    std::string at = r == 0 ? label(y.high) : r == rows - 1 ? label(y.low) : "";
    s += std::string(width - at.size(), ' ') + at + (!unicode ? "|" : at.empty() ? "│" : "┤") + row(r) + '\n';
  }
  s += std::string(width, ' ') + (unicode ? "└" + repeated("─", columns) : "+" + repeated("-", columns)) + '\n';
  std::string left = label(x.low), right = label(x.high);
  int gap = std::max(1, columns - static_cast<int>(left.size() + right.size()));
  return s + std::string(width + 1, ' ') + left + std::string(gap, ' ') + right + '\n';
}

Tensor with_axes(Range x, Range y, const char* title, const std::function<void(PixelCanvas&, const PlotBox&)>& draw) {
  constexpr int kWidth = 640, kHeight = 400;
  constexpr Rgb kInk{60, 60, 60}, kGrid{225, 225, 225};
  io::NewTensor pixels = io::new_tensor(TensorSpec(uint8, {kHeight, kWidth, 3}));
  PixelCanvas c(kWidth, kHeight, reinterpret_cast<std::uint8_t*>(pixels.data));
  std::string low = label(y.low), high = label(y.high), first = label(x.low), last = label(x.high);
  constexpr int kLetter = PixelCanvas::kLetter;
  PlotBox box{static_cast<int>(std::max(low.size(), high.size())) * kLetter + 16, 32, kWidth - 20, kHeight - 32};
  for (int i = 1; i < 4; ++i) {
    int gx = box.left + (box.right - box.left) * i / 4, gy = box.top + (box.bottom - box.top) * i / 4;
    c.fill(gx, box.top, gx + 1, box.bottom, kGrid);
    c.fill(box.left, gy, box.right, gy + 1, kGrid);
  }
  draw(c, box);
  c.fill(box.left - 1, box.top, box.left, box.bottom + 1, kInk);
  c.fill(box.left - 1, box.bottom, box.right, box.bottom + 1, kInk);
  auto wide = [](const std::string& s) { return static_cast<int>(s.size()) * kLetter; };
  c.write(box.left - 6 - wide(high), box.top - 5, high, kInk);
  c.write(box.left - 6 - wide(low), box.bottom - 5, low, kInk);
  c.write(box.left, box.bottom + 10, first, kInk);
  c.write(box.right - wide(last), box.bottom + 10, last, kInk);
  c.write(box.left, 12, title, kInk);
  return pixels.tensor;
}

}  // namespace kassette::inspect
