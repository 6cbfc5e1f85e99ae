// nn_backend/inspect/lines.cpp - line plots.
#include <algorithm>
#include <cmath>

#include "core/convert.h"
#include "nn_backend/inspect/axes.h"

namespace kassette::inspect {
namespace {

/// The points of each line of a (n, k) to draw. Long lines are reduced to the minimum and maximum of each of some
/// thousand stretches, which looks the same.
struct Line {
  std::vector<double> x, y;
};
struct Lines {
  std::vector<Line> lines;
  Range x{INFINITY, -INFINITY}, y{INFINITY, -INFINITY};
  bool any() const { return x.low <= x.high; }
};
constexpr std::int64_t kStretches = 4096;

void take_in(Range& r, double v) {
  r.low = std::min(r.low, v);
  r.high = std::max(r.high, v);
}

template <class T>
Line thinned(const T* y, std::int64_t n, std::int64_t step) {
  Line line;
  std::int64_t length = (n + kStretches - 1) / kStretches;
  for (std::int64_t begin = 0; begin < n; begin += length) {
    std::int64_t least = -1, largest = -1;
    double low = 0, high = 0;
    for (std::int64_t i = begin; i < std::min(n, begin + length); ++i) {
      double v = convert_one<double>(y[i * step]);
      if (!(v - v == 0)) continue;
      if (least < 0 || v < low) low = v, least = i;
      if (largest < 0 || v > high) high = v, largest = i;
    }
    if (least < 0) {  // a gap
      line.x.push_back(static_cast<double>(begin));
      line.y.push_back(NAN);
      continue;
    }
    bool rising = least < largest;
    line.x.insert(line.x.end(),
                  {static_cast<double>(rising ? least : largest), static_cast<double>(rising ? largest : least)});
    line.y.insert(line.y.end(), {rising ? low : high, rising ? high : low});
  }
  return line;
}

Lines lines_of(const Tensor& x, const Tensor& y) {
  Lines all;
  Shape s = y.shape();
  std::int64_t n = s[0], k = s.rank() == 2 ? std::int64_t(s[1]) : 1;
  Values<double> xs = (x.defined() ? x : y[slice(0, 0)]).to_vector<double>();
  dispatch(y.dtype(), [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    auto* data = static_cast<const T*>(y.data(y.dtype()));
    for (std::int64_t j = 0; j < k; ++j) {
      Line line;
      if (!x.defined() && n > 8 * kStretches) line = thinned(data + j, n, k);
      else
        for (std::int64_t i = 0; i < n; ++i) {
          line.x.push_back(x.defined() ? xs[i] : static_cast<double>(i));
          line.y.push_back(convert_one<double>(data[i * k + j]));
        }
      all.lines.push_back(std::move(line));
    }
  });
  for (const Line& l : all.lines)
    for (std::size_t i = 0; i < l.x.size(); ++i)
      if (std::isfinite(l.x[i]) && std::isfinite(l.y[i])) {
        take_in(all.x, l.x[i]);
        take_in(all.y, l.y[i]);
      }
  return all;
}

double share(double v, Range r) { return std::clamp((v / 2 - r.low / 2) / (r.high / 2 - r.low / 2), 0.0, 1.0); }

/// Joins neighbouring points by lines, with gaps at elements that are not finite. Calls dot(line, x, y) in a field of
/// that size, y from the top.
template <class F>
void trace(const Lines& lines, Range xr, Range yr, int width, int height, F&& dot) {
  for (std::size_t j = 0; j < lines.lines.size(); ++j) {
    const Line& l = lines.lines[j];
    bool joined = false;
    int x0 = 0, y0 = 0;
    for (std::size_t i = 0; i < l.x.size(); ++i) {
      if (!std::isfinite(l.x[i]) || !std::isfinite(l.y[i])) {
        joined = false;
        continue;
      }
      int x = static_cast<int>(std::lround(share(l.x[i], xr) * (width - 1))),
          y = height - 1 - static_cast<int>(std::lround(share(l.y[i], yr) * (height - 1)));
      draw_line(joined ? x0 : x, joined ? y0 : y, x, y, [&](int a, int b) { dot(static_cast<int>(j), a, b); });
      x0 = x;
      y0 = y;
      joined = true;
    }
  }
}

}  // namespace

std::string plot_text(const Tensor& x, const Tensor& y, const PlotFrame& frame) {
  Lines lines = lines_of(x, y);
  if (!lines.any()) return kNothing;
  Range xr = widened(lines.x.low, lines.x.high), yr = widened(lines.y.low, lines.y.high);
  DotCanvas canvas(inner_width(frame, yr), frame.height);
  trace(lines, xr, yr, canvas.width(), canvas.height(), [&](int line, int a, int b) { canvas.dot(a, b, line); });
  return with_axes(frame.height, canvas.width() / 2, xr, yr, frame.glyphs != Glyphs::ascii,
                   [&](int r) { return canvas.row(r, frame.glyphs); });
}

Tensor plot_pixels(const Tensor& x, const Tensor& y, const char* title) {
  Lines lines = lines_of(x, y);
  if (!lines.any()) return with_axes({0, 1}, {0, 1}, kNothing, [](PixelCanvas&, const PlotBox&) {});
  Range xr = widened(lines.x.low, lines.x.high), yr = widened(lines.y.low, lines.y.high);
  return with_axes(xr, yr, title, [&](PixelCanvas& c, const PlotBox& box) {
    trace(lines, xr, yr, box.right - box.left, box.bottom - box.top, [&](int line, int a, int b) {
      c.fill(box.left + a, box.top + b, box.left + a + 2, box.top + b + 2, line_color(line));
    });
  });
}

}  // namespace kassette::inspect
