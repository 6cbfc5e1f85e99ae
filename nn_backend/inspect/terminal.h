// nn_backend/inspect/terminal.h - the capabilities of the terminal.
#pragma once

namespace kassette::inspect {

/// The capabilities of a terminal.
struct Terminal {
  bool tty;      // the descriptor is a terminal, not a file or pipe
  bool color;    // 24-bit colours by escape sequences
  bool unicode;  // block elements and braille
  int width, height;
};
/// The terminal behind a descriptor, queried at each call: windows change their size.
Terminal terminal(int descriptor);

}  // namespace kassette::inspect
