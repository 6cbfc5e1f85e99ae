// core/print/printable.cpp - quoting untrusted text in messages.
#include "core/print/printable.h"

#include <utility>

namespace kassette {

std::string printable(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto c = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F in UTF-8 are control characters to some terminals.
    bool c1 = c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) >= 0x80 &&
              static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (c1) text[i] = text[i + 1] = '?';
    else if (c < 0x20 || c == 0x7f) text[i] = '?';
  }
  return text;
}

std::string excerpt(std::string text) {
  constexpr std::size_t kLongest = 200;
  if (text.size() > kLongest) text.replace(kLongest / 2, text.size() - kLongest, "...");
  return printable(std::move(text));
}

}  // namespace kassette
