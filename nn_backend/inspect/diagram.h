// nn_backend/inspect/diagram.h - boxes and arrows, laid out in layers.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace kassette::inspect {

/// A box with a title, and a second line in small letters. Its kind decides its colour and border.
struct Box {
  enum Kind : unsigned char { op, variable, placeholder, constant, more };
  Kind kind;
  std::string title, detail;
  bool result = false;  // drawn with a thick border
};

/// Boxes, and the arrows between them as pairs of indices: from, to. A box comes after those from which arrows lead to
/// it.
struct Diagram {
  std::vector<Box> boxes;
  std::vector<std::pair<int, int>> arrows;
};

/// An SVG: layers from top to bottom, so that arrows lead down.
std::string svg_of(const Diagram& diagram);
/// A line for each box: "3: multiply of 1, 2  (2, 3) float32".
std::string text_of(const Diagram& diagram);

/// Words as they are written in HTML and SVG.
std::string escaped(const std::string& words);

}  // namespace kassette::inspect
