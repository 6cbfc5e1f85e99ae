// nn_backend/inspect/bars.cpp - histograms.
#include <algorithm>
#include <cmath>

#include "core/impl.h"
#include "nn_backend/inspect/axes.h"
#include "nn_backend/inspect/summary.h"

namespace kassette::inspect {
namespace {

struct Bars {
  std::vector<std::int64_t> counts;
  Range x{0, 1}, y{0, 1};
  std::int64_t nan, inf;
};
/// Returns false if there is nothing to count.
bool count(const Tensor& t, int bins, Bars& bars) {
  const TensorDesc& b = Access::desc(t);
  const std::byte* data = b.numel() ? b.data() : nullptr;
  Summary s = summarize(b, data);
  bars.nan = s.nan;
  bars.inf = s.inf;
  if (s.finite == 0) return false;
  bars.x = widened(s.min, s.max);
  bars.counts = count_bins(b, data, bars.x.low, bars.x.high, bins);
  bars.y = {0, static_cast<double>(*std::max_element(bars.counts.begin(), bars.counts.end()))};
  return true;
}

std::string left_out(const Bars& b) {
  if (!b.nan && !b.inf) return "";
  return std::to_string(b.nan) + " NaN and " + std::to_string(b.inf) + " inf left out\n";
}

}  // namespace

std::string hist_text(const Tensor& x, int bins, const PlotFrame& frame) {
  Bars bars;
  if (!count(x, bins, bars)) return kNothing;
  constexpr const char* kBlocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  int available = inner_width(frame, bars.y), per_bar = std::max(1, available / bins),
      columns = std::min(available, bins * per_bar);
  auto row = [&](int r) {
    std::string s;
    for (int i = 0; i < columns; ++i) {
      // If there are more bars than columns, a column shows the largest of its bars.
      std::int64_t begin = std::int64_t(i) * bins / columns, end = std::int64_t(i + 1) * bins / columns;
      std::int64_t n = *std::max_element(bars.counts.begin() + begin, bars.counts.begin() + std::max(end, begin + 1));
      auto eighths =
          n ? std::max(1, static_cast<int>(8.0 * frame.height * static_cast<double>(n) / bars.y.high + 0.5)) : 0;
      int here = std::clamp(eighths - 8 * (frame.height - 1 - r), 0, 8);
      s += frame.glyphs != Glyphs::ascii ? kBlocks[here] : here >= 6 ? "#" : here >= 3 ? ":" : here ? "." : " ";
    }
    while (!s.empty() && s.back() == ' ') s.pop_back();
    std::string colored;
    if (frame.glyphs != Glyphs::color || s.empty()) return s;
    set_color(colored, line_color(0));
    return colored + s + kNoColor;
  };
  return with_axes(frame.height, columns, bars.x, bars.y, frame.glyphs != Glyphs::ascii, row) + left_out(bars);
}

Tensor hist_pixels(const Tensor& x, int bins, const char* title) {
  Bars bars;
  if (!count(x, bins, bars)) return with_axes({0, 1}, {0, 1}, kNothing, [](PixelCanvas&, const PlotBox&) {});
  return with_axes(bars.x, bars.y, title, [&](PixelCanvas& c, const PlotBox& box) {
    int width = box.right - box.left, height = box.bottom - box.top;
    for (int i = 0; i < bins; ++i) {
      std::int64_t n = bars.counts[i];
      int from = box.left + width * i / bins, to = box.left + width * (i + 1) / bins;
      int tall = n ? std::max(1, static_cast<int>(height * static_cast<double>(n) / bars.y.high)) : 0;
      c.fill(from, box.bottom - tall, to > from + 2 ? to - 1 : std::max(to, from + 1), box.bottom, line_color(0));
    }
  });
}

}  // namespace kassette::inspect
