// nn_backend/inspect/terminal.h - what the screen can show.
#pragma once

namespace kassette {

struct Terminal {
  bool tty;      // somebody looks on
  bool color;    // 24-bit colours by escape sequences
  bool unicode;  // block elements and braille
  int width, height;
};
/// Asked anew at every call: windows change their size.
Terminal terminal(int descriptor);

}  // namespace kassette
