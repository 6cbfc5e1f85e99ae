// nn_backend/inspect/diagram.cpp - boxes and arrows, laid out in layers.
//
// In the manner of Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system structures"
// (1981): a box lies one layer below the lowest that leads to it; an arrow that passes layers goes through a point in
// each; the order within layers is that of the means of neighbours, a few times up and down; then boxes move towards
// these means as far as their neighbours let them.
#include "nn_backend/inspect/diagram.h"

#include <algorithm>
#include <numeric>

#include "core/print/decimal.h"
#include "core/text.h"

namespace kassette::inspect {
namespace {

constexpr double kLetter = 7.3, kSmallLetter = 6.1;  // widths of monospaced letters of 12 and 10 pixels
constexpr double kHeight = 36, kBetween = 18, kLayer = 68, kMargin = 8;

/// UTF-8 characters.
std::size_t letters(const std::string& s) {
  return static_cast<std::size_t>(std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

/// A box, or a point that an arrow goes through.
struct Vertex {
  int layer;
  double width;
  double x = 0;  // of its middle
  std::vector<int> above, below;
};

struct Layout {
  std::vector<Vertex> vertices;          // the boxes first
  std::vector<std::vector<int>> layers;  // from left to right
  std::vector<std::vector<int>> paths;   // of each arrow: its vertices
};

double width_of(const Box& box) {
  return std::max(kLetter * static_cast<double>(letters(box.title)),
                  kSmallLetter * static_cast<double>(letters(box.detail))) +
         16;
}

void place_in_layers(const Diagram& d, Layout& l) {
  const int n = static_cast<int>(d.boxes.size());
  std::vector<int> layer(n, 0), lowest(n, -1);
  std::vector<char> led_to(n, 0);
  for (int to = 0; to < n; ++to)
    for (auto [a, b] : d.arrows)
      if (b == to) layer[to] = std::max(layer[to], layer[a] + 1), led_to[to] = 1;
  // What nothing leads to lies right above what reads it.
  for (auto [a, b] : d.arrows)
    if (!led_to[a]) lowest[a] = lowest[a] < 0 ? layer[b] - 1 : std::min(lowest[a], layer[b] - 1);
  for (int i = 0; i < n; ++i)
    if (!led_to[i] && lowest[i] > 0) layer[i] = lowest[i];
  for (int i = 0; i < n; ++i) l.vertices.push_back({layer[i], width_of(d.boxes[i]), 0, {}, {}});
  for (auto [a, b] : d.arrows) {
    std::vector<int> path = {a};
    for (int between = layer[a] + 1; between < layer[b]; ++between) {
      path.push_back(static_cast<int>(l.vertices.size()));
      l.vertices.push_back({between, 4, 0, {}, {}});
    }
    path.push_back(b);
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
      l.vertices[path[i]].below.push_back(path[i + 1]);
      l.vertices[path[i + 1]].above.push_back(path[i]);
    }
    l.paths.push_back(std::move(path));
  }
  l.layers.resize(static_cast<std::size_t>(n ? *std::max_element(layer.begin(), layer.end()) + 1 : 0));
  for (int i = 0; i < static_cast<int>(l.vertices.size()); ++i) l.layers[l.vertices[i].layer].push_back(i);
}

double mean_of(const std::vector<Vertex>& vertices, const std::vector<int>& of, double otherwise) {
  if (of.empty()) return otherwise;
  double sum = 0;
  for (int i : of) sum += vertices[i].x;
  return sum / static_cast<double>(of.size());
}

/// Side by side, as far to the left as they go.
void pack(Layout& l, const std::vector<int>& layer) {
  double at = 0;
  for (int i : layer) {
    l.vertices[i].x = at + l.vertices[i].width / 2;
    at += l.vertices[i].width + kBetween;
  }
}

void order(Layout& l) {
  for (const auto& layer : l.layers) pack(l, layer);
  constexpr int kSweeps = 8;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    const bool down = sweep % 2 == 0;
    for (std::size_t k = 0; k < l.layers.size(); ++k) {
      auto& layer = l.layers[down ? k : l.layers.size() - 1 - k];
      std::vector<std::pair<double, int>> wanted;
      for (int i : layer)
        wanted.push_back({mean_of(l.vertices, down ? l.vertices[i].above : l.vertices[i].below, l.vertices[i].x), i});
      std::stable_sort(wanted.begin(), wanted.end(), [](auto& a, auto& b) { return a.first < b.first; });
      for (std::size_t i = 0; i < layer.size(); ++i) layer[i] = wanted[i].second;
      pack(l, layer);
    }
  }
}

/// Moves the vertices of a layer towards where they want to be. Each keeps its distance from its neighbours: first from
/// left to right, then from right to left, and the mean of both keeps the order as well.
void settle(Layout& l, const std::vector<int>& layer, bool down) {
  const std::size_t n = layer.size();
  std::vector<double> wanted(n), from_left(n), from_right(n);
  for (std::size_t i = 0; i < n; ++i) {
    const Vertex& v = l.vertices[layer[i]];
    wanted[i] = mean_of(l.vertices, down ? v.above : v.below, v.x);
  }
  auto distance = [&](std::size_t a, std::size_t b) {
    return (l.vertices[layer[a]].width + l.vertices[layer[b]].width) / 2 + kBetween;
  };
  for (std::size_t i = 0; i < n; ++i)
    from_left[i] = i ? std::max(wanted[i], from_left[i - 1] + distance(i - 1, i)) : wanted[i];
  for (std::size_t i = n; i-- > 0;)
    from_right[i] = i + 1 < n ? std::min(wanted[i], from_right[i + 1] - distance(i, i + 1)) : wanted[i];
  for (std::size_t i = 0; i < n; ++i) l.vertices[layer[i]].x = (from_left[i] + from_right[i]) / 2;
}

Layout laid_out(const Diagram& d) {
  Layout l;
  place_in_layers(d, l);
  order(l);
  constexpr int kSweeps = 10;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    const bool down = sweep % 2 == 0;
    for (std::size_t k = 0; k < l.layers.size(); ++k) settle(l, l.layers[down ? k : l.layers.size() - 1 - k], down);
  }
  double left = 0;
  for (const Vertex& v : l.vertices) left = std::min(left, v.x - v.width / 2);
  for (Vertex& v : l.vertices) v.x += kMargin - left;
  return l;
}

std::string number(double v) { return fixed_text(v, 1); }
double top_of(const Vertex& v) { return kMargin + v.layer * kLayer; }

void add_box(std::string& svg, const Box& box, const Vertex& v) {
  // Okabe and Ito's colours, made light.
  static constexpr const char* kFill[] = {"#ffffff", "#cfe6f7", "#fbe3c0", "#eeeeee", "#ffffff"};
  const double top = top_of(v), left = v.x - v.width / 2;
  svg += text("<rect x=\"", number(left), "\" y=\"", number(top), "\" width=\"", number(v.width), "\" height=\"",
              number(kHeight), "\" rx=\"", box.kind == Box::op ? 5 : 14, "\" fill=\"", kFill[box.kind],
              "\" stroke=\"#555555\" stroke-width=\"", box.result ? 2.5 : 1, "\"",
              box.kind == Box::more ? " stroke-dasharray=\"3 3\"" : "", "/>");
  const double middle = top + (box.detail.empty() ? 22 : 15);
  svg +=
      text("<text x=\"", number(v.x), "\" y=\"", number(middle), "\" font-size=\"12\">", escaped(box.title), "</text>");
  if (!box.detail.empty())
    svg += text("<text x=\"", number(v.x), "\" y=\"", number(top + 29), "\" font-size=\"10\" fill=\"#555555\">",
                escaped(box.detail), "</text>");
}

void add_arrow(std::string& svg, const Layout& l, const std::vector<int>& path) {
  double x = l.vertices[path[0]].x, y = top_of(l.vertices[path[0]]) + kHeight;
  std::string line = "M" + number(x) + " " + number(y);
  for (std::size_t i = 1; i < path.size(); ++i) {
    const Vertex& v = l.vertices[path[i]];
    const bool last = i + 1 == path.size();
    const double to = last ? top_of(v) - 4 : top_of(v) + kHeight / 2, bend = (to - y) / 2;
    line += "C" + number(x) + " " + number(y + bend) + " " + number(v.x) + " " + number(to - bend) + " " + number(v.x) +
            " " + number(to);
    x = v.x;
    y = to;
  }
  svg += "<path d=\"" + line + "\" marker-end=\"url(#tip)\"/>";
}

}  // namespace

