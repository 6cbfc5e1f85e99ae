// nn_backend/inspect/canvas.cpp - the canvases of pictures: characters of a terminal, or pixels.
#include "nn_backend/inspect/canvas.h"

#include <algorithm>
#include <cstdio>

namespace kassette::inspect {
namespace {

/// Letters of 3 x 5 dots: a digit per row, from the top, whose bits are the dots from the left.
struct Letter {
  char sign;
  const char* rows;
};
constexpr Letter kLetters[] = {
    {'0', "75557"}, {'1', "26227"}, {'2', "71747"}, {'3', "71717"}, {'4', "55711"}, {'5', "74717"}, {'6', "74757"},
    {'7', "71111"}, {'8', "75757"}, {'9', "75717"}, {'A', "25755"}, {'B', "65656"}, {'C', "34443"}, {'D', "65556"},
    {'E', "74647"}, {'F', "74644"}, {'G', "34553"}, {'H', "55755"}, {'I', "72227"}, {'J', "11152"}, {'K', "55655"},
    {'L', "44447"}, {'M', "57755"}, {'N', "65555"}, {'O', "25552"}, {'P', "65644"}, {'Q', "25563"}, {'R', "65655"},
    {'S', "34216"}, {'T', "72222"}, {'U', "55557"}, {'V', "55552"}, {'W', "55775"}, {'X', "55255"}, {'Y', "55222"},
    {'Z', "71247"}, {'.', "00002"}, {',', "00024"}, {':', "02020"}, {'-', "00700"}, {'+', "02720"}, {'=', "07070"},
    {'_', "00007"}, {'(', "12221"}, {')', "42224"}, {'/', "11244"}, {'%', "51245"}, {'*', "05250"},
};

}  // namespace

Rgb line_color(int k) {
  constexpr Rgb kColors[] = {{0, 114, 178},   {213, 94, 0},  {0, 158, 115},
                             {204, 121, 167}, {230, 159, 0}, {86, 180, 233}};
  return kColors[k % 6];
}

void set_color(std::string& to, Rgb c) {
  char s[32];
  std::snprintf(s, sizeof s, "\x1b[38;2;%d;%d;%dm", c.r, c.g, c.b);
  to += s;
}
void set_background(std::string& to, Rgb c) {
  char s[32];
  std::snprintf(s, sizeof s, "\x1b[48;2;%d;%d;%dm", c.r, c.g, c.b);
  to += s;
}

void DotCanvas::dot(int x, int y, int line) {
  if (x < 0 || y < 0 || x >= width() || y >= height()) return;
  // Braille counts its dots down the columns, with the fourth row added later.
  constexpr std::uint8_t kBits[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
  Cell& cell = cells_[y / 4 * columns_ + x / 2];
  cell.dots |= kBits[y % 4][x % 2];
  cell.line = static_cast<std::uint8_t>(line);
}

std::string DotCanvas::row(int r, Glyphs glyphs) const {
  std::string s;
  const Cell* cells = cells_.data() + r * columns_;
  int color = -1;
  for (int i = 0; i < columns_; ++i) {
    Cell c = cells[i];
    if (glyphs == Glyphs::ascii) {
      bool top = c.dots & (1 | 8 | 2 | 16), bottom = c.dots & (4 | 32 | 64 | 128);
      s += top ? bottom ? ':' : '\'' : bottom ? '.' : ' ';
      continue;
    }
    if (!c.dots) {  // the empty braille pattern is as wide as a letter only in some fonts
      s += ' ';
      continue;
    }
    if (glyphs == Glyphs::color && c.line != color) set_color(s, line_color(color = c.line));
    s += '\xe2';
    s += static_cast<char>(0xa0 | c.dots >> 6);
    s += static_cast<char>(0x80 | (c.dots & 63));
  }
  while (!s.empty() && s.back() == ' ') s.pop_back();
  if (color >= 0) s += kNoColor;
  return s;
}

PixelCanvas::PixelCanvas(int width, int height, std::uint8_t* rgb) : width_(width), height_(height), rgb_(rgb) {
  std::fill(rgb, rgb + std::int64_t(3) * width * height, std::uint8_t(255));
}
void PixelCanvas::dot(int x, int y, Rgb c) {
  if (x < 0 || y < 0 || x >= width_ || y >= height_) return;
  std::uint8_t* p = rgb_ + 3 * (std::int64_t(y) * width_ + x);
  p[0] = c.r;
  p[1] = c.g;
  p[2] = c.b;
}
void PixelCanvas::fill(int x0, int y0, int x1, int y1, Rgb color) {
  for (int y = y0; y < y1; ++y)
    for (int x = x0; x < x1; ++x) dot(x, y, color);
}
void PixelCanvas::write(int x, int y, std::string_view text, Rgb color) {
  for (char sign : text) {
    if (sign >= 'a' && sign <= 'z') sign = static_cast<char>(sign - 'a' + 'A');
    for (const Letter& l : kLetters) {
      if (l.sign != sign) continue;
      for (int r = 0; r < 5; ++r)
        for (int c = 0; c < 3; ++c)
          if ((l.rows[r] - '0') >> (2 - c) & 1) fill(x + 2 * c, y + 2 * r, x + 2 * c + 2, y + 2 * r + 2, color);
    }
    x += kLetter;
  }
}

}  // namespace kassette::inspect
