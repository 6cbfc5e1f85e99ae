// tools/repl/terminal.h - the prompt at a terminal.
#pragma once

namespace repl {

class Session;

/// Reads and runs inputs until Ctrl-D or `.quit`.
void at_terminal(Session& session);

}  // namespace repl
