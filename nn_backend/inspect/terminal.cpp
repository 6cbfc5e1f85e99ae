// nn_backend/inspect/terminal.cpp - the capabilities of the terminal.
#include "nn_backend/inspect/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

namespace kassette::inspect {
namespace {

std::string_view variable(const char* name) {
  const char* v = std::getenv(name);
  return v ? v : "";
}

/// Without a locale ("C", as in most containers) terminals accept UTF-8 all the same, which Python assumes too.
bool takes_utf8() {
  if (variable("TERM") == "dumb") return false;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string_view locale = variable(name);
    if (locale.empty()) continue;
    std::size_t dot = locale.find('.');
    if (dot == locale.npos) return true;
    std::string_view charset = locale.substr(dot + 1);
    return strncasecmp(charset.data(), "utf-8", 5) == 0 || strncasecmp(charset.data(), "utf8", 4) == 0;
  }
  return true;
}

int positive(std::string_view text) {
  int n = std::atoi(text.data());
  return n > 0 && n < 10000 ? n : 0;
}

}  // namespace

Terminal terminal(int descriptor) {
  Terminal t{isatty(descriptor) != 0, false, takes_utf8(), 0, 0};
  std::string_view kind = variable("TERM");
  t.color = t.tty && variable("NO_COLOR").empty() && !kind.empty() && kind != "dumb";
  winsize size{};
  if (t.tty && ioctl(descriptor, TIOCGWINSZ, &size) == 0) {
    t.width = size.ws_col;
    t.height = size.ws_row;
  }
  if (!t.width) t.width = positive(variable("COLUMNS"));
  if (!t.width) t.width = 80;
  if (!t.height) t.height = 24;
  return t;
}

}  // namespace kassette::inspect
