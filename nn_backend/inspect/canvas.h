// nn_backend/inspect/canvas.h - the canvases of pictures: characters of a terminal, or pixels.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace kassette::inspect {

/// A colour.
struct Rgb {
  std::uint8_t r, g, b;
};
/// The colour of the k-th line of a plot: one of six that colour-blind people can tell apart too (Okabe and Ito, 2008).
Rgb line_color(int k);

/// The characters that text pictures are made of; `color` is unicode with colours.
enum class Glyphs : std::uint8_t { ascii, unicode, color };
/// Appends the escape sequence that sets the text colour: "\x1b[38;2;r;g;bm".
void set_color(std::string& to, Rgb color);
void set_background(std::string& to, Rgb color);
inline constexpr const char* kNoColor = "\x1b[0m";

/// Calls dot(x, y) for every point of a line, both ends included (Bresenham).
template <class F>
void draw_line(int x0, int y0, int x1, int y1, F&& dot) {
  int dx = std::abs(x1 - x0), dy = -std::abs(y1 - y0), sx = x0 < x1 ? 1 : -1, sy = y0 < y1 ? 1 : -1;
  for (int error = dx + dy;;) {
    dot(x0, y0);
    if (x0 == x1 && y0 == y1) return;
    int twice = 2 * error;
    if (twice >= dy) {
      error += dy;
      x0 += sx;
    }
    if (twice <= dx) {
      error += dx;
      y0 += sy;
    }
  }
}

/// A canvas of characters with 2 x 4 dots each, shown in braille, or in ASCII as far as that goes.
class DotCanvas {
 public:
  DotCanvas(int columns, int rows) : columns_(columns), rows_(rows), cells_(columns * rows) {}
  int width() const { return 2 * columns_; }
  int height() const { return 4 * rows_; }
  void dot(int x, int y, int line);
  std::string row(int r, Glyphs glyphs) const;

 private:
  /// The dots of a character, as bits, and the number of the line that set the last one.
  struct Cell {
    std::uint8_t dots = 0, line = 0;
  };
  int columns_, rows_;
  std::vector<Cell> cells_;
};

/// A canvas over the caller's RGB pixels.
class PixelCanvas {
 public:
  PixelCanvas(int width, int height, std::uint8_t* rgb);  // fills it with white
  int width() const { return width_; }
  int height() const { return height_; }
  void dot(int x, int y, Rgb color);
  void fill(int x0, int y0, int x1, int y1, Rgb color);
  /// Writes text in letters of 6 x 10 pixels, 8 apart. Lower-case letters are written as capitals.
  void write(int x, int y, std::string_view text, Rgb color);
  static constexpr int kLetter = 8;

 private:
  int width_, height_;
  std::uint8_t* rgb_;
};

}  // namespace kassette::inspect