std::string escaped(const std::string& words) {
  std::string out;
  for (char c : words) out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return out;
}

std::string svg_of(const Diagram& d) {
  if (d.boxes.empty()) return "";
  const Layout l = laid_out(d);
  double width = 0;
  for (const Vertex& v : l.vertices) width = std::max(width, v.x + v.width / 2);
  const double height = kMargin * 2 + kLayer * static_cast<double>(l.layers.size() - 1) + kHeight;
  std::string svg = text(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", number(width + kMargin), "\" height=\"", number(height),
      "\" viewBox=\"0 0 ", number(width + kMargin), ' ', number(height), "\" font-family=\"monospace\">",
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>"
      "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"4\" refY=\"4\" markerWidth=\"6\" markerHeight=\"6\" "
      "orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#555555\"/></marker></defs>"
      "<g fill=\"none\" stroke=\"#555555\">");
  for (const auto& path : l.paths) add_arrow(svg, l, path);
  svg += "</g><g text-anchor=\"middle\">";
  for (std::size_t i = 0; i < d.boxes.size(); ++i) add_box(svg, d.boxes[i], l.vertices[i]);
  return svg + "</g></svg>\n";
}

std::string text_of(const Diagram& d) {
  std::string out;
  for (std::size_t i = 0; i < d.boxes.size(); ++i) {
    std::string from;
    for (auto [a, b] : d.arrows)
      if (b == static_cast<int>(i)) from += (from.empty() ? "" : ", ") + std::to_string(a);
    const Box& box = d.boxes[i];
    out += (out.empty() ? "" : "\n") + std::to_string(i) + ": " + box.title + (from.empty() ? "" : " of " + from) +
           (box.detail.empty() ? "" : "  " + box.detail) + (box.result ? "  <- result" : "");
  }
  return out;
}

}  // namespace kassette::inspect
