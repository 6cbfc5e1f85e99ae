// nn_backend/prompt/terminal_picture.cpp - pictures in terminals that show them.
//
// kitty's graphics protocol, which WezTerm, Ghostty and Konsole have as well: <ESC>_Ga=T,f=100,m=1;BASE64<ESC>\\, in
// pieces of at most 4096 characters, all but the last with m=1 (https://sw.kovidgoyal.net/kitty/graphics-protocol).
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "nn_backend/prompt/front_end.h"

namespace kassette::repl {
namespace {

std::string base64(const std::string& bytes) {
  static const char* const kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned group = 0;
    for (std::size_t j = 0; j < 3; ++j)
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j) out += i + j <= bytes.size() ? kDigits[group >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

bool is(const char* variable, const char* value) {
  const char* is_now = std::getenv(variable);
  return is_now && std::strcmp(is_now, value) == 0;
}

}  // namespace

bool terminal_shows_png() {
  if (isatty(STDOUT_FILENO) == 0 || std::getenv("TMUX") || std::getenv("STY")) return false;  // those pass nothing on
  return is("TERM", "xterm-kitty") || is("TERM", "xterm-ghostty") || is("TERM_PROGRAM", "WezTerm") ||
         is("TERM_PROGRAM", "ghostty");
}

void write_to_terminal(const std::string& png) {
  constexpr std::size_t kPiece = 4096;
  const std::string text = base64(png);
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += kPiece) {
    out += at == 0 ? "\033_Ga=T,f=100," : "\033_G";
    out += at + kPiece < text.size() ? "m=1;" : "m=0;";
    out += text.substr(at, kPiece) + "\033\\";
  }
  out += '\n';
  std::fwrite(out.data(), 1, out.size(), stdout);
  std::fflush(stdout);
}

}  // namespace kassette::repl
